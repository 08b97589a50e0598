/** Runs the dashboard on a service that also fails, and checks what people see. */
import { spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { cleanEnv, ending } from '../support/cli-program.ts'
import { openPartnerProject, textOf } from './partner-project.ts'
import { start } from './project.ts'
import { HOSTILE } from './recorder.ts'

const partner = await openPartnerProject(t)
const { folder, key, service, serviceUrl, requests, statuses, cli, see, end } = partner

await t.test('the first call of the docs runs', async (t) => {
  const env = cleanEnv({ PARTNER_API_URL: service.url, PARTNER_API_KEY: key })
  const child = spawn(process.execPath, ['first-call.js'], { cwd: join(folder, 'node'), env })
  child.stdin.end()
  const { stdout, stderr } = await ending(child)
  t.match(stdout, /Bäckerei Weißenfluß & Töchter\n/)
  t.equal(stderr, '')
  t.match(requests(), [{ line: 'GET /service/public/profiles?partner=demo&country=DE', status: 200 }])
})

await t.test('Node', async (t) => {
  const body = JSON.stringify({ partner: 'demo', email: 'page@example.com', name: 'Page' })
  const headers = { 'x-service-partner-key': key, 'content-type': 'application/json' }
  const signup = await fetch(`${serviceUrl}/service/partner/signups`, { method: 'POST', headers, body })
  t.equal(signup.status, 201)
  // Requests are counted behind their response.
  const report = `${serviceUrl}/service/partner/reports/summary?partner=demo`
  while (!(await (await fetch(report, { headers })).text()).includes('/public/profiles"')) await delay(100)
  const clock = join(folder, 'seconds')
  const drips = join(folder, 'drips')
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
