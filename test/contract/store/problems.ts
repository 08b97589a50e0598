import type { RecordedProblem } from '../../../core/ports/reports.ts'
import { until } from '../../postgres/until.ts'
import { usageCount } from './samples.ts'
import type { Check } from './suites.ts'

const hour = 3_600_000
const day = 24 * hour
/** The start of an hour, at most an hour ago. */
const start = Math.floor(Date.now() / hour) * hour

export function problem(id: string, more: Partial<RecordedProblem> = {}): RecordedProblem {
  const record = JSON.stringify({ request_id: id, path: '/a\u0000\ud800', detail: 'détail' })
  return { id, keyId: 'acme-live', at: start, partner: 'acme', environment: 'live', record, ...more }
}

const ids = (problems: readonly RecordedProblem[]) => problems.map(({ id }) => id)

export async function problemsContract(check: Check): Promise<void> {
  await check('problems are listed newest first, by partner, environment, key and id', async (t, store) => {
    const rows = [
      problem('req_a'),
      problem('req_c', { at: start + 2, environment: 'test', keyId: 'acme-test' }),
      problem('req_b', { at: start + 2 }),
      problem('req_d', { at: start + 1, partner: 'globex', keyId: 'globex-live' }),
    ]
    const [a, c, b, d] = rows
    await store.recordUsage([usageCount()], 'one', undefined, rows.slice(0, 2))
    await store.recordUsage([], 'two', undefined, rows.slice(2))
    await store.recordUsage([], 'two', undefined, [problem('req_e')])
    const since = start - day
    t.strictSame(await store.listProblems({ since }, undefined, 9), [c, b, d, a], 'a batch counts once')
    t.strictSame(await store.listProblems({ since: start }, undefined, 9), [c, b, d], 'since')
    t.strictSame(await store.listProblems({ since, partner: 'acme' }, undefined, 2), [c, b])
    t.strictSame(await store.listProblems({ since, partner: 'acme' }, b, 2), [a], 'after')
    t.strictSame(await store.listProblems({ since }, c, 2), [b, d], 'after one of the same instant')
    t.strictSame(await store.listProblems({ since, partner: 'acme', environment: 'live' }, undefined, 9), [
      b,
      a,
    ])
    t.strictSame(await store.listProblems({ since, keyId: 'acme-test' }, undefined, 9), [c])
    t.strictSame(await store.listProblems({ since, id: 'req_d' }, undefined, 9), [d])
    t.strictSame(await store.listProblems({ since, id: 'req_x' }, undefined, 9), [])
  })

  await check('the first hundred problems of an hour and key are kept', async (t, store) => {
    const many = Array.from({ length: 150 }, (_, index) => {
      return problem(`req_${1000 + index}`, { at: start - hour + (index >> 1) })
    })
    await store.recordUsage([], 'late', undefined, many.slice(60))
    await store.recordUsage([], 'early', undefined, [
      ...many.slice(0, 60),
      problem('req_other', { keyId: 'other', at: start - hour }),
      problem('req_before', { at: start - hour - 1 }),
    ])
    const kept = async () => ids(await store.listProblems({ since: start - day }, undefined, 999)).sort()
    const wanted = [...ids(many.slice(0, 100)), 'req_before', 'req_other']
    await until(async () => (await kept()).length === wanted.length, 'trimming')
    t.strictSame(await kept(), wanted)
  })

  await check('problems of more than seven days ago are removed', async (t, store) => {
    const old = problem('req_old', { at: start - 8 * day })
    const kept = problem('req_kept', { at: start - 6 * day })
    await store.recordUsage([], 'one', undefined, [old, kept])
    await store.recordUsage([usageCount()], 'two')
    const all = async () => ids(await store.listProblems({ since: 0 }, undefined, 9))
    t.strictSame(await all(), ['req_kept', 'req_old'], 'not while the clock may be wrong')
    await store.recordUsage([usageCount()], 'three', '2020-01-01')
    await until(async () => (await all()).length === 1, 'pruning')
    t.strictSame(await all(), ['req_kept'])
  })
}
