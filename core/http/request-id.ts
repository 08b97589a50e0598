const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/**
 * Makes request ids, `req_` and 20 characters: a random part that is renewed long before a counter comes round,
 * so that ids are unique among replicas without asking the CSPRNG for each.
 */
export function createRequestIds(): () => string {
  let prefix = ''
  let count = 0
  return () => {
    if ((count & 0xfffff) === 0) {
      prefix = `req_${
        Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => alphabet[byte & 31]).join('')
      }`
      count = 0
    }
    const serial = count++
    return prefix + alphabet[serial >> 15] + alphabet[(serial >> 10) & 31] + alphabet[(serial >> 5) & 31] +
      alphabet[serial & 31]
  }
}
