/** Checks of values by functions that say what is wrong. */
import * as v from 'valibot'

/** Finds all failures, also where the host has set valibot to stop at the first one. */
export const ALL_FAILURES = { abortEarly: false, abortPipeEarly: false } as const

/** An action that refuses a value with a sentence. @param check Returns it; `undefined` for a valid value. */
export function rule<T>(check: (value: T) => string | undefined): v.RawCheckAction<T> {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    const message = dataset.typed ? check(dataset.value) : undefined
    if (message !== undefined) addIssue({ message })
  })
}

/** What is wrong with a value, or with its item or member `at`. */
export type PartError = string | readonly [error: string, at: string | number]

/**
 * An action that refuses a list or an object for what its parts have to do with each other.
 *
 * @param check Gets the value even if some parts are not valid; these, for which there are errors
 * already, are `undefined`.
 */
export function partRule<T extends object>(
  check: (value: T) => PartError | undefined,
): v.RawCheckAction<T> {
  return v.rawCheck<T>(({ dataset, addIssue }) => {
    const input: unknown = dataset.value
    if (typeof input !== 'object' || input === null) return
    const found = check(withoutInvalid(input, dataset.issues ?? []) as T)
    if (found === undefined) return
    if (typeof found === 'string') return addIssue({ message: found })
    const [message, key] = found
    addIssue({ message, path: [{ type: 'unknown', origin: 'value', input, key, value: undefined }] })
  })
}

/** A copy whose invalid parts are `undefined`. Each part is copied once, however many of its own parts are invalid. */
function withoutInvalid(value: object, issues: readonly v.BaseIssue<unknown>[]): object {
  if (issues.length === 0) return value
  const copies = new Set<object>()
  const copyOf = (part: object): Record<PropertyKey, unknown> => {
    const copy = copies.has(part) ? part : Array.isArray(part) ? [...part] : { ...part }
    copies.add(copy)
    return copy as Record<PropertyKey, unknown>
  }
  const root = copyOf(value)
  for (const { path = [] } of issues) {
    let whole = root
    for (const [index, { key }] of path.entries()) {
      const name = key as PropertyKey
      const part = whole[name]
      const isInvalid = index === path.length - 1 || typeof part !== 'object' || part === null
      whole[name] = isInvalid ? undefined : copyOf(part)
      if (isInvalid) break
      whole = whole[name] as typeof whole
    }
  }
  return root
}
