const maxSimilar = 3

/** The known names that are most like `name`, at most three; none if each differs too much. */
export function similarNames(name: string, known: readonly string[]): string[] {
  const folded = foldLookalikes(name)
  const distances = known.map((each) => editDistance(folded, foldLookalikes(each)))
  const least = Math.min(...distances)
  if (least > Math.min(2, name.length / 2)) return []
  return known.filter((_each, index) => distances[index] === least).slice(0, maxSimilar)
}

/** People confuse case, O with 0, and I with l and 1. */
function foldLookalikes(text: string): string {
  return text.toLowerCase().replaceAll('o', '0').replace(/[il]/g, '1')
}

/** @see https://en.wikipedia.org/wiki/Levenshtein_distance */
function editDistance(a: string, b: string): number {
  let last = Array.from({ length: b.length + 1 }, (_each, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      row[j] = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1)
    }
    last = row
  }
  return last[b.length]!
}
