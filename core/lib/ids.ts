const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Draws an id: the prefix and 20 characters, 100 bits from the CSPRNG. */
export function drawId(prefix: string): string {
  const random = crypto.getRandomValues(new Uint8Array(20))
  return prefix + Array.from(random, (byte) => alphabet.charAt(byte & 31)).join('')
}

const requestIdAlphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const pairs = Array.from(
  { length: 1024 },
  (_, index) => requestIdAlphabet.charAt(index >> 5) + requestIdAlphabet.charAt(index & 31),
)
const serialBits = 20
const serialMask = 2 ** serialBits - 1

/**
 * Makes request ids, `req_` and 20 characters: a random part, and a serial number that has the CSPRNG asked for a
 * new random part when it comes round, so that ids are unique among replicas without asking it for each. Serial
 * numbers go through a random permutation: who sees two of them can't count the requests in between.
 */
export function createRequestIds(): () => string {
  let prefix = ''
  let count = 0
  let factor = 1
  let mask = 0
  return () => {
    if (count === 0) {
      const [first = 0, second = 0] = crypto.getRandomValues(new Uint32Array(2))
      // An odd factor permutes the numbers below a power of two, and so does a mask.
      factor = (first & serialMask) | 1
      mask = second & serialMask
      const random = crypto.getRandomValues(new Uint8Array(16))
      prefix = `req_${Array.from(random, (byte) => requestIdAlphabet.charAt(byte & 31)).join('')}`
    }
    const shuffled = Math.imul(count ^ mask, factor) & serialMask
    const serial = Math.imul(shuffled ^ (shuffled >>> 10), factor) & serialMask
    count = (count + 1) & serialMask
    return `${prefix}${pairs[serial >> 10]}${pairs[serial & 1023]}`
  }
}
