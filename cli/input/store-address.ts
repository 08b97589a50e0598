import { usageFailure } from '../failure.ts'

/** Where a store is. */
export type StoreAddress = { readonly kind: 'memory' } | { readonly kind: 'sqlite'; readonly file: string }

/** Reads a store URL. Nothing of it is shown in a complaint: it may hold a password. */
export function parseStoreUrl(url: string): StoreAddress {
  if (url === 'memory:') return { kind: 'memory' }
  if (/^postgres(ql)?:/i.test(url)) {
    throw usageFailure('PostgreSQL stores are not in this version of partner-api. Use sqlite:FILE.')
  }
  // `sqlite://` is what other tools write: sqlite:///var/lib/p.db is the file /var/lib/p.db.
  const file = /^sqlite:(?:\/\/)?(.*)$/s.exec(url)?.[1]
  if (file === ':memory:') {
    throw usageFailure('A store in memory is `memory:`.')
  }
  if (file === undefined || file === '' || file.includes('\0')) {
    throw usageFailure('A store URL is sqlite:FILE or memory:. (--store URL or PARTNER_API_STORE)')
  }
  return { kind: 'sqlite', file }
}
