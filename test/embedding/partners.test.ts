/** Runs the examples in Python and Node on a service that also fails, and checks what people see. */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import { cleanEnv, ending } from '../support/cli-program.ts'
import { openPartnerProject, sentWithOneKey, textOf } from './partner-project.ts'
import { start } from './project.ts'
import { HOSTILE } from './recorder.ts'

const partner = await openPartnerProject(t)
const { folder, key, service, requests, statuses, cli, signups, see, end } = partner
const hasPython = spawnSync('python3', ['--version']).error === undefined

await t.test('Python', { skip: hasPython ? false : 'python3 is not installed' }, async (t) => {
  const env = { PARTNER_API_URL: service.url, PARTNER_API_KEY: key }
  async function python(words: readonly string[], more: Readonly<Record<string, string>> = {}) {
    const child = spawn('python3', words, {
      cwd: join(folder, 'python'),
      env: cleanEnv({ ...env, ...more }),
    })
    child.stdin.end()
    const ended = await ending(child)
    see(ended.stdout, ended.stderr)
    return ended
  }
  /** Runs code that has an \`api\`. @returns What it prints, as JSON. */
  async function evaluate(code: string, more?: Readonly<Record<string, string>>) {
    const head = `import json, os, partner_api
api = partner_api.PartnerApi(os.environ["PARTNER_API_URL"], os.environ["PARTNER_API_KEY"], "demo")
`
    const { stdout, stderr } = await python(['-c', head + code], more)
    if (stderr !== '') throw new Error(stderr)
    return stdout.trim().split('\n').map((line) => JSON.parse(line))
  }

  await t.test('prints the directory', async (t) => {
    const { stdout, stderr, code } = await python(['partner_api.py', 'demo', 'DE', 'FR'])
    t.same([code, stderr], [0, ''])
    t.match(stdout, 'Bäckerei Weißenfluß & Töchter, Germany\nCafé')
    t.match(requests(), [{
      line: 'GET /service/public/profiles?partner=demo&country=DE&country=FR',
      status: 200,
    }])
  })
  await t.test('the code of its README runs', async (t) => {
    const readme = readFileSync(join(folder, 'python/README.md'), 'utf8')
    const [, code = ''] = /```python\n(.*?)```/s.exec(readme) ?? []
    t.match(await python(['-c', code.replace('"acme"', '"demo"')]), {
      stdout: /Töchter\n.*\nsgn_\w+\n$/s,
      stderr: '',
    })
    requests()
  })
  await t.test('follows relative links, and revalidates every page', async (t) => {
    const code = `for _ in range(2):
    print(json.dumps([row["slug"] for row in api.rows("/public/profiles", limit=2, country=["DE", "FR"])]))`
    const [first, second] = await evaluate(code)
    t.ok(first.length > 4)
    t.equal(new Set(first).size, first.length)
    t.same(second, first)
    const pages = Math.ceil(first.length / 2)
    t.same(statuses(), [...Array(pages).fill(200), ...Array(pages).fill(304)])
  })
  await t.test('waits as long as a limit asks', async (t) => {
    const code = `partner_api.time.sleep = print
for _ in range(2):
    try:
        print(json.dumps([row["profile_count"] for row in api.get("/public/countries", in_use=True)]))
    except partner_api.Problem as problem:
        print(json.dumps(problem.code))`
    const limitedTo = async (limit: string) => {
      const limited = await cli('keys', 'issue', 'demo', '--name', 'Limited', '--limit', limit)
      const [counts, ...rest] = await evaluate(code, { PARTNER_API_KEY: limited.key })
      t.notOk(counts.includes(0))
      return rest
    }
    t.same(await limitedTo('key=1/600'), ['rate_limited'], 'ten minutes are too long')
    t.same(statuses(), [200, 429])
    const [first, second, end] = await limitedTo('key=1/60')
    for (const seconds of [first, second]) t.ok(seconds >= 1 && seconds <= 60, `${seconds} s`)
    t.equal(end, 'rate_limited')
    t.same(statuses(), [200, 429, 429, 429])
  })
  await t.test('submits one signup when the response is lost', async (t) => {
    service.mode = 'lose'
    const [receipt] = await evaluate(
      'print(json.dumps(api.sign_up({"email": "py@example.com", "name": "Py"})))',
    )
    t.match(receipt, { id: /^sgn_/, status: 'received' })
    sentWithOneKey(t, requests())
    t.equal((await signups('py@example.com')).length, 1)
  })
  await t.test('reports problems', async (t) => {
    const [code, errors] = await evaluate(`try:
    api.sign_up({"email": "py"})
except partner_api.Problem as problem:
    print(json.dumps(problem.code)); print(json.dumps(problem.errors))`)
    t.equal(code, 'invalid_body')
    t.match(errors, [{ pointer: '/email' }, { pointer: '/name' }])
    const ended = await python(['partner_api.py', 'other'])
    t.equal(ended.code, 1)
    t.match(ended.stderr, /^The key does not belong .* \(partner_mismatch, req_\w+\)\n$/)
    t.match(
      (await python(['partner_api.py', 'demo'], { PARTNER_API_KEY: `${key}\n\n${key}` })).stderr,
      'key must be one key',
    )
    requests()
  })
  await t.test('says when the service is down', async (t) => {
    service.mode = 'down'
    t.match(
      (await python(['partner_api.py', 'demo'])).stderr,
      'did not answer as expected',
    )
    t.equal(requests().length, 3)
  })
  await t.test('fails on hostile answers, and keeps none of them', async (t) => {
    const code = (timeout: number) =>
      `import shelve
partner_api.time.sleep = lambda _: None
api._timeout = ${timeout}
def attempt(call):
    try:
        print(json.dumps(call()))
    except (partner_api.Problem, partner_api.Unreachable) as error:
        print(json.dumps(str(error)))
read = lambda: [row["slug"] for row in api.rows("/public/profiles", country="DE")]
attempt(read)
attempt(lambda: api.sign_up({"email": "py@example.com", "name": "Py"}))
api._cache = shelve.open("cache")
attempt(read)`
    service.mode = 'pass'
    const [, , before] = await evaluate(code(60))
    for (const mode of HOSTILE) {
      service.mode = mode
      const [read, signup, again] = await evaluate(
        code(mode === 'drip' ? 0.5 : 60),
      )
      t.match([read, signup], [/\w/, /\w/], mode)
      t.match(again, mode === 'unmodified' ? before : /\w/, mode)
    }
    service.mode = 'pass'
    t.same((await evaluate(code(60)))[2], before)
    t.notOk(
      requests().some(({ line }) => line.includes('redirected')),
      'a redirect is not followed',
    )
  })
})

