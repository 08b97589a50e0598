import { existsSync } from 'node:fs'
import type { SourceArchive, TargetArchive } from '../adapters/stores/copy/archive.ts'
import { stateOfSource } from '../adapters/stores/copy/standing.ts'
import { Failure, usageFailure } from './failure.ts'
import { parseStoreUrl, type StoreAddress } from './input/store-address.ts'
import { openFile } from './sqlite-file.ts'
import { silenceSqliteWarning } from './store.ts'

type DurableAddress = Exclude<StoreAddress, { readonly kind: 'memory' }>

/**
 * Opens a store to copy from.
 *
 * @throws {Failure} `store_missing` when there is no file.
 * @throws {StoreError} when it cannot be copied: before anything is made for the copy.
 */
export async function openSource(url: string): Promise<SourceArchive> {
  const address = durable(url)
  if (isMissingFile(address)) {
    throw new Failure(3, 'store_missing', `There is no store at ${address.file}: nothing was copied.`)
  }
  const source = await openToRead(address)
  try {
    await stateOfSource(source)
    return source
  } catch (error) {
    await source.close()
    throw error
  }
}

/** Opens a store to copy into. It is made, or changed, when the copy begins and not before. */
export async function openTarget(url: string): Promise<TargetArchive> {
  const address = durable(url)
  if (address.kind === 'postgres') {
    const { openPostgresTarget } = await loadPostgres()
    return openPostgresTarget(address.url)
  }
  const { openSqliteTarget } = await loadSqlite()
  return await openFile(address.file, () => openSqliteTarget(address.file))
}

/** Opens a store that might be copied into, to read only. @returns `undefined` where there is no file. */
export async function lookAtTarget(url: string): Promise<SourceArchive | undefined> {
  const address = durable(url)
  return isMissingFile(address) ? undefined : await openToRead(address)
}

/** Only the code of the store's kind is loaded. */
async function openToRead(address: DurableAddress): Promise<SourceArchive> {
  if (address.kind === 'postgres') {
    const { openPostgresSource } = await loadPostgres()
    return openPostgresSource(address.url)
  }
  const { openSqliteSource } = await loadSqlite()
  return await openFile(address.file, () => openSqliteSource(address.file))
}

function loadPostgres(): Promise<typeof import('../adapters/stores/postgres/archive.ts')> {
  return import('../adapters/stores/postgres/archive.ts')
}

function loadSqlite(): Promise<typeof import('../adapters/stores/sqlite/archive.ts')> {
  silenceSqliteWarning()
  return import('../adapters/stores/sqlite/archive.ts')
}

function durable(url: string): DurableAddress {
  const address = parseStoreUrl(url)
  if (address.kind !== 'memory') return address
  throw usageFailure('A memory: store ends with its process: it can neither be copied nor copied into.')
}

function isMissingFile(
  address: DurableAddress,
): address is Extract<DurableAddress, { readonly kind: 'sqlite' }> {
  return address.kind === 'sqlite' && !existsSync(address.file)
}
