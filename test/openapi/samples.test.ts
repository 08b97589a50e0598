/** Runs every code sample of the reference page in its language, against a service with the sample content. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { safeParse } from 'valibot'
import t from 'tap'
import type { Test } from 'tap'
import { serve } from '../../adapters/runtimes/node.ts'
import { createPartnerApi } from '../../core/api.ts'
import type { Language } from '../../core/openapi/samples.ts'
import { MODULE_NAMES } from '../../core/model.ts'
import { ROUTES } from '../../core/routes/router.ts'
import { RESPONSE_SCHEMAS } from '../../core/schemas/responses.ts'
import { FAR_LIMITS } from '../contract/http/service.ts'
import { createProject } from '../embedding/project.ts'
import { runProcess } from '../support/cli-program.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'
import { defineOwnModule, OWN_DATA, OWN_ENDPOINTS } from './own-endpoints.ts'
import { createSamples, formatSamples, SAMPLES_FILE } from './samples.ts'

interface Deployment {
  readonly serviceName: string
  readonly key: string
  readonly origin: string
  /** Its samples by operation and language, as a partner copies them from the page. */
  readonly shown: ReadonlyMap<string, ReadonlyMap<string, string>>
}

/** Runs samples as written. Resolves to what each has printed, and rejects when one fails. */
type Runner<Printed> = (files: readonly string[], key: string) => Promise<readonly Printed[]>

const samples = createSamples()
const operations = Object.keys(samples)
const own = Object.keys(OWN_DATA)

t.test('core/openapi/samples.json is up to date', async (t) => {
  const committed = await readFile(SAMPLES_FILE, 'utf8')
  t.ok(committed === formatSamples(samples), 'otherwise, run: npm run samples')
})

t.test('only the partner’s slug is called like it', (t) => {
  for (const [operation, programs] of Object.entries(samples)) {
    const mentions = Object.values(programs).map((code) => code.split('demo').length - 1)
    t.ok(mentions.every((count) => count === (programs.client === undefined ? 0 : 1)), operation)
  }
  t.end()
})

const store = await openMemoryStore()
await defineOwnModule(store)
const world = await fillWorld(store)
const project = await createProject()
t.teardown(() => project.remove())
const { folder } = await project.open('samples')

async function deploy(serviceName: string, partner: string, key: string): Promise<Deployment> {
  const options = { serviceName, limits: FAR_LIMITS, maxStalenessMs: 0, endpoints: OWN_ENDPOINTS }
  const api = createPartnerApi({ store }, options)
  const server = await serve(api, { port: 0 })
  t.teardown(async () => {
    await server.close()
    await api.close()
  })
  const page = await fetch(`${server.url}/${serviceName}/docs`)
  return { serviceName, key, origin: server.url, shown: samplesIn(await page.text(), server.url, partner) }
}

