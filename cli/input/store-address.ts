import { usageFailure } from '../failure.ts'

/** Where a store is. */
export type StoreAddress =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly file: string }
  /** The URL as it was given: it may hold a password. */
  | { readonly kind: 'postgres'; readonly url: string }

/** Reads a store URL. Nothing of it is shown in a complaint: it may hold a password. */
export function parseStoreUrl(url: string): StoreAddress {
  if (url === 'memory:') return { kind: 'memory' }
  if (/^postgres(ql)?:\/\//i.test(url)) return { kind: 'postgres', url }
  // `sqlite://` is what other tools write: sqlite:///var/lib/p.db is the file /var/lib/p.db.
  const file = /^sqlite:(?:\/\/)?(.*)$/s.exec(url)?.[1]
  if (file === ':memory:') throw usageFailure('A store in memory is `memory:`.')
  if (file === undefined || file === '' || file.includes('\0')) {
    throw usageFailure(
      'A store URL is sqlite:FILE, postgres://HOST/NAME or memory:. (--store URL or PARTNER_API_STORE)',
    )
  }
  return { kind: 'sqlite', file }
}

/** Whether a password stands in a store URL. */
export function holdsPassword(url: string): boolean {
  const [, authority = ''] = /^\w+:\/\/([^?#]*)/.exec(url) ?? []
  const colon = authority.indexOf(':')
  return (colon !== -1 && authority.lastIndexOf('@') > colon + 1) || /[?&]password=./i.test(url)
}
