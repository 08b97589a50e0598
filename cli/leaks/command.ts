import { sep } from 'node:path'
import { Option } from 'commander'
import { createKeyAdministration } from '../../core/admin/keys.ts'
import { keyState } from '../../core/keys/lifecycle.ts'
import { equalDigests } from '../../core/lib/digest.ts'
import type { Key, KeyState } from '../../core/model.ts'
import type { Store } from '../../core/ports/store.ts'
import type { Action, CliCommand, Invocation } from '../command.ts'
import { type ExitCode, usageError } from '../errors.ts'
import type { Leak, Scan } from './scan.ts'
import { joinList, pluralize, printable } from '../output/text.ts'
import { confirm } from '../prompt.ts'
import { isMissingStore, timeOf, withStore } from '../store/open.ts'

interface ScanOptions {
  readonly exclude?: readonly string[]
  readonly format: 'text' | 'sarif'
  readonly ignoreRevoked?: true
  readonly revoke?: true
  readonly yes?: true
  readonly store: boolean
}

type KnownKey = Pick<Key, 'id' | 'partner' | 'name'> & { readonly state: KeyState }

type Known = ReadonlyMap<string, KnownKey>

export function define(leaks: CliCommand): void {
  leaks.command('scan')
    .description('Find keys in files, folders and the history of a repository, without a network')
    .argument('<path...>', 'Files and folders, and - for standard input')
    .option('--exclude <name...>', 'Leave out files and folders of these names, such as dist')
    .addOption(new Option('--format <format>', 'Output').choices(['text', 'sarif']).default('text'))
    .option('--no-store', 'Do not look the keys up in the store')
    .option('--ignore-revoked', 'Leave out keys that the store has as revoked')
    .option('--revoke', 'Revoke the keys that are found and in force')
    .option('-y, --yes', 'With --revoke: skip the prompt')
    .act(scanPaths)
    .details(`
Recognizes keys by their format and checksum, and prints their ids, never the keys. With --store, or if the default store
exists, it searches only for keys with the prefix of that store, and also prints partner, name and state. Skips .git,
symbolic links and binary files, unless they are named; UTF-16 needs a byte-order mark. Keys of another system, see keys
import, have no checksum and are not found.

Exits 1 if keys are found, and otherwise 3 if something could not be searched, such as a binary file that is named.`)
    .examples(
      'partner-api leaks scan .',
      'partner-api leaks scan . --no-store --exclude dist --format sarif > leaks.sarif',
      'git log -p -m --all --reflog --text | partner-api leaks scan -',
      'partner-api leaks scan /var/log/nginx --revoke',
    )
}

const scanPaths: Action<[readonly string[], ScanOptions]> = async (invocation, paths, options) => {
  if (options.yes && !options.revoke) throw usageError('--yes requires --revoke.')
  // The default store may be missing, another one must not.
  const mayBeMissing = invocation.storeUrl === 'sqlite:partner-api.db'
  if (options.store && !(mayBeMissing && await isMissingStore(invocation))) {
    return await withStore(invocation, {}, (store) => scanWith(store, invocation, paths, options))
  }
  const option = options.revoke ? '--revoke' : options.ignoreRevoked && '--ignore-revoked'
  if (option) throw usageError(`${option} needs the store of the keys: pass --store URL.`)
  return await scanWith(undefined, invocation, paths, options)
}

async function scanWith(
  store: Store | undefined,
  invocation: Invocation,
  paths: readonly string[],
  { format, exclude = [], ignoreRevoked, revoke, yes }: ScanOptions,
): Promise<ExitCode> {
  const { io, output } = invocation
  const { scan } = await import('./scan.ts')
  const result = await output.progress((report) =>
    scan(paths, store?.settings.keyPrefix, exclude, io.stdin, (files) => {
      // Formatting a number takes longer than reading a small file.
      if (files % 100 === 0) report(pluralize(files, 'file'))
    })
  )
  const { unreadable, files, binaryFiles } = result
  let known = store && await lookUp(store, result.leaks)
  const leaks = ignoreRevoked
    ? result.leaks.filter(({ text }) => known?.get(text)?.state !== 'revoked')
    : result.leaks
  const describeAll = () =>
    leaks.map((leak) => `${printable(`${placeOf(leak)}: ${describe(leak, known)}`)}\n`).join('')
  if (store && known && revoke) {
    // Before the prompt, whose answer may be no.
    if (!yes) io.stderr.write(describeAll())
    await revokeKeys(store, invocation, known, yes)
    known = await lookUp(store, leaks)
  }
  const sarif = format === 'sarif' && toSarif({ ...result, leaks }, known)
  if (sarif) await output.result(sarif, `${JSON.stringify(sarif, null, 2)}\n`)
  else await output.result(leaks.map((leak) => leakJson(leak, known)), describeAll())
  for (const { path, reason } of unreadable) output.note(printable(`${path} was not searched: ${reason}.`))
  const scanned = `${pluralize(leaks.length, 'key')} in ${pluralize(files - binaryFiles, 'file')}`
  output.note(`${scanned}, ${pluralize(binaryFiles, 'binary file')} skipped.`)
  return leaks.length > 0 ? 1 : unreadable.length > 0 ? 3 : 0
}

