const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Draws an id: the prefix and 20 characters, 100 bits from the CSPRNG. */
export function drawId(prefix: string): string {
  const random = crypto.getRandomValues(new Uint8Array(20))
  return prefix + Array.from(random, (byte) => alphabet.charAt(byte & 31)).join('')
}
