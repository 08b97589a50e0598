/** Batching of key look-ups. */
import t from 'tap'
import type { PostgresRow, PostgresValue } from '../../adapters/stores/postgres/connection.ts'
import type { PostgresDatabase } from '../../adapters/stores/postgres/database.ts'
import { batchKeyLookups, gatherLookUps } from '../../adapters/stores/postgres/look-ups.ts'
import type { Revisions } from '../../adapters/stores/postgres/revisions.ts'
import { createSqlDatabase } from '../../adapters/stores/postgres/sql-database.ts'
import { createKeyLookup } from '../../adapters/stores/sql/partners-and-keys.ts'
import { KEYS, PARTNERS } from '../../adapters/stores/sql/tables.ts'
import type { KeyFacts } from '../../core/model.ts'
import { key, partner } from '../contract/store/samples.ts'

interface Sent {
  readonly ids: readonly string[]
  /** Resolves the query with the existing rows. */
  answer(...known: string[]): Promise<void>
  fail(error: Error): Promise<void>
}

/** Look-ups, and their queries, which the test resolves. */
function create() {
  const sent: Sent[] = []
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
  const lookUp = <R extends PostgresRow>(
    _sql: string,
    [parameter]: readonly PostgresValue[] = [],
  ): Promise<R[]> => {
    const { promise, resolve, reject } = Promise.withResolvers<R[]>()
    const text = String(parameter)
    const ids = text.startsWith('{') ? text.slice(1, -1).split(',').map((id) => JSON.parse(id)) : [text]
    sent.push({
      ids,
      answer(...known) {
        // In an order other than that of the query.
        resolve(ids.filter((id) => known.includes(id)).reverse().map((id) => rowOf(id) as PostgresRow as R))
        return settled()
      },
      fail(error) {
        reject(error)
        return settled()
      },
    })
    return promise
  }
  const lookups = createKeyLookup(createSqlDatabase({ lookUp } as PostgresDatabase, {} as Revisions))
  return { sent, findKey: batchKeyLookups({ lookUp }, lookups.findKey) }
}

const rowOf = (id: string) => [...KEYS.values(key({ id })), ...PARTNERS.values(partner())]

const idOf = (facts: KeyFacts | undefined) => facts?.key.id

t.equal(rowOf('a').length, KEYS.columns.length + PARTNERS.columns.length)

await t.test('look-ups during a query share the next query, and each gets its own row', async (t) => {
  const { sent, findKey } = create()
  const found = ['a', 'b', 'c', 'd', 'e'].map((id) => findKey(id))
  t.strictSame(sent.map(({ ids }) => ids), [['a'], ['b']])
  await sent[1]!.answer('b')
  t.strictSame(sent[2]?.ids, ['c', 'd', 'e'])
  await sent[0]!.answer('a')
  t.equal(sent.length, 3)
  await sent[2]!.answer('c', 'e')
  t.strictSame((await Promise.all(found)).map(idOf), ['a', 'b', 'c', undefined, 'e'])
})

await t.test('no look-up gets the result of an earlier query', async (t) => {
  const { sent, findKey } = create()
  const before = [findKey('a'), findKey('b')]
  const after = [findKey('a'), findKey('a')]
  t.equal(sent.length, 2)
  await sent[0]!.answer('a')
  t.strictSame(sent[2]?.ids, ['a'], 'one more query for both')
  await sent[1]!.answer()
  t.strictSame((await Promise.all(before)).map(idOf), ['a', undefined])
  let settled = 0
  for (const answer of after) void Promise.resolve(answer).then(() => settled++)
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(settled, 0)
  await sent[2]!.answer()
  t.strictSame(await Promise.all(after), [undefined, undefined])
})

await t.test('more look-ups than one query takes are all answered', async (t) => {
  const { sent, findKey } = create()
  const ids = Array.from({ length: 1203 }, (_, index) => `k${index}`)
  const found = ids.map((id) => findKey(id))
  for (let answered = 0; answered < sent.length; answered++) await sent[answered]!.answer(...ids)
  t.strictSame((await Promise.all(found)).map(idOf), ids)
})

await t.test('a failed query fails the look-ups in it, and no others', async (t) => {
  const { sent, findKey } = create()
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((id) => findKey(id)) as [
    Promise<KeyFacts | undefined>,
    ...Promise<KeyFacts | undefined>[],
  ]
  const failures = [a, c!, d!].map((answer) => t.rejects(answer, { message: /^lost/ }))
  await sent[0]!.fail(new Error('lost the first'))
  const e = findKey('e')
  await sent[2]!.fail(new Error('lost the third'))
  await Promise.all(failures)
  await sent[3]!.answer('e')
  t.equal(idOf(await e), 'e')
  await sent[1]!.answer('b')
  t.equal(idOf(await b), 'b')
})

await t.test('an id with a NUL does not reach the server', async (t) => {
  const { sent, findKey } = create()
  t.equal(await findKey('a\0b'), undefined)
  t.equal(sent.length, 0)
})

await t.test('look-ups of one turn share a statement, and each gets its own row', async (t) => {
  const sent: (readonly PostgresValue[])[] = []
  let answer: () => Promise<PostgresRow[]> = () => Promise.resolve([[1, 'a', 10], [3, 'c', 30]])
  const find = gatherLookUps(
    {
      lookUp<R extends PostgresRow>(sql: string, parameters: readonly PostgresValue[] = []) {
        t.match(
          sql,
          'WHERE name = CAST((given.value ->> 0) AS TEXT) AND size > CAST((given.value ->> 1) AS BIGINT)',
        )
        sent.push(parameters)
        return answer() as Promise<R[]>
      },
    },
    'SELECT name, size FROM things WHERE name = CAST($1 AS TEXT) AND size > CAST($2 AS BIGINT)',
  )
  const found = ['a', 'b', 'c'].map((name) => find([name, 1]))
  t.strictSame(await Promise.all(found), [['a', 10], undefined, ['c', 30]])
  t.strictSame(sent, [['[["a",1],["b",1],["c",1]]']])
  answer = () => Promise.reject(new Error('lost'))
  await Promise.all([find(['a', 2]), find(['b', 2])].map((one) => t.rejects(one, { message: 'lost' })))
  answer = () => Promise.resolve([])
  await t.rejects(find([1n as unknown as number]), TypeError, 'what is no JSON fails no later look-up')
  t.equal(await find(['a', 3]), undefined)
  t.strictSame(sent.slice(1), [['[["a",2],["b",2]]'], ['[["a",3]]']])
})
