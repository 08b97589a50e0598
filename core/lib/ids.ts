const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

// For a hundred ids: calls of the CSPRNG are slow.
let random = new Uint8Array(0)

/** Generates an id: the prefix and 20 characters, 100 bits from the CSPRNG. */
export function drawId(prefix: string): string {
  if (random.length === 0) random = crypto.getRandomValues(new Uint8Array(2000))
  let id = prefix
  for (const byte of random.subarray(0, 20)) id += alphabet.charAt(byte & 31)
  random = random.subarray(20)
  return id
}

/** An id as `drawId` generates it, which follows from a digest in hexadecimal. */
export function deriveId(prefix: string, digest: string): string {
  return prefix +
    Array.from(
      digest.slice(0, 20),
      (digit, index) => alphabet.charAt(parseInt(digit + digest.charAt(20 + index), 16) & 31),
    ).join('')
}

const serialBits = 20
const serialMask = 2 ** serialBits - 1

/**
 * Generates request ids: `req_`, 16 random characters, and a serial number of 4 characters. The random part changes
 * when the serial number wraps around: ids are unique among replicas without a call of the CSPRNG for each. The
 * serial numbers are permuted, so that two ids do not reveal the number of requests in between.
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
      prefix = drawId('req_').slice(0, 20)
    }
    const shuffled = Math.imul(count ^ mask, factor) & serialMask
    const serial = Math.imul(shuffled ^ (shuffled >>> 10), factor) & serialMask
    count = (count + 1) & serialMask
    return prefix + alphabet.charAt(serial >> 15) + alphabet.charAt(serial >> 10 & 31) +
      alphabet.charAt(serial >> 5 & 31) + alphabet.charAt(serial & 31)
  }
}
