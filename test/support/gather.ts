/** Reads a list to its end. */
export async function gather<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const gathered: T[] = []
  for await (const row of rows) gathered.push(row)
  return gathered
}
