/** The first characters of a text, as many as have `maxBytes` bytes of UTF-8 together, or all of them. */
export function cutText(text: string, maxBytes: number): string {
  // No unit of UTF-16 is more than three bytes.
  if (text.length * 3 <= maxBytes) return text
  let bytes = 0
  let end = 0
  for (const character of text) {
    bytes += utf8Length(character.codePointAt(0)!)
    if (bytes > maxBytes) break
    end += character.length
  }
  return text.slice(0, end)
}

function utf8Length(codePoint: number): number {
  return codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4
}
