/** `serve` with the example that registers an SDK, and without. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { cleanEnv, MAIN, programOn, temporaryFolder } from '../support/cli-program.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const traceId = '0af7651916cd43dd8448eb211c80319c'

/** A project with the SDK. In place of the exporter, spans go to a file. */
function createProject(): string {
  const folder = temporaryFolder()
  const scope = join(folder, 'node_modules/@opentelemetry')
  const exporter = join(scope, 'exporter-trace-otlp-http')
  mkdirSync(exporter, { recursive: true })
  for (const name of ['api', 'context-async-hooks', 'core', 'resources', 'sdk-trace']) {
    symlinkSync(join(ROOT, 'test/node_modules/@opentelemetry', name), join(scope, name))
  }
  const manifest = {
    name: '@opentelemetry/exporter-trace-otlp-http',
    type: 'module',
    exports: './exporter.js',
  }
  writeFileSync(join(exporter, 'package.json'), JSON.stringify(manifest))
  writeFileSync(
    join(exporter, 'exporter.js'),
    `import { appendFileSync } from 'node:fs'
    export class OTLPTraceExporter {
      export(spans, done) {
        for (const span of spans) {
          const { name, kind, attributes, resource, parentSpanContext: parent } = span
          const own = { pid: process.pid, service: resource.attributes['service.name'], ...span.spanContext() }
          appendFileSync('spans.jsonl', JSON.stringify({ name, kind, attributes, parent: parent?.spanId, ...own }) + '\\n')
        }
        done({ code: 0 })
      }
      shutdown() { return Promise.resolve() }
    }`,
  )
  copyFileSync(join(ROOT, 'examples/monitoring/instrumentation.js'), join(folder, 'instrumentation.js'))
  return folder
}

/** Serves a filled store, calls `body` with its URL, and stops it. @returns What it logged. */
async function serving(
  folder: string,
  { nodeOptions }: { readonly nodeOptions: readonly string[] },
  body: (list: (headers?: Record<string, string>) => Promise<number>) => Promise<void>,
): Promise<string> {
  const store = `sqlite:${join(folder, 'partner-api.db')}`
  const { data: { key } } = await programOn(store).json('demo', '--no-serve')
  const child: ChildProcessWithoutNullStreams = spawn(
    process.execPath,
    [...nodeOptions, MAIN, 'serve', '--port', '0', '--log', 'all'],
    { cwd: folder, env: cleanEnv() },
  )
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => log += text)
  const ended = once(child, 'close')
  try {
    const [line] = await Promise.race([
      once(child.stdout, 'data'),
      ended.then(() => Promise.reject(new Error(log))),
    ])
    const url = String(line).trim().replace('listening on ', '')
    await body(async (headers = {}) => {
      const target = `${url}/service/public/profiles?partner=demo`
      const { status } = await fetch(target, {
        headers: { 'x-service-partner-key': key, connection: 'close', ...headers },
      })
      return status
    })
  } finally {
    child.kill('SIGTERM')
  }
  t.strictSame(await ended, [0, null], log)
  return log
}

const spansOf = (folder: string) =>
  readFileSync(join(folder, 'spans.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line))

t.test('serve traces requests if an SDK has registered itself', async (t) => {
  const folder = createProject()
  const log = await serving(folder, {
    nodeOptions: ['--import', './instrumentation.js'],
  }, async (list) => {
    t.equal(await list({ traceparent: `00-${traceId}-b7ad6b7169203331-01` }), 200)
    for (let count = 0; count < 24; count++) t.equal(await list(), 200)
  })
  const spans = spansOf(folder)
  const requests = spans.filter(({ name }) => name === 'GET /service/public/profiles')
  t.equal(requests.length, 25)
  const first = requests.find(({ parent }) => parent !== undefined)
  t.match(first, {
    traceId,
    parent: 'b7ad6b7169203331',
    service: 'partner-api',
    attributes: { 'url.scheme': 'http' },
  })
  const children = spans.filter(({ parent }) => parent === first.spanId)
  t.ok(children.some(({ name }) => name === 'findKey'))
  for (const { attributes } of children) t.equal(attributes['db.system.name'], 'sqlite')
  const traces = log.split('\n').filter((line) => line.includes('"request"')).map((line) =>
    JSON.parse(line).trace_id
  )
  t.strictSame(traces.sort(), requests.map((span) => span.traceId).sort())
})

t.test('without an SDK, serve loads nothing of OpenTelemetry', async (t) => {
  const hook =
    'import { registerHooks } from "node:module"; import { writeFileSync } from "node:fs"; const urls = [];' +
    'registerHooks({ load(url, context, next) { urls.push(url); return next(url, context) } });' +
    'process.on("exit", () => writeFileSync("loaded.json", JSON.stringify(urls)))'
  const loaded = async (...imports: string[]): Promise<string> => {
    const folder = createProject()
    const all = [`data:text/javascript,${encodeURIComponent(hook)}`, ...imports]
    await serving(folder, { nodeOptions: all.flatMap((each) => ['--import', each]) }, async (list) => {
      t.equal(await list(), 200)
    })
    t.equal(existsSync(join(folder, 'spans.jsonl')), imports.length > 0)
    return readFileSync(join(folder, 'loaded.json'), 'utf8')
  }
  const off = await loaded()
  t.match(off, 'core/pipeline.ts')
  t.notMatch(off, /opentelemetry|@prometheus-io/)
  t.match(await loaded('./instrumentation.js'), 'adapters/opentelemetry.ts')
})
