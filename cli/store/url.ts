import { execFileSync } from 'node:child_process'
import { userInfo } from 'node:os'
import process from 'node:process'
import { findNameProblem } from '../../core/admin/validate.ts'
import { readVariable } from '../environment.ts'
import { usageError } from '../errors.ts'
import type { Io } from '../output/print.ts'

export type StoreAddress =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly file: string }
  /** The URL as given, which may contain a password. */
  | { readonly kind: 'postgres'; readonly url: string }

/** A store that outlives its process. */
export type DurableAddress = Exclude<StoreAddress, { readonly kind: 'memory' }>

/** Parses a store URL. Messages do not quote it, since it may contain a password. */
export function parseStoreUrl(url: string): StoreAddress {
  if (url === 'memory:') return { kind: 'memory' }
  if (/^postgres(ql)?:\/\//i.test(url)) return { kind: 'postgres', url }
  // `sqlite://` is what other tools write: sqlite:///var/lib/p.db is the file /var/lib/p.db.
  const file = /^sqlite:(?:\/\/)?(.*)$/s.exec(url)?.[1]
  if (file === ':memory:') throw usageError('The URL of a store in memory is `memory:`.')
  if (file && /\?\w+=/.test(file)) throw usageError('The URL of a SQLite file has no parameters.')
  const isFile = file !== undefined && file !== '' && !file.includes('\0') &&
    !/^[a-z][\w+.-]*:\/\//i.test(file)
  if (!isFile) {
    throw usageError(
      'A store URL is sqlite:FILE, postgres://HOST/NAME or memory:. (--store URL or PARTNER_API_STORE)',
    )
  }
  return { kind: 'sqlite', file }
}

/** @throws {CliError} exit code 2 with `reason` for `memory:`. */
export function parseDurableUrl(url: string, reason: string): DurableAddress {
  const address = parseStoreUrl(url)
  if (address.kind === 'memory') throw usageError(reason)
  return address
}

/** Whether the URL of a store contains a password, in its authority or its query. */
export function holdsPassword(url: string): boolean {
  const [, authority = ''] = /^\w+:\/\/([^?#]*)/.exec(url) ?? []
  const colon = authority.indexOf(':')
  return (colon !== -1 && authority.lastIndexOf('@') > colon + 1) || /[?&]password=./i.test(url)
}

/** The user of the operating system, or `$USER` for a user id without a name, as in containers. */
export function currentUser(env: Io['env']): string {
  let user: string | undefined
  try {
    // `userInfo` of Bun takes the name from $USER, which anyone can set.
    user = process.versions.bun && process.platform !== 'win32'
      ? execFileSync('id', ['-un'], { encoding: 'utf8', stdio: 'pipe' }).trim()
      : userInfo().username
  } catch {
    // The system has no entry for the user id.
  }
  return [user, readVariable(env, 'USER')].find((name) =>
    name !== undefined && findNameProblem(name) === undefined
  ) ??
    'unknown'
}
