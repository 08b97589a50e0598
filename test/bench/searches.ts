/**
 * Searches and filtered pages of 20,000 profiles in SQLite over HTTP: each target is another one, so that no reply is cached. The
 * peers call the same store, and by hand do what the service does. As in `http.ts`, the ratio is that of the servers'
 * processor time per request.
 */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { PARTNER } from '../support/partner.ts'
import { COMMON_WORD, COUNTRIES, createRandom, INDUSTRIES, pick, profiles } from './profiles.ts'
import type { Row } from './report.ts'
import { comparisonRow, compete, type Contest, getRequest } from './rounds.ts'
import { DIRECTORY_PATH, fill } from './tenant.ts'

const profileCount = 20_000
const kinds = ['ours', 'hono-pages', 'fastify-pages'] as const

export async function run(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'partner-api-bench-'))
  try {
    const file = join(directory, 'profiles.db')
    const store = await openSqliteStore(file)
    await fill(store, profileCount)
    await store.close()
    return [...await rowsOf('searches', file), ...await rowsOf('filtered pages', file)]
  } finally {
    await rm(directory, { recursive: true })
  }
}

async function rowsOf(what: keyof typeof questions, file: string): Promise<Row[]> {
  // A file for each server: what one writes costs the others nothing.
  const fileOf = (kind: string) => `${file}-${what}-${kind}`
  for (const kind of kinds) await copyFile(file, fileOf(kind))
  const contest: Contest = {
    args: (kind) => [fileOf(kind)],
    request(key) {
      const next = distinct(questions[what])
      return () => getRequest(key, next())
    },
  }
  const results = await compete(kinds, contest)
  return (['hono', 'fastify'] as const).map((peer) =>
    comparisonRow('searches', `distinct ${what}: ${peer}`, results, ['ours', `${peer}-pages`], 1.1)
  )
}

/** Queries, as pairs of names and values, with enough variants that hardly one comes twice. */
const questions = {
  searches: (random: () => number): string[][] => [
    ['q', `${pick(words, random)} ${pick(words, random)}`],
    ...filters(random, 'country', COUNTRIES, 2),
    ...order(random),
  ],
  'filtered pages': (random: () => number): string[][] => [
    ...filters(random, 'country', COUNTRIES, 3),
    ...filters(random, 'industry', INDUSTRIES.map(({ slug }) => slug), 2),
    ...order(random),
  ],
}

const words = [
  ...new Set([
    COMMON_WORD,
    'studio',
    ...Array.from(profiles(300), ({ name, tags }) => [...name.split(' '), ...tags]).flat(),
  ]),
]

/** Up to `most` values. */
function filters(random: () => number, name: string, values: readonly string[], most: number): string[][] {
  return Array.from({ length: Math.floor(random() * (most + 1)) }, () => [name, pick(values, random)])
}

function order(random: () => number): string[][] {
  return random() < 0.5 ? [] : [['sort', '-published_at']]
}

/** Targets that do not repeat, the same in every run. */
function distinct(question: (random: () => number) => string[][]): () => string {
  const random = createRandom(17)
  const taken = new Set<string>()
  return () => {
    for (;;) {
      const query = new URLSearchParams([['partner', PARTNER], ['limit', '20'], ...question(random)])
      const target = `${DIRECTORY_PATH}?${query}`
      if (taken.has(target)) continue
      taken.add(target)
      return target
    }
  }
}
