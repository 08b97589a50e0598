/** What a store notes of the copy that made it, once that is finished: the id of its source, and what it was then. */

/** @param contents Other contents of a store have another text. */
export function copiedAs(from: string, contents: string): string {
  return `${from} ${contents}`
}

/** The id of the source, for as long as the contents are what they were. */
export function copyOf(note: string | null, contents: string): string | undefined {
  const [from] = note?.split(' ', 1) ?? []
  return from !== undefined && note === copiedAs(from, contents) ? from : undefined
}
