/** A service with sample content, behind a recorder, for the examples of partners. */
import { join } from 'node:path'
import type { Test } from 'tap'
import { programOn, startServing, stopServing } from '../support/cli-program.ts'
import { createProject, storeIn } from './project.ts'
import { type Recorded, type Recorder, startRecorder } from './recorder.ts'

export interface PartnerProject {
  /** A copy of the examples, with the packages that they import. */
  readonly folder: string
  /** The key of the partner `demo`. */
  readonly key: string
  /** Where the examples find the service. */
  readonly service: Recorder
  /** Address of the service itself. */
  readonly serviceUrl: string
  /** The requests since the last call. */
  requests(): Recorded[]
  /** Their statuses. */
  statuses(): (number | undefined)[]
  /** Runs a command of the operator. @returns Its `data`. */
  // deno-lint-ignore no-explicit-any -- a test reads whatever members it expects
  cli(...words: string[]): Promise<any>
  /** The stored signups with this e-mail address. */
  signups(email: string): Promise<readonly Record<string, unknown>[]>
  /** Adds pages and logs to what must not hold a key. */
  see(...texts: string[]): void
  /** Ends the service, and looks for keys in URLs, bodies, logs, and all that was seen. */
  end(t: Test): Promise<void>
}

export async function openPartnerProject(t: Test): Promise<PartnerProject> {
  const project = await createProject()
  t.teardown(() => project.remove())
  const { folder, key } = await project.open('partner')
  const store = storeIn(folder)
  const served = await startServing(['serve', '--port', '0', '--log', 'all', '--max-staleness', '0'], store)
  const service = await startRecorder(served.url)
  t.teardown(() => service.close())
  const seen: string[] = []

  function requests() {
    const taken = service.take()
    seen.push(...taken.map(({ line, body }) => line + body))
    return taken
  }
  async function cli(...words: string[]) {
    const { code, data, stdout } = await programOn(store).json(...words)
    if (code !== 0) throw new Error(stdout)
    return data
  }
  return {
    folder: join(folder, 'partners'),
    key,
    service,
    serviceUrl: served.url,
    requests,
    statuses: () => requests().map(({ status }) => status),
    cli,
    signups: async (email) =>
      (await cli('signups', 'list')).filter((row: { readonly email: string }) => row.email === email),
    see: (...texts) => void seen.push(...texts),
    async end(t) {
      requests()
      seen.push((await stopServing(served)).stderr)
      t.notMatch(seen.join('\n'), /spk_(live|test)_\w{12}/, 'no page, URL or log holds a key')
    },
  }
}

/** Checks the attempts of a signup whose first response was lost. */
export function sentWithOneKey(t: Test, requests: readonly Recorded[]): void {
  const attempts = requests.filter(({ line }) => line === 'POST /service/partner/signups')
  t.same(attempts.map(({ status }) => status), [201, 201])
  t.match(attempts[0]?.headers['idempotency-key'], /./)
  t.equal(attempts[1]?.headers['idempotency-key'], attempts[0]?.headers['idempotency-key'])
  t.equal(attempts[1]?.body, attempts[0]?.body)
}

/** What a person reads. */
export function textOf(html: string): string {
  return html.replace(/<(style|script|select).*?<\/\1>/gs, '').replace(/<[^>]+>|\s+/g, ' ').replace(
    / +/g,
    ' ',
  )
    .replaceAll('&#039;', "'").replaceAll('&amp;', '&')
}
