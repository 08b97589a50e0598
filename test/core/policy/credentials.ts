import { crc32 } from 'node:zlib'
import type { Situation } from './oracle.ts'

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Six base62 digits of the CRC-32 of all before them (section 6), from zlib's CRC and not from core's. */
export function checksum(text: string): string {
  let rest = crc32(text)
  let sum = ''
  for (let place = 0; place < 6; place++) {
    sum = digits[rest % 62] + sum
    rest = Math.floor(rest / 62)
  }
  return sum
}

/** A key with a right checksum. */
export function forgeKey(id: string, secret: string, prefix = 'spk_live'): string {
  const unsigned = `${prefix}_${id.padEnd(12, '0')}_${secret.padEnd(32, 'x')}`
  return unsigned + checksum(unsigned)
}

/** A way to present a key, or something that looks like one. */
export interface CredentialForm {
  readonly name: string
  /** What the contract takes it for: a credential unless it says otherwise. */
  readonly is: Situation['credential']
  readonly authorization?: string
  readonly keyHeader?: string
  /** Goes into the query string, where no key belongs. */
  readonly query?: string
}

/**
 * Every form of credential that sections 2 and 10 tell apart.
 *
 * @param key A key that is known. @param other A key of another partner, good in itself.
 */
export function credentialForms(key: string, other: string): readonly CredentialForm[] {
  const id = key.slice(9, 21)
  const altered = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
  const unknown = forgeKey('Nobody', 'secret')
  const wrongSecret = forgeKey(id, 'guessed')
  const basic = 'Basic c3RhZ2luZzpwcm94eQ=='
  const digest = 'Digest username="a, b", realm="staging", qop=auth'
  const missing = (name: string, more: Partial<CredentialForm>): CredentialForm => ({
    name,
    is: 'missing',
    ...more,
  })
  const right = (name: string, more: Partial<CredentialForm>): CredentialForm => ({
    name,
    is: undefined,
    ...more,
  })
  const ambiguous = (name: string, more: Partial<CredentialForm>): CredentialForm => ({
    name,
    is: 'ambiguous',
    ...more,
  })
  const wrong = (name: string, text: string): CredentialForm[] => [
    { name: `${name} as Bearer`, is: 'wrong', authorization: `Bearer ${text}` },
    { name: `${name} in the key header`, is: 'wrong', keyHeader: text },
  ]
  return [
    right('Bearer', { authorization: `Bearer ${key}` }),
    right('bearer in lower case', { authorization: `bearer ${key}` }),
    right('BEARER in mixed case', { authorization: `BeArEr ${key}` }),
    right('key header', { keyHeader: key }),
    right('both, equal', { authorization: `Bearer ${key}`, keyHeader: key }),
    right('Basic and key header', { authorization: basic, keyHeader: key }),
    right('a scheme with commas and key header', { authorization: digest, keyHeader: key }),
    right('Bearer with nothing and key header', { authorization: 'Bearer', keyHeader: key }),
    right('Bearer and empty key header', { authorization: `Bearer ${key}`, keyHeader: '' }),
    right('key header and the key in the query', { keyHeader: key, query: `api_key=${key}` }),

    missing('none', {}),
    missing('empty Authorization', { authorization: '' }),
    missing('empty key header', { keyHeader: '' }),
    missing('both empty', { authorization: '', keyHeader: '' }),
    missing('Bearer with nothing', { authorization: 'Bearer' }),
    missing('Bearer with a space', { authorization: 'Bearer ' }),
    missing('Basic', { authorization: basic }),
    missing('a scheme with commas', { authorization: digest }),
    missing('the scheme run into the key', { authorization: `Bearer${key}` }),
    missing('the key as a scheme', { authorization: key }),
    missing('only in the query', { query: `key=${key}` }),
    missing('only in the query, beside Basic', { authorization: basic, query: `access_token=${key}` }),

    ambiguous('both, different', { authorization: `Bearer ${other}`, keyHeader: key }),
    ambiguous('both, different the other way', { authorization: `Bearer ${key}`, keyHeader: other }),
    ambiguous('both, one of them wrong', { authorization: `Bearer ${wrongSecret}`, keyHeader: key }),
    ambiguous('both, in different case', { authorization: `Bearer ${key.toLowerCase()}`, keyHeader: key }),
    ambiguous('key header repeated', { keyHeader: `${key}, ${key}` }),
    ambiguous('key header repeated, different', { keyHeader: `${key}, ${other}` }),
    ambiguous('key header repeated, once empty', { keyHeader: `, ${key}` }),
    ambiguous('Bearer repeated', { authorization: `Bearer ${key}, Bearer ${key}` }),
    ambiguous('Bearer repeated, different', { authorization: `Bearer ${other}, Bearer ${key}` }),
    ambiguous('Bearer, then Basic', { authorization: `Bearer ${key}, ${basic}` }),
    ambiguous('Basic, then Bearer', { authorization: `${basic}, Bearer ${key}` }),
    ambiguous('Basic repeated beside the key header', {
      authorization: `${basic}, ${basic}`,
      keyHeader: key,
    }),
    ambiguous('Bearer repeated beside the key header', {
      authorization: `Bearer ${key}, Bearer ${key}`,
      keyHeader: key,
    }),
    ambiguous('Basic and key header repeated', { authorization: basic, keyHeader: `${key}, ${key}` }),

    ...wrong('no key at all', 'hello'),
    ...wrong('a key with a bad checksum', altered),
    ...wrong('an unknown id', unknown),
    ...wrong('a wrong secret with a right checksum', wrongSecret),
    ...wrong('a key cut short', key.slice(0, -1)),
    ...wrong('a key and one character', `${key}0`),
    ...wrong('a key in lower case', key.toLowerCase()),
    ...wrong('the key as one of the other environment', forgeKey(id, key.slice(22, 54), 'spk_test')),
    ...wrong('the key with another prefix', forgeKey(id, key.slice(22, 54), 'xpk_live')),
    { name: 'the key twice after Bearer', is: 'wrong', authorization: `Bearer ${key} ${key}` },
  ]
}
