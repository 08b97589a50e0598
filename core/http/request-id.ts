const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const pairs = Array.from(
  { length: 1024 },
  (_, index) => alphabet.charAt(index >> 5) + alphabet.charAt(index & 31),
)

/**
 * Makes request ids, `req_` and 20 characters: a random part, and a counter that has the CSPRNG asked for a new
 * random part when it comes round, so that ids are unique among replicas without asking it for each.
 */
export function createRequestIds(): () => string {
  let prefix = ''
  let count = 0
  return () => {
    if (count === 0) {
      const random = crypto.getRandomValues(new Uint8Array(16))
      prefix = `req_${Array.from(random, (byte) => alphabet.charAt(byte & 31)).join('')}`
    }
    const serial = count
    count = (count + 1) & 0xfffff
    return `${prefix}${pairs[serial >> 10]}${pairs[serial & 1023]}`
  }
}
