import { userInfo } from 'node:os'
import process from 'node:process'
import { validateName } from '../core/admin/validate.ts'
import { usageError } from './errors.ts'

/** What every command is told besides its own arguments. */
export interface Invocation {
  /** One JSON document on standard output instead of words for people. */
  readonly json: boolean
  /** As given; it may hold a password and is never shown. */
  readonly storeUrl: string
  /** Who the audit trail names for what the command changes. */
  readonly actor: string
}

/** Who runs this command: the operating system's user, or who the environment says it is where there is none. */
export function currentUser(): string {
  return [systemUser(), process.env.USER].find((name) =>
    name !== undefined && validateName(name) === undefined
  ) ??
    'unknown'
}

/** A container may run under a number that no user has. */
function systemUser(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}

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
  if (file === ':memory:') throw usageError('A store in memory is `memory:`.')
  if (file === undefined || file === '' || file.includes('\0')) {
    throw usageError(
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