async function lookUp(store: Store, leaks: readonly Leak[]): Promise<Known> {
  const known = new Map<string, KnownKey>()
  const now = timeOf(store)
  for (const { id, text } of leaks) {
    const key = known.has(text) ? undefined : (await store.findKey(id))?.key
    if (key === undefined || !equalDigests(key.digest, store.sha256(text))) continue
    known.set(text, { id, partner: key.partner, name: key.name, state: keyState(key, now) })
  }
  return known
}

function isOver(key: KnownKey | undefined): boolean {
  return key?.state === 'revoked' || key?.state === 'expired'
}

async function revokeKeys(store: Store, invocation: Invocation, known: Known, yes?: true): Promise<void> {
  const found = [...known.values()].filter((key) => !isOver(key))
  if (found.length === 0) return
  if (!yes) {
    const names = joinList(found.map(({ id, partner }) => `${id} of ${partner}`))
    await confirm(invocation.io, `This revokes ${pluralize(found.length, 'key')}: ${names}.`, 'revoke')
  }
  const keys = createKeyAdministration(store, invocation)
  for (const { id } of found) await keys.revoke(id)
  invocation.output.done = { detail: `${pluralize(found.length, 'key')} revoked.` }
}

function placeOf({ path, line, column, commit, file, isName }: Leak): string {
  if (isName) return `${path} (its name)`
  const name = path === '-' ? 'standard input' : path
  const inHistory = [file, commit?.slice(0, 12)].filter(Boolean).join(' in commit ')
  return `${name}:${line}:${column}${inHistory && ` (${inHistory})`}`
}

function describe({ text, id }: Leak, known: Known | undefined): string {
  const key = known?.get(text)
  const owner = key ? ` of ${key.partner}, ${key.name}: ${key.state}` : known ? ', not of this store' : ''
  return `key ${id} (${environmentOf(text)}, …${text.slice(-4)})${owner}`
}

function leakJson({ path, line, column, commit, file, id, text, isName }: Leak, known?: Known) {
  const { partner = null, name = null, state = null } = known?.get(text) ?? {}
  const key = { id, environment: environmentOf(text), hint: `…${text.slice(-4)}`, partner, name, state }
  const place = isName ? { line: null, column: null } : { line, column }
  return { path, ...place, commit: commit ?? null, file: file ?? null, ...key }
}

function environmentOf(text: string): string {
  return text.split('_')[1]!
}

const rule = {
  id: 'partner-api-key',
  name: 'PartnerApiKey',
  shortDescription: { text: 'A key of a partner API' },
  fullDescription: {
    text: 'The file contains a key of a partner API. Anyone who can read it can use the API as the partner.',
  },
  help: {
    text:
      'Have the operator revoke or rotate the key (partner-api keys revoke ID), then remove it from the file. The ' +
      'history of the repository still has it.',
  },
  defaultConfiguration: { level: 'error' },
  properties: { 'security-severity': '9.0', tags: ['security'] },
} as const

/** The report for code scanning (OASIS SARIF 2.1.0). */
function toSarif({ leaks, unreadable }: Scan, known: Known | undefined): object {
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{
      tool: { driver: { name: 'partner-api leaks scan', rules: [rule] } },
      columnKind: 'unicodeCodePoints',
      invocations: [{
        executionSuccessful: unreadable.length === 0,
        toolExecutionNotifications: unreadable.map(({ path, reason }) => ({
          level: 'error',
          message: { text: printable(`${path} was not searched: ${reason}.`) },
        })),
      }],
      results: leaks.map((leak) => ({
        ruleId: rule.id,
        ruleIndex: 0,
        level: isOver(known?.get(leak.text)) ? 'note' : 'error',
        message: { text: printable(describe(leak, known)) },
        locations: [{
          physicalLocation: {
            artifactLocation: { uri: toUri(leak) },
            region: {
              startLine: leak.line,
              startColumn: leak.column,
              endColumn: leak.column + leak.text.length,
            },
          },
        }],
        // Without the secret: the id is public.
        partialFingerprints: { 'partnerApiKeyId/v1': leak.id },
      })),
    }],
  }
}

/** A relative reference (RFC 3986 §4.2), as code scanning needs it, or the address of an absolute path. */
function toUri({ path, file }: Leak): string {
  const name = path === '-' ? file ?? 'standard-input' : path.replaceAll(sep, '/').replace(/^(?:\.\/)+/, '')
  const encoded = name.split('/').map(encodeURIComponent).join('/')
  return name.startsWith('/') ? `file://${encoded}` : encoded
}
