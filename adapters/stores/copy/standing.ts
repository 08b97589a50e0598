import { StoreError } from '../store-error.ts'
import type { ArchiveState, SourceArchive } from './archive.ts'
import { unfinishedCopy } from './unfinished-copy.ts'

/** How a target stands to a source before anything is done. */
export type Standing =
  /** There is no store yet. */
  | 'missing'
  /** There is one, and nobody has ever put anything into it. */
  | 'empty'
  /** A copy of this source was begun and not finished. */
  | 'begun'
  /** A copy of this source was finished, and nothing in it was changed since. */
  | 'unchanged'
  /** It may be a copy of this source that was finished before. */
  | 'finished'

/**
 * The state of a store that can be copied.
 *
 * @throws {StoreError} `missing` when there is none, `refused` when it is not whole itself.
 */
export async function stateOfSource(source: SourceArchive): Promise<ArchiveState> {
  const state = await source.state()
  if (state === undefined) throw new StoreError('missing', `There is no store at ${source.place}.`)
  if (state.copiedFrom !== undefined) throw unfinishedCopy(source.place)
  return state
}

/**
 * Says how a target stands to a source.
 *
 * @throws {StoreError} `refused` when it is the source itself or holds anything else than a copy of it.
 */
export async function judgeTarget(source: SourceArchive, target: SourceArchive): Promise<Standing> {
  const [from, to] = [await stateOfSource(source), await target.state()]
  if (to === undefined) return 'missing'
  if (to.id === from.id) {
    throw new StoreError(
      'refused',
      `${source.place} and ${target.place} are one store, or one is a duplicate of the other's file: a store is ` +
        'copied to another place.',
    )
  }
  if (to.copiedFrom === from.id) return 'begun'
  if (to.copiedFrom !== undefined) {
    throw new StoreError(
      'refused',
      `A copy of another store into ${target.place} has not been finished: finish that one, or take another target.`,
    )
  }
  if (to.isEmpty) return 'empty'
  if (to.copyOf === from.id) return 'unchanged'
  if (await secretOf(source) === await secretOf(target)) return 'finished'
  throw new StoreError(
    'refused',
    `The store ${target.place} is in use already: it holds partners, content or an audit trail of its own. A store is ` +
      'copied into an empty one.',
  )
}

/** 256 random bits: two stores have the same only when one was copied from the other, or both from a third. */
async function secretOf({ tables }: SourceArchive): Promise<string | undefined> {
  const settings = await tables.settings.read(undefined, 10)
  return settings.find(({ name }) => name === 'cursor_secret')?.value
}