/** Replaces what the page's script replaces: the marked origins and slugs. */
function samplesIn(page: string, origin: string, partner: string): Deployment['shown'] {
  const entities: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&amp;': '&' }
  return new Map(
    page.split('<section class="op').slice(1).map((section) => {
      const blocks = section.matchAll(/<pre class="in (\w+)[^>]*><code>(.*?)<\/code>/gs)
      const programs = [...blocks].map(([, language = '', html = '']) => {
        const code = html
          .replaceAll('<span class="origin">https://api.example.com</span>', origin)
          .replaceAll('<span class="slug">demo</span>', partner)
          .replace(/<[^>]+>/g, '')
          .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
          .replace(/&\w+;/g, (entity) => entities[entity] ?? entity)
        return [language, code] as const
      })
      return [/ id="(\w+)"/.exec(section)?.[1] ?? '', new Map(programs)]
    }),
  )
}

const modules = [...MODULE_NAMES, 'orders']
await world.partners.activate('demo', ['orders'])
await world.partners.update('demo', { selfService: ['rotate', 'revoke'] })
const usual = await deploy('service', 'demo', (await world.issue({ partner: 'demo' })).text)
const partner = 'north-sea-travel'
await world.partners.create({ slug: partner, name: 'North Sea Travel', modules })
const renamed = await deploy('acme-api', partner, (await world.issue({ partner })).text)

async function listen(listener: RequestListener): Promise<{ readonly origin: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const redirected: (string | undefined)[] = []
const elsewhere = await listen((request, response) => {
  redirected.push(request.url)
  response.setHeader('content-type', 'application/json').end('{"data":[],"page":null}')
})
/** The idempotency keys of signups. */
const repeats: unknown[] = []
const failsOnce = await listen((request, response) => {
  repeats.push(request.headers['idempotency-key'])
  // A gateway may send a date (RFC 9110 §10.2.3).
  const retryAfter = new Date(Date.now() + 1_000).toUTCString()
  if (repeats.length === 1) return response.writeHead(503, { 'retry-after': retryAfter }).end('{}')
  response.writeHead(201, { 'content-type': 'application/json' })
  response.end('{"data":{"id":"sgn_1","status":"received","created_at":"2026-11-20T09:00:00.000Z"}}')
})
/** What ends a sample with an error, and sends the key nowhere else. */
const faults: Readonly<Record<string, { readonly origin: string; readonly key?: string }>> = {
  refused: { origin: usual.origin, key: `${usual.key.slice(0, -1)}~` },
  redirected: await listen(({ url }, response) => {
    response.writeHead(307, { location: `${elsewhere.origin}${url}` }).end()
  }),
  silent: await listen(() => {}),
}

/** Every sample runs on the usual deployment, and some, with every placeholder, on one where all of them differ. */
const plan = [
  { deployment: usual, names: [...operations.filter((name) => name !== 'revokeKey'), ...own] },
  // Each with a key of its own.
  { deployment: usual, names: ['revokeKey'] },
  { deployment: renamed, names: ['profiles', 'signUp', ...own] },
]

/** Writes and runs all samples of a language, and checks that each prints the body that its operation documents. */
async function runAll<Printed>(
  t: Test,
  language: Language,
  fileName: string,
  run: Runner<Printed>,
  bodyOf: (printed: Printed, operation: string) => unknown,
): Promise<void> {
  let count = 0
  for (const { deployment, names } of plan) {
    const present = names.filter((operation) => own.includes(operation) || samples[operation]?.[language])
    const files = await Promise.all(present.map(async (operation) => {
      const place = join(folder, language, `${operation}-${deployment.serviceName}`)
      await mkdir(place, { recursive: true })
      const file = join(place, fileName)
      const code = deployment.shown.get(operation)?.get(language)
      const { path } = await world.offer()
      await writeFile(file, `${code?.replace(/\/claim\/\w+/, path)}\n`)
      return file
    }))
    const ownKey = names[0] === 'revokeKey' && await world.issue({ partner: 'demo' })
    const printed = await run(files, ownKey ? ownKey.text : deployment.key)
    t.equal(printed.length, present.length)
    for (const [index, operation] of present.entries()) {
      if (own.includes(operation)) {
        const { data } = bodyOf(printed[index]!, operation) as { data: unknown }
        t.strictSame(data, OWN_DATA[operation], `${operation} of ${deployment.serviceName}`)
        continue
      }
      const route = ROUTES.find(({ name }) => name.replaceAll('-', '') === operation.toLowerCase())!
      const { issues } = safeParse(
        RESPONSE_SCHEMAS[route.name as keyof typeof RESPONSE_SCHEMAS],
        bodyOf(printed[index]!, operation),
      )
      t.same(issues?.map(({ message }) => message), undefined, `${operation} of ${deployment.serviceName}`)
    }
    count += present.length
  }
  const codeOf = (operation: string) => usual.shown.get(operation)!.get(language)!
  const write = async (name: string, code: string) => {
    const file = join(folder, language, name, fileName)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, `${code}\n`)
    return file
  }
  const walks = [codeOf('profiles'), codeOf('profiles').replace(/limit(=|: )20/, (_, is) => `limit${is}7`)]
    .map((code) => code.replace('freight', 'in'))
  const [whole, pages] = await run(
    await Promise.all(walks.map((code, index) => write(`walk${index}`, code))),
    usual.key,
  )
  t.strictSame(bodyOf(pages!, 'profiles'), bodyOf(whole!, 'profiles'), 'all pages are read')
  t.ok((bodyOf(whole!, 'profiles') as { data: unknown[] }).data.length > 7)
  repeats.length = 0
  const repeat = codeOf('signUp').replaceAll(usual.origin, failsOnce.origin)
  // curl reports the first attempt, although the second one succeeds.
  const repeated = run([await write('repeat', repeat)], usual.key)
  await (language === 'shell'
    ? repeated.catch((error) => t.match(error.message, 'sh ended with 0'))
    : repeated)
  t.strictSame(repeats, ['form-1042', 'form-1042'], 'a signup is repeated with its idempotency key')
  for (const [fault, { origin, key = usual.key }] of Object.entries(faults)) {
    const code = codeOf('profiles').replaceAll(usual.origin, origin)
      .replace(/\b10(?= |,|\))/, '1').replace(/(key: .*)/, '$1\n  timeoutMs: 200,')
    await t.rejects(run([await write(fault, code)], key), fault)
  }
  t.same(redirected, [])
  t.comment(`${count} samples`)
}

