/**
 * The resident memory of a process after a million requests, each with another key, wrong key, client address or target,
 * and after half a million more. The requests go through `handle` in the process itself, with the default settings of Node
 * and of the service: over HTTP, the same would take several times as long. Each kind has a process of its own, one after
 * another: with fewer processors than processes, the collector falls behind. The store makes the facts of a key when it
 * is looked up, so that its own memory does not count.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { sha256 } from '../../adapters/digest.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { HttpRequest } from '../../core/http/message.ts'
import { extractKeyId } from '../../core/keys/format.ts'
import type { KeyFacts } from '../../core/model.ts'
import { key as keyOf } from '../contract/store/samples.ts'
import { openUnregisteredStore } from '../support/memory-store.ts'
import { PARTNER } from '../support/partner.ts'
import { figure, type Row } from './report.ts'
import { CACHED_TARGET, DIRECTORY_PATH, ENOUGH, exchangeFor, fill, issueKey } from './tenant.ts'

const kinds = ['keys', 'wrong keys', 'addresses', 'targets'] as const
type Kind = (typeof kinds)[number]

const file = fileURLToPath(import.meta.url)
const million = 1_000_000
const targetBytes = 250e6

export async function run(): Promise<Row[]> {
  const compileCache = await mkdtemp(join(tmpdir(), 'partner-api-bench-'))
  try {
    // Fills the cache: stripping types takes 30 MB, which an installed program does not need.
    await once(start('nothing', compileCache), 'exit')
    const measured: Figures[] = []
    for (const kind of kinds) measured.push(await measure(kind, compileCache))
    return toRows(measured)
  } finally {
    await rm(compileCache, { recursive: true })
  }
}

function toRows(measured: readonly Figures[]): Row[] {
  return measured.map(([start, first, second], index) => ({
    part: 'memory',
    what: `RSS after a million distinct ${kinds[index]}, in process`,
    ours: megabytes(first),
    against: `at the start ${megabytes(start)}, after 1.5 million ${megabytes(second)}`,
    target: `≤ ${megabytes(targetBytes)}`,
    met: Math.max(first, second) <= targetBytes,
  }))
}

type Figures = readonly [start: number, first: number, second: number]

function start(kind: Kind | 'nothing', compileCache: string): ChildProcess {
  return spawn(process.execPath, [file, kind], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
  })
}

async function measure(kind: Kind, compileCache: string): Promise<Figures> {
  const child = start(kind, compileCache)
  const [message] = await Promise.race([once(child, 'message'), once(child, 'exit')])
  if (!Array.isArray(message)) throw new Error(`The process for ${kind} ended with ${message}.`)
  return message as unknown as Figures
}

function megabytes(bytes: number): string {
  return figure(bytes / 1e6, 'MB')
}

/** @returns What sends the next request: each has another key, address or target. */
async function createRequests(kind: Kind): Promise<() => void> {
  const store = await openUnregisteredStore()
  await fill(store, 20)
  const known = await issueKey(store)
  const facts = await store.findKey(extractKeyId(known, store.settings.keyPrefix)!)
  let minted = known
  // Like a database, it returns new objects for each look-up.
  const findMinted = (id: string): KeyFacts => ({
    key: keyOf({ id, digest: sha256(minted), scopes: [...facts!.key.scopes] }),
    partner: { ...facts!.partner, modules: [...facts!.partner.modules] },
  })
  const { handle } = createPartnerApi({
    store: {
      ...store,
      findKey: kind === 'keys' ? findMinted : kind === 'wrong keys' ? () => undefined : store.findKey,
      recordKeyUses() {},
      recordUsage() {},
    },
  }, { limits: { key: ENOUGH }, trustedProxies: kind === 'addresses' ? 1 : 0 })
  let serial = 0
  const expect = (expected: number, request: HttpRequest): void => {
    const response = handle(request)
    if (response instanceof Promise || response.status !== expected) {
      throw new Error(`Request ${serial} was not answered at once with ${expected}.`)
    }
  }
  // The CSPRNG would take longer than the request.
  const mint = (): string => {
    const unsigned = `${known.slice(0, -50)}${base62(serial, 11)}${known.slice(-39, -6)}`
    return minted = unsigned + base62(crc32(unsigned), 6)
  }
  const request = (text: string, target = CACHED_TARGET): HttpRequest => {
    serial++
    const exchange = exchangeFor(target, text)
    const address = `10.${serial >> 16 & 255}.${serial >> 8 & 255}.${serial & 255}`
    return {
      ...exchange,
      header: (name) => name === 'x-forwarded-for' ? address : exchange.header(name),
      // Without an address, failures are not limited.
      address: undefined,
    }
  }
  switch (kind) {
    case 'keys':
      return () => expect(200, request(mint()))
    case 'wrong keys':
      return () => expect(401, request(mint()))
    case 'addresses':
      return () => expect(401, request('wrong'))
    case 'targets':
      return () => {
        const target = `${DIRECTORY_PATH}?partner=${PARTNER}&industry=i${serial}`
        // The second request has the response cached.
        expect(200, request(known, target))
        expect(200, request(known, target))
      }
  }
}

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function base62(value: number, length: number): string {
  let text = ''
  for (; text.length < length; value = Math.floor(value / 62)) text = digits.charAt(value % 62) + text
  return text
}

if (process.argv[1] === file && process.argv[2] === 'nothing') process.disconnect!()
else if (process.argv[1] === file) {
  const send = await createRequests(process.argv[2] as Kind)
  const figures = [process.memoryUsage.rss()]
  for (let sent = 1; sent <= 1.5 * million; sent++) {
    send()
    // As in a server, timers run between requests.
    if (sent % 50 === 0) await setImmediate()
    if (sent === million || sent === 1.5 * million) figures.push(process.memoryUsage.rss())
  }
  process.send!(figures)
  process.disconnect!()
}
