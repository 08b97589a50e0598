/** An oracle of reads: it changes a store, and knows how old the result of each read of another may be. */
import type { Store } from '../../core/ports/store.ts'
import { apply, createKeys, partner, profile, publish, query, stamp, T0 } from '../contract/store/samples.ts'
import type { SharedStore } from '../contract/store/suites.ts'

type Kind = 'facts' | 'content'
type Versions = Record<Kind, number>

export interface Outcome {
  readonly reads: number
  /** Results that lacked a change which the store had confirmed before the read. */
  readonly stale: number
  readonly failed: number
  readonly longestMs: number
}

const word = 'changing'

/**
 * Fills a store with a key and profiles, each change of which is a version.
 *
 * @param reader The store to be judged. It confirms the revision as a replica does, when it is notified.
 */
export async function createOracle(writer: Store, reader: SharedStore) {
  const committed: Versions = { facts: 0, content: 0 }
  const confirmed: Versions = { facts: 0, content: 0 }
  await createKeys(writer, 'acme')
  await publish(writer, Array.from({ length: 50 }, (_, index) => profile(`other-${index}`)))

  async function confirm() {
    const known = { ...committed }
    const revision = await reader.revision()
    for (const kind of ['facts', 'content'] as const) confirmed[kind] = Math.max(confirmed[kind], known[kind])
    return revision
  }
  const replica = reader.replicas.register({
    ...{ name: 'judged', leaseMs: 1_000, revalidateEveryMs: 400, revalidate: confirm },
  })

  /** Makes a change. It may be repeated, also when it may have been made. */
  async function change(kind: Kind): Promise<void> {
    const version = committed[kind] + 1
    const name = `${word} ${version}`
    if (kind === 'facts') {
      const { state: _state, modules: _modules, createdAt: _createdAt, ...rest } = partner({ name })
      await apply(writer, { type: 'partner.updated', ...rest })
    } else {
      const options = { now: T0, actor: stamp.actor }
      await writer.importContent('profiles', [profile('one', { name, headline: `${version}` })], options)
    }
    committed[kind] = version
  }
  await change('facts')
  await change('content')
  await replica.registered()
  await confirm()

  const lists = (words: string[]) => async () => {
    const cards = await reader.listProfiles('acme', query({ words, limit: 20 }), T0)
    return Number(cards.find(({ slug }) => slug === 'one')?.headline)
  }
  const reads: readonly (readonly [Kind, () => Promise<number>])[] = [
    ['facts', async () => Number((await reader.findKey('acme-live'))?.partner.name.split(' ')[1])],
    ['content', async () => Number((await reader.findProfile('acme', 'one', T0))?.headline)],
    ['content', lists([])],
    ['content', lists([word])],
  ]

  return {
    change,
    confirm,

    /** Makes changes of both kinds until it is stopped, in a random order. */
    changeEvery(ms: number, kinds: readonly Kind[] = ['facts', 'content']) {
      let isStopped = false
      let changes = 0
      const done = (async () => {
        while (!isStopped) {
          const nextAt = performance.now() + ms * (0.5 + Math.random())
          await change(kinds[Math.floor(Math.random() * kinds.length)]!).then(
            () => changes++,
            () => undefined,
          )
          await new Promise((resolve) => setTimeout(resolve, Math.max(0, nextAt - performance.now())))
        }
      })()
      return async () => {
        isStopped = true
        await done
        return changes
      }
    },

    /** Reads, several at once, while there is reason to go on. */
    async readWhile(goOn: (reads: number) => boolean, atOnce = 8): Promise<Outcome> {
      const outcome = { reads: 0, stale: 0, failed: 0, longestMs: 0 }
      await Promise.all(Array.from({ length: atOnce }, async () => {
        while (goOn(outcome.reads)) {
          const [kind, read] = reads[outcome.reads++ % reads.length]!
          const least = confirmed[kind]
          const startedAt = performance.now()
          try {
            // Without the row, NaN is no version.
            if (!(await read() >= least)) outcome.stale++
          } catch {
            outcome.failed++
          }
          outcome.longestMs = Math.max(outcome.longestMs, performance.now() - startedAt)
        }
      }))
      return outcome
    },

    close: () => replica.deregister(),
  }
}
