/** Checks of values by functions that say what is wrong. */
import * as v from 'valibot'

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
 * @param check Gets the value even if some parts are not valid; these, for which there are errors already, are `undefined`.
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

function withoutInvalid(value: object, issues: readonly v.BaseIssue<unknown>[]): object {
  return issues.reduce<object>(
    (rest, { path }) => path === undefined ? rest : without(rest, path.map(({ key }) => key)),
    value,
  )
}

/** A copy whose part at a path is `undefined`. */
function without(value: object, [key, ...rest]: readonly unknown[]): object {
  const name = key as keyof typeof value
  const part: unknown = value[name]
  const isWhole = rest.length === 0 || typeof part !== 'object' || part === null
  const replaced = isWhole ? undefined : without(part, rest)
  return Array.isArray(value) ? value.with(Number(key), replaced) : { ...value, [name]: replaced }
}
