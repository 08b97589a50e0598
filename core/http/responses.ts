import type { Answer } from './exchange.ts'

/** What the last answer of a stem was made of. */
interface Kept {
  /** Copied by each response that is made with it. */
  readonly fields: Headers
  headers: readonly string[]
  /** The body, which Bun and Deno send with less effort as text: they copy bytes first. */
  text: string | undefined
}

/** How many stems are remembered at most: what is made of one takes Deno 2.6 KB, more than most replies. */
const maxKept = 2_048

const decoder = new TextDecoder()

/**
 * Makes responses of answers at little cost: of two answers with one stem, the second takes over from the first all but
 * the fields that are not the same.
 *
 * @param refuse Makes the answer in place of one that can't be sent.
 */
export function createResponder(refuse: () => Answer): (answer: Answer) => Response {
  let keptOf = new WeakMap<readonly string[], Kept>()
  let count = 0

  function respond({ status, headers, body, stem }: Answer): Response {
    if (stem === undefined) {
      const content = body as string | Uint8Array<ArrayBuffer> | undefined ?? null
      // Workers compress what says `Content-Encoding`, unless told that it is compressed.
      const init = { status, headers: listed(headers, status), encodeBody: 'manual' }
      return new Response(content, init)
    }
    let kept = keptOf.get(stem)
    if (kept === undefined || !hasNames(kept.headers, headers, stem.length)) {
      if (count++ % maxKept === 0) keptOf = new WeakMap()
      keptOf.set(stem, kept = { fields: listed(headers), headers, text: undefined })
    } else {
      renew(kept, headers, stem.length)
    }
    const { fields } = kept
    if (body === undefined) return new Response(null, { status, headers: fields })
    const text = typeof body === 'string' ? body : kept.text ??= decoder.decode(body)
    return new Response(text, { status, headers: fields })
  }

  return (answer) => {
    try {
      return respond(answer)
    } catch {
      // A header that must not be sent: nothing has been sent, and what was kept may be of two answers.
      if (answer.stem !== undefined) keptOf.delete(answer.stem)
      return respond(refuse())
    }
  }
}

function renew(kept: Kept, headers: readonly string[], from: number): void {
  for (let index = from; index < headers.length; index += 2) {
    const value = headers[index + 1]!
    if (value !== kept.headers[index + 1]) kept.fields.set(headers[index]!, value)
  }
  kept.headers = headers
}

/** Whether two lists of fields have the same names from an index on. */
function hasNames(some: readonly string[], others: readonly string[], from: number): boolean {
  if (some.length !== others.length) return false
  for (let index = from; index < some.length; index += 2) if (some[index] !== others[index]) return false
  return true
}

function listed(headers: readonly string[], status?: number): Headers {
  const fields = new Headers()
  for (let index = 0; index < headers.length; index += 2) fields.append(headers[index]!, headers[index + 1]!)
  // What is late may go on to come, and is nobody's.
  if (status === 408) fields.append('Connection', 'close')
  return fields
}