await t.test('Node', async (t) => {
  const [clock, drips] = [join(folder, 'seconds'), join(folder, 'drips')]
  const code = `import { existsSync, readFileSync } from 'node:fs'
    const now = Date.now
    Date.now = () => { try { return now() + 1000 * readFileSync('${clock}', 'utf8') } catch { return now() } }
    // Nothing else times out on a busy machine.
    const { timeout } = AbortSignal
    AbortSignal.timeout = () => existsSync('${drips}') ? timeout.call(AbortSignal, 500) : new AbortController().signal`
  const { url, said } = await start(
    t,
    join(folder, 'node'),
    [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(code)}`, 'dashboard.js'],
    { PARTNER_API_URL: service.url, PARTNER_API_KEY: key },
  )
  t.teardown(() => see(said()))
  const waitSeconds = (seconds: number) => writeFileSync(clock, String(seconds))
  async function visit() {
    const html = await (await fetch(url)).text()
    see(html)
    return textOf(html)
  }
  const [first, second] = await Promise.all([visit(), visit()])
  t.equal(second, first)
  t.same(statuses(), [200, 200, 200], 'visits at once share the requests')
  t.match(first, /Newest profiles .+, Hungary .*Last 30 days .+ Signups: \d+\. Requests: \d+\./)
  t.match(
    first,
    /GET \/service\/public\/profiles \d+ \d+ .*Activity .*UTC: signup\.created p\*\*\*@e\*\*\*\.com/,
  )
  waitSeconds(10)
  t.equal(await visit(), first)
  t.same(requests(), [])
  service.mode = 'down'
  waitSeconds(100)
  const notice = 'The service cannot be reached. This page tries again. These are older data.'
  t.equal((await visit()).replaceAll(` ${notice}`, ''), first)
  for (const [index, mode] of HOSTILE.entries()) {
    service.mode = mode
    if (mode === 'drip') writeFileSync(drips, '')
    else rmSync(drips, { force: true })
    waitSeconds(110 + 10 * index)
    t.match(await visit(), 'These are older data.', mode)
  }
  t.notOk(requests().some(({ line }) => line.includes('redirected')), 'a redirect is not followed')
  service.mode = 'pass'
  await cli('modules', 'deactivate', 'demo', 'reporting')
  waitSeconds(600)
  const refused = await visit()
  t.match(refused, /Newest profiles .+, Hungary/)
  t.match(refused, /Last 30 days .+ Ask the operator to activate reporting\. \(req_\w+\) Activity/)
  t.notMatch(refused, /older data|signup\.created/)
  requests()
})

await t.test('no page, URL or log holds a key', end)
