/** `store copy` that cannot be: nothing is written, and the message says what to do. */
import { existsSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { documentOf, type Ended, runProgram } from '../support/cli-program.ts'
import { fileOf, type Kind, openAt, openPlaces } from './copies/places.ts'

const places = await openPlaces()
t.teardown(() => places.close())

const run = (...args: readonly string[]): Promise<Ended> => runProgram(args)
const copy = (from: string, to: string, ...more: string[]): Promise<Ended> =>
  run('store', 'copy', '--from', from, '--to', to, '--json', ...more)
const refusal = (ended: Ended) => ({ exit: ended.code, ...documentOf(ended).error })

/** A store with a partner in it. */
async function used(kind: Kind, slug = 'acme'): Promise<string> {
  const place = await places.vacant(kind)
  await run('partners', 'create', slug, '--name', 'Acme Travel', '--module', 'profiles', '--store', place)
  return place
}

const source = await used('sqlite')

await t.test('what is written wrongly', async (t) => {
  const [none, half, memory, unknown] = await Promise.all([
    run('store'),
    run('store', 'copy', '--from', source),
    copy(source, 'memory:'),
    copy('mysql://somebody:secret@db/x', source),
  ])
  t.match(none, { code: 2, stderr: /A command is missing/ })
  t.match(half, { code: 2, stderr: /--to <url>/ })
  t.match(refusal(memory), { exit: 2, code: 'usage', detail: /A memory: store ends with its process/ })
  t.match(refusal(unknown), { exit: 2, code: 'usage', detail: /A store URL is/ })
  t.notMatch(unknown.stdout + unknown.stderr, 'secret')
})

for (const kind of places.kinds) {
  await t.test(`a store that is not there: ${kind}`, async (t) => {
    const [nowhere, target] = [await places.vacant(kind), await places.vacant('sqlite')]
    t.match(refusal(await copy(nowhere, target)), {
      exit: 3,
      code: 'store_missing',
      detail: /There is no store at/,
    })
    t.notOk(existsSync(fileOf(target)), 'and none is made')
    if (kind === 'sqlite') t.notOk(existsSync(fileOf(nowhere)))
  })

  await t.test(`a store and itself: ${kind}`, async (t) => {
    const place = await used(kind)
    t.match(refusal(await copy(place, place)), { exit: 1, code: 'refused', detail: /are one store/ })
    t.match(await run('partners', 'list', '--store', place), { code: 0 })
  })

  await t.test(`a target that is in use: ${kind}`, async (t) => {
    const target = await used(kind, 'globex')
    const expected = { exit: 1, code: 'refused', detail: /is in use already.*copied into an empty one/ }
    t.match(refusal(await copy(source, target)), expected)
    t.match(refusal(await copy(source, target, '--dry-run')), expected)
    t.match(await run('partners', 'list', '--store', target), { code: 0, stdout: /globex/ })
    t.notMatch((await run('partners', 'list', '--store', target)).stdout, 'acme')
  })

  await t.test(`a copy that was finished and then used: ${kind}`, async (t) => {
    const target = await places.vacant(kind)
    t.match(await copy(source, target), { code: 0 })
    t.match(await copy(source, target, '--dry-run'), { code: 0 })
    await run('partners', 'suspend', 'acme', '--store', target)
    const expected = {
      exit: 1,
      code: 'refused',
      detail: /is a finished copy of .* that has been used since: nothing was written/,
    }
    t.match(refusal(await copy(source, target)), expected)
    t.match(refusal(await copy(source, target, '--dry-run')), expected)
    t.match(await run('partners', 'show', 'acme', '--store', target), { code: 0, stdout: /suspended/ })
  })

  await t.test(`a copy that is not finished: ${kind}`, async (t) => {
    const target = await places.vacant(kind)
    await leaveUnfinished(target)
    const [other, next] = [await used('sqlite', 'globex'), await places.vacant('sqlite')]
    t.match(refusal(await copy(other, target)), {
      exit: 1,
      code: 'refused',
      detail: /A copy of another store into .* has not been finished/,
    })
    t.match(refusal(await copy(target, next)), { exit: 1, code: 'refused', detail: /has not been finished/ })
    t.notOk(existsSync(fileOf(next)))
    for (
      const command of [
        ['partners', 'list'],
        ['partners', 'create', 'hooli', '--name', 'Hooli'],
        ['keys', 'list'],
        ['audit', 'verify'],
        ['content', 'export', 'plans'],
        ['signups', 'export'],
        ['migrate'],
        ['migrate', '--key-prefix', 'other'],
        ['demo', '--no-serve'],
        ['serve', '--port', '0'],
      ]
    ) {
      t.match(
        refusal(await run(...command, '--store', target, '--json')),
        { exit: 1, code: 'refused', detail: /cannot be used.*has not been finished.*store copy/ },
        command.join(' '),
      )
    }
    t.match(await copy(source, target), { code: 0 }, 'it can be finished all the same')
  })
}

await t.test('a store of another version of the program', async (t) => {
  const [older, newer] = [await used('sqlite'), await used('sqlite')]
  const target = await places.vacant('sqlite')
  const change = (url: string, sql: string) => {
    const database = new DatabaseSync(fileOf(url))
    database.exec(sql)
    database.close()
  }
  change(older, 'DELETE FROM migration WHERE version = (SELECT max(version) FROM migration)')
  change(newer, `INSERT INTO migration VALUES (99, '099-of-tomorrow', 0)`)
  t.match(refusal(await copy(older, target)), { exit: 1, code: 'refused', detail: /migrate it first/ })
  t.match(refusal(await copy(newer, target)), { exit: 3, code: 'newer_schema' })
  t.match(refusal(await copy(source, older)), { exit: 1, code: 'refused', detail: /migrate it first/ })
  t.match(refusal(await copy(source, newer)), { exit: 3, code: 'newer_schema' })
  t.notOk(existsSync(fileOf(target)))
})

await t.test('a trail with a row that no store has written is not copied', async (t) => {
  const [tampered, target] = [await used('sqlite'), await places.vacant('sqlite')]
  const database = new DatabaseSync(fileOf(tampered))
  database.exec(`INSERT INTO audit (sequence, id, at, actor, type, seal)
    VALUES (9223372036854775807, 'act_x', 0, 'x', 'x', '')`)
  database.close()
  t.match(refusal(await copy(tampered, target)), {
    exit: 1,
    code: 'refused',
    detail: /audit verify names the first/,
  })
})

await t.test('a database out of reach, whose password nobody sees', async (t) => {
  const url = 'postgres://somebody:s3cret-word@127.0.0.1:1/partners'
  const target = await places.vacant('sqlite')
  for (const [from, to] of [[source, url], [url, target]] as const) {
    for (const more of [[], ['--dry-run']]) {
      const ended = await copy(from, to, ...more)
      t.match(refusal(ended), { exit: 3, code: 'store_unavailable', detail: /127\.0\.0\.1:1/ })
      t.notMatch(ended.stdout + ended.stderr, /s3cret|somebody/)
    }
  }
  t.notOk(existsSync(fileOf(target)))
})

await t.test('the source stays as it is, to the byte', async (t) => {
  const [still, target] = [await used('sqlite'), await places.vacant('sqlite')]
  const before = readFileSync(fileOf(still))
  t.match(await copy(still, target), { code: 0 })
  t.ok(before.equals(readFileSync(fileOf(still))))
  const store = await openAt(target)
  t.equal((await store.listPartners(undefined, 1000))[0]?.slug, 'acme')
  await store.close()
})

/** Begins a copy of the source, and ends it before it is done. */
async function leaveUnfinished(target: string): Promise<void> {
  const { openSource, openTarget } = await import('../../cli/commands/store.ts')
  const [from, to] = [await openSource(source), await openTarget(target)]
  const { id } = (await from.state())!
  await to.begin(id)
  await to.close()
  await from.close()
}
