/** `top` reads counts that servers write meanwhile. */
import process from 'node:process'
import { Writable } from 'node:stream'
import { test } from 'tap'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { run } from '../../cli/program.ts'
import { utcDay } from '../../core/lib/time.ts'
import { apply, createKeys, key, usageCount } from '../contract/store/samples.ts'
import { cleanEnv, MAIN, newFile, noTerminal, programOn, runOnTerminal } from '../support/cli-program.ts'

const file = newFile()
const url = `sqlite:${file}`
const program = programOn(url)
const store = await openSqliteStore(file)
await createKeys(store, 'acme', 'globex')
await apply(store, {
  type: 'key.issued',
  key: key({
    id: 'evil',
    partner: 'globex',
    name: 'evil \u001b]0;name\u0007',
    lastUsedAt: Date.now() - 7_200_500,
  }),
})
const day = utcDay(Date.now())
let batches = 0
const count = (keyId: string, requests: number, more = {}) =>
  store.recordUsage([usageCount({ keyId, day, requests, ...more })], `${batches++}`)
await count('acme-live', 1_000)
await count('acme-test', 10, { environment: 'test', errors: 4 })
await count('acme-live', 5, { day: utcDay(Date.now() - 86_400_000) })
await count('evil', 20, { partner: 'globex' })

/** Runs the program, and calls `onText` with all that it has written whenever it writes. */
function watch(args: readonly string[], terminal: object, onText: (text: string) => void) {
  const io = (onText: (text: string) => void) => {
    let all = ''
    const write = (chunk: string, _encoding: unknown, done: () => void) => {
      onText(all += chunk)
      done()
    }
    return Object.assign(new Writable({ decodeStrings: false, write }), terminal)
  }
  const env = cleanEnv({ PARTNER_API_STORE: url, NO_COLOR: '1', TERM: 'xterm' })
  return run(args, '0', { env, stdin: process.stdin, stdout: io(onText), stderr: io(() => {}) })
}

test('a terminal shows each reading in place until Ctrl-C', async (t) => {
  const screens: string[] = []
  let last = ''
  const code = await watch(
    ['top', '--interval', '1s'],
    { isTTY: true, columns: 100, rows: 5 },
    async (text) => {
      last = text
      const found = text.split('\u001b[H').slice(1)
      if (found.length === screens.length) return
      screens.splice(0, screens.length, ...found)
      if (screens.length === 1) {
        await count('evil', 30, { partner: 'globex', errors: 2, endpoint: 'banner' })
        await count('evil', 1, { partner: 'globex' })
      } else process.emit('SIGINT')
    },
  )
  t.equal(code, 0)
  t.ok(last.startsWith('\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[H'))
  t.ok(last.endsWith('\u001b[?7h\u001b[?25h\u001b[?1049l'), 'the cursor is restored')
  const [first, second] = screens.map((screen) => screen.replaceAll('\u001b[K', '').split('\n'))
  t.match(first, [
    /Z {2}today 1,030 requests of 3 keys$/,
    /^$/,
    /^REQ\/S /,
    /^ +– +– +1,000 +acme +acme-live .*plans +never$/,
  ])
  t.match(second, [
    /Z {2}\d+\.\d requests\/s, 2 errors; today 1,061 requests of 3 keys$/,
    /^$/,
    /^REQ\/S /,
    /^ *[123]\d\.\d +2 +51 +globex +evil +evil.* live +banner +now$/,
  ])
  t.match(second?.[3], 'evil \\u')
  t.match(second?.[4], /^ *0\.0 +0 +1,000 +acme +acme-live /, 'as many keys as there are lines')
  t.equal(second?.length, 5)
  t.equal(last.split('\u001b]').length, 1, 'names cannot control the terminal')
})

test('Ctrl-C while a reading is shown does not wait for the next one', async (t) => {
  const terminal = { isTTY: true, columns: 100, rows: 5 }
  const code = await watch(['top', '--interval', '1h'], terminal, (text) => {
    if (text.endsWith('\u001b[J')) process.emit('SIGINT')
  })
  t.equal(code, 0)
})

test('one reading, and one for each interval', async (t) => {
  const counting = setInterval(() => count('acme-test', 1, { environment: 'test', errors: 1 }), 50)
  t.teardown(() => clearInterval(counting))
  const { data, code } = await program.json('top', 'acme', '--once', '--interval', '1s')
  t.equal(code, 0)
  t.match(data[0], {
    partner: 'acme',
    key_id: 'acme-test',
    name: 'WordPress plugin',
    hint: '…9xQ2',
    environment: 'test',
    endpoint: 'plans',
    // A refused request is no use.
    last_used_at: null,
  })
  t.ok(data[0].requests_per_second > 5 && data[0].errors > 5 && data[0].requests_today > 15)
  t.strictSame(data[1], {
    ...{ partner: 'acme', key_id: 'acme-live', name: 'WordPress plugin', hint: '…9xQ2', environment: 'live' },
    ...{ requests_per_second: 0, errors: 0, requests_today: 1_000, endpoint: 'plans', last_used_at: null },
  })
  t.equal(data.length, 2, 'only keys of the partner')

  let blocks: string[] = []
  const code2 = await watch(['top', '--interval', '1s'], {}, (text) => {
    blocks = text.split(/\n\n(?=\d{4}-)/)
    if (blocks.length === 2) process.emit('SIGTERM')
  })
  t.equal(code2, 0)
  for (const block of blocks) {
    t.match(
      block,
      /^\d{4}-\S+Z {2}[\d.]+ requests\/s, \d+ errors; .* of 3 keys\n\nREQ\/S .*\n *[\d.]+ .* acme-test /,
    )
  }
})

test('documents are lines, also on a terminal', async (t) => {
  let lines: string[] = []
  await watch(['top', '--json', '--interval', '1s'], { isTTY: true, columns: 80 }, (text) => {
    lines = text.trimEnd().split('\n')
    if (lines.length >= 2) process.emit('SIGINT')
  })
  t.match(lines.map((line) => JSON.parse(line)), [{ data: { length: 3 } }, { data: { length: 3 } }])
})

test('Ctrl-C ends it', { skip: noTerminal }, async (t) => {
  const shown = await runOnTerminal(
    `trap : INT; ${process.execPath} ${MAIN} top; echo "exit $?"`,
    { PARTNER_API_STORE: url },
    'REQ/S',
    '\u0003',
  )
  t.ok(shown.endsWith('\u001b[?7h\u001b[?25h\u001b[?1049lexit 0\r\n'), shown)
})

test('what it refuses', async (t) => {
  await program.refuses(t, {
    'top --interval 500s0': '2 usage',
    'top --interval 0': '2 usage',
    'top --interval 2h': '2 usage',
    'top --store memory:': '2 usage',
    'top missing': '1 partner_not_found',
  })
  await store.close()
})