/** Runs a program. What it writes to standard error is a failure, too. */
async function runProgram([program = '', ...words]: readonly string[], key: string): Promise<string> {
  // The file tells curl not to report its progress.
  const env = { PARTNER_API_KEY: key, CURL_HOME: folder }
  const { code, stdout, stderr } = await runProcess(words, { command: [program], env, cwd: folder })
  if (code === 0 && stderr === '') return stdout
  throw new Error(`${program} ended with ${code}: ${stderr}${stdout}`)
}

const separately = (commandOf: (file: string) => readonly string[]): Runner<string> => async (files, key) => {
  const printed: string[] = []
  for (const file of files) printed.push(await runProgram(commandOf(file), key))
  return printed
}

/** For languages that start slowly: a program that takes the files and writes what they print as JSON. */
const together = <Printed>(...command: readonly string[]): Runner<Printed> => async (files, key) =>
  JSON.parse(await runProgram([...command, ...files], key))

const page = { limit: 20, has_more: false, next_cursor: null }
const isPaged = (operation: string) => ['problems', 'profiles', 'reportActivity'].includes(operation)

/** A body, or the rows of a list on a line each. */
const read = (printed: string, operation: string): unknown => {
  if (isPaged(operation)) {
    return { data: printed.split('\n').filter(Boolean).map((line) => JSON.parse(line)), page }
  }
  return printed.startsWith('{') ? JSON.parse(printed) : printed
}

/** Whether a program runs; if not, why its tests are skipped. */
function needs(program: string, ...words: readonly string[]): { readonly skip: string | false } {
  const { status } = spawnSync(program, words, { stdio: 'ignore' })
  return { skip: status !== 0 && `${program} ${words.join(' ')} does not run (.ci/run installs it)` }
}

t.test('Shell', needs('sh', '-c', 'curl --version && jq --version'), async (t) => {
  await writeFile(join(folder, '.curlrc'), 'silent\nshow-error\n')
  await runAll(t, 'shell', 'sample.sh', separately((file) => ['sh', file]), read)
})

const runModules = `
  const all = []
  for (const file of process.argv.slice(1)) {
    const printed = []
    console.log = (value) => printed.push(value)
    await import(file)
    all.push(printed)
  }
  process.stdout.write(JSON.stringify(all))
`
const node = together<readonly unknown[]>(process.execPath, '--input-type=module', '-e', runModules, '--')

t.test('JavaScript with the client', async (t) => {
  await runAll(
    t,
    'client',
    'sample.mjs',
    node,
    (printed, operation) =>
      isPaged(operation) || operation === 'ownOrders'
        ? { data: printed, page }
        : own.includes(operation)
        ? printed[0]
        : operation === 'rotateKey'
        ? { data: { ...printed[0] as object, key: 'in the file' } }
        : { data: printed[0] },
  )
})

t.test('PHP', needs('php', '-r', 'exit(extension_loaded("curl") ? 0 : 1);'), async (t) => {
  const strict = ['-d', 'error_reporting=-1', '-d', 'display_errors=stderr']
  await runAll(t, 'php', 'sample.php', separately((file) => ['php', ...strict, file]), read)
})

const runScripts = `
import contextlib, io, json, runpy, sys
printed = []
for file in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(file, run_name="__main__")
    printed.append(output.getvalue())
print(json.dumps(printed))
`

t.test('Python', needs('python3', '--version'), async (t) => {
  await runAll(t, 'python', 'sample.py', together<string>('python3', '-W', 'error', '-c', runScripts), read)
})

t.test('a repeat with the idempotency key is no second signup', async (t) => {
  const headers = { 'X-Service-Partner-Key': usual.key }
  const response = await fetch(`${usual.origin}/service/partner/reports/summary?partner=demo`, { headers })
  const { data } = await response.json()
  t.equal(data.signups.total, 1)
})
