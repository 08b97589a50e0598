/** Checks of this machine: its files, its disk, and the settings of `serve`. */
import { existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { shellQuote } from '../output/text.ts'
import type { ServiceOptions } from '../serve/service-options.ts'
import { exposedFiles } from '../store/open.ts'
import { isLoopback } from '../verify/credential.ts'
import { type Check, type CheckName, findMany, findStaleness } from './check.ts'

/** @param options Those of `serve` in the environment and the configuration file. */
export function checkServeOptions(check: Check, options: ServiceOptions): void {
  const { allowBrowsers, limits = {}, maxStalenessMs = 0, staleIfErrorSeconds = 0, publicUrl = [] } = options
  const plain = publicUrl.filter((url) => url.startsWith('http:') && !isLoopback(new URL(url)))
  const off = Object.entries(limits).filter(([, { quota }]) => quota === 0).map(([name]) => name)
  const command = 'partner-api config show serve'
  check(
    'serve-options',
    findStaleness('serve', maxStalenessMs + staleIfErrorSeconds * 1_000),
    findMany('Limits that serve turns off', off, command),
    findMany('Public addresses with which partners send keys unencrypted', plain, command),
    allowBrowsers && { message: 'serve answers browsers, where everybody can read a key.', command },
  )
}

export function checkAccess(check: Check, name: CheckName, files: readonly string[]): void {
  const quote = (names: readonly string[]) => names.map(shellQuote).join(' ')
  const missing = files.filter((file) => !existsSync(file))
  const names = files.flatMap(exposedFiles)
  check(
    name,
    findMany('Files that are missing', missing, `ls -l ${quote(missing)}`),
    findMany('Files that other accounts can read', names, `chmod 600 ${quote(names)}`),
  )
}

const mebibyte = 1_048_576

/** @param file The SQLite store. */
export function checkDisk(check: Check, file: string): void {
  const folder = dirname(file)
  const { bavail, blocks, bsize } = statfsSync(folder)
  const free = Math.floor(bavail * bsize / mebibyte)
  // On a small disk, a tenth is enough.
  const isLow = free < 1_024 && bavail < blocks / 10
  const spaceLeft = `The disk of the store has ${free} MiB left.`
  check('disk-space', isLow && { message: spaceLeft, command: `df -h ${shellQuote(folder)}` })

  const size = Math.ceil((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) / mebibyte)
  const message =
    `The write-ahead log has ${size} MiB: a process reads an old state of the store, or was killed.`
  check('wal-size', size > 64 && { message, command: `fuser -v ${shellQuote(file)}` })
}
