import { holdsKey } from '../keys/format.ts'

const redacted = '[redacted]'

/** A name that a client made up, safe to be said back: never something in the shape of a key. */
export function sayable(name: string): string {
  return holdsKey(name) ? redacted : name
}

/** A path that is safe to be said back and logged: the root when something in the shape of a key is in it. */
export function sayablePath(path: string): string {
  if (!path.includes('_') && !path.includes('%')) return path
  return holdsKey(path) || holdsKey(decodeLoosely(path)) ? '/' : path
}

/** Every escape that stands for one ASCII character decoded: a key holds no others. */
function decodeLoosely(path: string): string {
  return path.replace(/%([0-7][0-9a-f])/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)))
}
