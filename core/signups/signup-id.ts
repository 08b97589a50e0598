const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Makes the id of a signup, `sgn_` and 20 characters: 100 bits from the CSPRNG. */
export function newSignupId(): string {
  const random = crypto.getRandomValues(new Uint8Array(20))
  return `sgn_${Array.from(random, (byte) => alphabet.charAt(byte & 31)).join('')}`
}
