import { compareCodePoints } from '../../../core/lib/text.ts'
import type { SqliteDatabase } from './database.ts'

/** The place of a profile in an order. */
interface RankPosition {
  /** What the order sorts by. */
  readonly key: string | number
  readonly slug: string
}

/** A profile in an order, with its row id and its search terms. */
export interface RankEntry extends RankPosition {
  readonly profile: number
  readonly search: string
}

/** Labels are from 1 to below this. */
export const MAX_LABEL: number = 2 ** 32

/** The term of the window that a label is in. Each of four levels divides a window of the level before into sixteen. */
export function windowTerm(label: number, level: number): string {
  return `#${Math.floor(label / 65_536).toString(16).padStart(4, '0')}`.slice(0, level + 1)
}

/** The first label after the window that a label is in, or Infinity. */
export function windowEnd(label: number, level: number): number {
  const width = MAX_LABEL / 16 ** level
  const end = (Math.floor(label / width) + 1) * width
  return end >= MAX_LABEL ? Infinity : end
}

function compareEntries(a: RankPosition, b: RankPosition): number {
  const byKey = typeof a.key === 'number' ? a.key - Number(b.key) : compareCodePoints(a.key, String(b.key))
  return byKey || compareCodePoints(a.slug, b.slug)
}

/** Neighbours on each side that are relabelled at first when a gap has closed. */
const minMoved = 32
/** The average distance of labels after that, at least. */
const minGap = 16

/** A row near a gap. */
type RankRow = [label: number, key: string | number, slug: string, profile: number, search: string]

function toEntry([, key, slug, profile, search]: RankRow): RankEntry {
  return { key, slug, profile, search }
}

function rankStatements(database: SqliteDatabase, order: 'name' | 'newest') {
  const ranks = `rank_${order}`
  const index = `search_${order}`
  const rows = `
    SELECT r.label, r.key, r.slug, r.profile, p.search FROM ${ranks} r CROSS JOIN profile p ON p.id = r.profile`
  return {
    selectLabel: database.statement<[number]>(`SELECT label FROM ${ranks} WHERE key = ?1 AND slug = ?2`),
    selectBefore: database.statement<[label: number]>(
      `SELECT label FROM ${ranks} WHERE (key, slug) < (?1, ?2) ORDER BY key DESC, slug DESC LIMIT 1`,
    ),
    selectAfter: database.statement<[label: number, key: string | number, slug: string]>(
      `SELECT label, key, slug FROM ${ranks} WHERE (key, slug) > (?1, ?2) ORDER BY key, slug LIMIT 1`,
    ),
    selectLeft: database.statement<RankRow>(
      `${rows} WHERE r.label <= ?1 ORDER BY r.label DESC LIMIT ?2 + 0`,
    ),
    selectRight: database.statement<RankRow>(`${rows} WHERE r.label >= ?1 ORDER BY r.label LIMIT ?2 + 0`),
    deleteRank: database.statement(`DELETE FROM ${ranks} WHERE label = ?1`),
    deleteTerms: database.statement(`DELETE FROM ${index} WHERE rowid = ?1`),
    insertRank: database.statement(`INSERT INTO ${ranks} VALUES (?1, ?2, ?3, ?4)`),
    insertTerms: database.statement(`INSERT INTO ${index} (rowid, words) VALUES (?1, ?2)`),
  }
}

/**
 * Writes an order of the directory: `rank_ORDER`, and the full-text index over its labels. New entries share the gap
 * between their neighbours; when it is too small, the neighbours are spread. FTS5 starts a segment whenever a rowid is
 * lower than the one before: rows are written in the order of their labels.
 */
export function createRankIndex(database: SqliteDatabase, order: 'name' | 'newest') {
  const statements = rankStatements(database, order)

  /** Writes sorted entries at even distances between two labels. */
  function spread(entries: readonly RankEntry[], low: number, high: number): void {
    const gap = (high - low) / (entries.length + 1)
    for (const [position, { key, slug, profile, search }] of entries.entries()) {
      const label = low + Math.floor(gap * (position + 1))
      statements.insertRank.run(label, key, slug, profile)
      statements.insertTerms.run(label, search + windowTerm(label, 4))
    }
  }

  function removeLabels(labels: readonly number[]): void {
    for (const label of labels) {
      statements.deleteTerms.run(label)
      statements.deleteRank.run(label)
    }
  }

  /** Writes entries and the rows around their gap with new labels: as many rows as it takes to have room. */
  function relabel(entries: readonly RankEntry[], low: number, high: number): void {
    for (let count = minMoved;; count *= 4) {
      const lower = statements.selectLeft.all(low, count + 1)
      const upper = statements.selectRight.all(high, count + 1)
      const start = lower.length > count ? lower.pop()![0] : 0
      const end = upper.length > count ? upper.pop()![0] : MAX_LABEL
      const moved = [...lower.reverse(), ...upper]
      if ((end - start) / (moved.length + entries.length + 1) < minGap && end - start < MAX_LABEL) continue
      removeLabels(moved.map(([label]) => label))
      spread([...lower.map(toEntry), ...entries, ...upper.map(toEntry)], start, end)
      return
    }
  }

  return {
    /** Takes all new entries of a transaction. */
    add(unsorted: readonly RankEntry[]): void {
      const entries = unsorted.toSorted(compareEntries)
      for (let start = 0, end = 0; start < entries.length; start = end) {
        const { key, slug } = entries[start]!
        const low = statements.selectBefore.get(key, slug)?.[0] ?? 0
        const next = statements.selectAfter.get(key, slug)
        const high = next?.[0] ?? MAX_LABEL
        const isBefore = (entry: RankEntry) =>
          next === undefined || compareEntries(entry, { key: next[1], slug: next[2] }) < 0
        while (end < entries.length && isBefore(entries[end]!)) end++
        const group = entries.slice(start, end)
        if (high - low > group.length) spread(group, low, high)
        else relabel(group, low, high)
      }
    },

    /** Takes all removed entries of a transaction. */
    remove(entries: readonly RankPosition[]): void {
      const labels = entries.flatMap(({ key, slug }) => statements.selectLabel.get(key, slug) ?? [])
      removeLabels(labels.sort((a, b) => a - b))
    },
  }
}
