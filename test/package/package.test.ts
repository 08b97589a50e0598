/** The released packages: files, entries on every runtime, types, program, and bundle size. */
import { once } from 'node:events'
import { cpSync, existsSync, globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { absence, RUNTIMES } from '../runtimes/runtimes.ts'
import { weigh, type Weight } from './bundle.ts'
import { attempt, binary, createReadyRepository, MANIFEST, ROOT, run } from './installed.ts'
import { checkSettings } from './ready.ts'
import { installPackages, packPackages, toolVerifications } from './tarballs.ts'
import { createPartnerClient } from '../../adapters/client/mod.ts'
import { serve } from '../../adapters/runtimes/node.ts'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { createPartnerApi } from '../../core/api.ts'
import { startWorker } from '../support/workerd-process.ts'
import { temporaryFolder } from '../support/cli-program.ts'
import { fillWorld } from '../support/world.ts'

const home = temporaryFolder()
const [repository, out, folder] = [join(home, 'repository'), join(home, 'out'), join(home, 'project')]
await createReadyRepository(repository)
const links = checkSettings({ repository: 'https://github.com/acme-travel/partner-api' })
const report = await packPackages(repository, out, links)
await installPackages(repository, out, MANIFEST.version, home)
/** The folder of an installed package's files, or the path of one. */
const pathIn = (name: 'partner-api' | 'partner-api-client', file = '') =>
  join(folder, 'node_modules', name, file)
cpSync(join(ROOT, 'test/package/consumer'), folder, { recursive: true })

const read = (path: string): string => readFileSync(pathIn('partner-api', path), 'utf8')
const readClient = (path: string): string => readFileSync(pathIn('partner-api-client', path), 'utf8')
const main = 'node_modules/partner-api/dist/cli/main.js'

function readManifest(name: 'partner-api' | 'partner-api-client') {
  return JSON.parse(readFileSync(pathIn(name, 'package.json'), 'utf8'))
}

/** What each entry exports, from where the checkout has it. */
const sources: Readonly<Record<string, string>> = {
  ...JSON.parse(readFileSync(join(ROOT, 'deno.json'), 'utf8')).exports,
  'partner-api-client': './adapters/client/mod.ts',
}
const names = Object.fromEntries(
  await Promise.all(
    Object.entries(sources).map(async ([entry, source]): Promise<[string, string[]]> => {
      const module = await import(pathToFileURL(join(ROOT, source)).href)
      return [entry, Object.keys(module).sort()]
    }),
  ),
)

const store = createMemoryStore()
const world = await fillWorld(store)
const server = await serve(createPartnerApi({ store }), { port: 0 })
t.teardown(() => server.drain())
/** Settings of a client of a real service. */
const settings = { url: server.url, key: world.keys['demo full'].text, partner: 'demo' }

/** Files and bytes of each tarball. */
const tarballs = Array.from(
  report.matchAll(/([\w-]+)-[\d.]+\.tgz has (\d+) files and ([\d,]+) bytes/g),
  ([, name, files, bytes = '']) => ({ name, files: Number(files), bytes: Number(bytes.replaceAll(',', '')) }),
)

const pathsOf = (name: 'partner-api' | 'partner-api-client'): string[] =>
  globSync('**', { cwd: pathIn(name), withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(pathIn(name).length + 1).replaceAll('\\', '/'))

for (const [name, verify] of toolVerifications(repository, out, MANIFEST.version, home)) {
  t.test(name, async (t) => t.match(await verify(), /passed|files$/))
}

t.test('both manifests have the version, the licence and links', (t) => {
  for (const manifest of [readManifest('partner-api'), readManifest('partner-api-client')]) {
    t.match(manifest, { version: MANIFEST.version, license: 'MIT', bugs: { url: /\/issues$/ } })
  }
  t.end()
})

t.test('the tarball of the service contains only the expected files', (t) => {
  const allowed = [
    /^(?:package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
    /^dist\/(?:(?:core|adapters)\/[\w\-/]+\.(?:js|d\.ts)|core\/(?:content|openapi)\/[\w-]+\.json)$/,
    /^dist\/cli\/[\w\-/]+\.js$/,
    /^dist\/partner-api\.1$/,
    /^dist\/fixtures\/content\/(?:banners|industries|plans|profiles)\.jsonl$/,
    /^docs\/[\w-]+\.(?:md|svg)$/,
    /^examples\/(?:deploy|monitoring|orders)\/[\w.-]+$/,
    /^examples\/(?:[\w-]+\.(?:js|ts|conf|toml)|pre-commit)$/,
    /^examples\/partners\/\w+\/[\w-]+\.(?:js|json|md|php|py|toml|html|css)$/,
  ]
  const paths = pathsOf('partner-api')
  t.same(paths.filter((path) => !allowed.some((pattern) => pattern.test(path))), [])
  for (const pattern of allowed) t.ok(paths.some((path) => pattern.test(path)), String(pattern))
  const [{ files, bytes } = { files: Infinity, bytes: Infinity }] = tarballs
  t.comment(`${files} files, ${bytes} bytes`)
  t.ok(files <= 800, 'at most 800 files')
  t.ok(bytes < 765_000, 'less than 765 KB')
  t.end()
})

t.test('the client is one module with its types, and needs nothing else', (t) => {
  t.same(pathsOf('partner-api-client').sort(), [
    'LICENSE',
    'README.md',
    'client.d.ts',
    'client.js',
    'package.json',
  ])
  const [, { bytes } = { bytes: Infinity }] = tarballs
  t.comment(`${bytes} bytes`)
  t.ok(bytes < 26_600, 'less than 26.6 KB')
  for (const path of ['client.js', 'client.d.ts']) {
    t.notMatch(readClient(path), /(?<!\.)\b(?:import|from)\b ?['"(]/)
  }
  const { dependencies, exports } = readManifest('partner-api-client')
  t.same({ dependencies, exports }, { dependencies: undefined, exports: './client.js' })
  const guide = readClient('README.md')
  t.match(guide, readFileSync(join(ROOT, 'examples/client.js'), 'utf8'))
  const methods = Object.keys(createPartnerClient(settings))
  t.same(methods.filter((method) => !new RegExp(`^\\| .*\`${method}\\(`, 'm').test(guide)), [])
  t.end()
})

t.test('Deno finds the module and its types on a CDN', async (t) => {
  const cdn = createServer((request, response) => {
    response.setHeader('content-type', request.url?.endsWith('.ts') ? 'text/typescript' : 'text/javascript')
    response.end(readClient(request.url!))
  }).listen(0, '127.0.0.1')
  await once(cdn, 'listening')
  t.teardown(() => cdn.close())
  const { port } = cdn.address() as AddressInfo
  writeFileSync(
    join(folder, 'cdn.ts'),
    `import { createPartnerClient } from 'http://127.0.0.1:${port}/client.js'
const client = createPartnerClient(JSON.parse(Deno.readTextFileSync('settings.json')))
// @ts-expect-error
client.profiles({ sort: 'slug' })
console.log((await client.verifyKey()).valid)`,
  )
  // A program that waited for its time limit before it ends would take an hour.
  writeFileSync(join(folder, 'settings.json'), JSON.stringify({ ...settings, timeoutMs: 3_600_000 }))
  const words = [
    `DENO_DIR=${join(folder, 'deno')}`,
    binary('deno'),
    'run',
    '-Aq',
    '--check',
    '--no-config',
    'cdn.ts',
  ]
  t.equal((await run('env', words, folder)).stdout, 'true\n')
})

t.test('the package has seven dependencies and an optional peer, and uses each', (t) => {
  const imported = new Set(
    pathsOf('partner-api').filter((path) => /^dist\/.*\.js$/.test(path))
      .flatMap((
        path,
      ) => [...read(path).matchAll(/(?:from\s*|import\s*\(?\s*)'((?:@[\w-]+\/)?[\w-]+)[\w/-]*'/g)])
      .map(([, name = '']) => name),
  )
  // `bun` is never a package here, and `node:` has a colon.
  const { dependencies, peerDependencies } = MANIFEST
  t.same([...imported].sort(), Object.keys({ ...dependencies, ...peerDependencies }).sort())
  t.same([...imported].sort(), [
    '@opentelemetry/api',
    '@prometheus-io/client',
    '@valibot/to-json-schema',
    'commander',
    'itty-router',
    'postgres',
    'undici',
    'valibot',
  ])
  t.end()
})

for (const runtime of RUNTIMES) {
  t.test(`on ${runtime.name}`, { skip: absence(runtime) ?? false }, async (t) => {
    const [program = '', ...flags] = runtime.command
    const here = (...words: string[]) => run(program, [...flags, ...words], folder)
    const entry = ['bun', 'deno'].find((name) => name === runtime.name.toLowerCase()) ?? 'node'
    const store = `sqlite:demo-${runtime.name.replace(' ', '-')}.db`
    const { exported, ...served } = JSON.parse((await here('serve-and-ask.js', entry)).stdout)
    t.same(exported, names, 'every entry exports what it does here')
    t.same(served, { valid: true, countries: 250, openapi: '3.1.1' })
    const demo = await here(main, '--store', store, '--json', 'demo', '--no-serve')
    t.equal(JSON.parse(demo.stdout).data.partner, 'demo')
    t.notMatch(demo.stderr, /warning/i)
  })
}

t.test('service and client work in a Worker', async (t) => {
  const worker = await startWorker('worker.js', folder)
  t.teardown(() => worker.end())
  const key = await (await fetch(`${worker.url}/key`)).text()
  const answer = await fetch(`${worker.url}/service/public/countries?partner=acme`, {
    headers: { 'X-Service-Partner-Key': key },
  })
  t.equal(answer.status, 200)
  t.equal((await answer.json()).data.length, 250)
  const asked = await fetch(`${worker.url}/ask`, { method: 'POST', body: JSON.stringify(settings) })
  t.match(await asked.json(), { valid: true, partner: { slug: 'demo' } })
})

t.test('package runners find the program', async (t) => {
  const ways = [
    ['npx', '--no-install', 'partner-api', '--version'],
    [binary('bun'), 'x', '--no-install', 'partner-api', '--version'],
    [binary('deno'), 'run', '-A', '--node-modules-dir=manual', 'npm:partner-api', '--version'],
  ]
  for (const [program = '', ...words] of ways) {
    t.equal((await run(program, words, folder)).stdout, `${MANIFEST.version}\n`, words.join(' '))
  }
})

const old = await findOldNode()
t.test(
  'an unsupported Node is refused with a message',
  { skip: old === undefined ? 'no Node before 22.19 on the PATH' : false },
  async (t) => {
    const { code, stdout, stderr } = await attempt(old!, [main, '--version'], folder)
    t.equal(code, 2)
    t.equal(stdout, '')
    t.match(stderr, /^error: partner-api needs Node 22\.19 or newer, and this is Node \d+\.\d+\.\d+\.\n$/)
  },
)

async function findOldNode(): Promise<string | undefined> {
  for (const place of (process.env['PATH'] ?? '').split(delimiter)) {
    const program = join(place, 'node')
    if (!existsSync(program)) continue
    const { stdout } = await attempt(program, ['--version'], folder)
    const [major = 0, minor = 0] = stdout.slice(1).split('.').map(Number)
    if (major < 22 || major === 22 && minor < 19) return program
  }
  return undefined
}

t.test('importing an entry has no side effects', async (t) => {
  const { stdout } = await run(process.execPath, ['trace-imports.js'], folder)
  const none = Object.fromEntries(Object.keys(sources).map((entry) => [entry, []]))
  // @prometheus-io/client reads the start time of the process.
  t.same(JSON.parse(stdout), { ...none, './metrics': ['now'] })
})

// By path: npm links the last of several packages that have a tsc.
const typescript7 = join(ROOT, 'node_modules/typescript/bin/tsc')
const typescript5 = createRequire(
  createRequire(join(ROOT, 'test/openapi/package.json')).resolve('openapi-typescript'),
).resolve('typescript/bin/tsc')

/** @returns What the compiler printed: the files that it read, and errors. */
async function compile(compiler: string, files: readonly string[], options: object): Promise<string[]> {
  const compilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    types: [],
    target: 'es2022',
    module: 'nodenext',
    ...options,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  return (await attempt(process.execPath, [compiler, '--listFiles'], folder)).stdout.trim().split('\n')
}

const isError = (line: string): boolean => line.includes('error TS')

for (
  const [name, compiler, module, moduleResolution] of [
    ['TypeScript 7', typescript7, 'nodenext', 'nodenext'],
    ['TypeScript 7', typescript7, 'esnext', 'bundler'],
    ['TypeScript 5', typescript5, 'nodenext', 'nodenext'],
  ] as const
) {
  t.test(`the types compile in a program with ${name}, ${moduleResolution}`, async (t) => {
    const lib = ['es2022', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable']
    const lines = await compile(compiler, ['program.ts'], {
      lib,
      module,
      moduleResolution,
      skipLibCheck: true,
    })
    const foreign = lines.filter((line) =>
      line.includes('/node_modules/') &&
      !/\/partner-api(?:-client)?\/|\/valibot\/|\/lib\.[\w.]+\.d\.ts$/.test(line)
    )
    t.same(foreign, [], "of other packages, only valibot's are needed")
    t.same(lines.filter(isError), [])
    t.ok(lines.some((line) => line.endsWith('/partner-api-client/client.d.ts')))
  })
}

t.test('the examples are strictly typed', async (t) => {
  const files = ['client.js', 'companies.ts', 'own-tables.ts', 'own-signups.ts', 'next-route.ts']
  for (const peer of ['hono', '@hono']) {
    symlinkSync(join(ROOT, 'test/node_modules', peer), join(folder, 'node_modules', peer))
  }
  const copies = [...files, 'orders/orders.ts', 'orders/server.ts'].map((name) => {
    const copy = name.replace(/js$/, 'ts')
    cpSync(join(ROOT, 'examples', name), join(folder, copy))
    return copy
  })
  const lines = await compile(typescript7, copies, {
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
    skipLibCheck: true,
    allowImportingTsExtensions: true,
  })
  t.same(lines.filter(isError), [])
})

t.test('the types compile without the DOM library and @types/node', async (t) => {
  writeFileSync(
    join(folder, 'imports.ts'),
    Object.keys(sources).map((entry) => `import '${entry.replace('.', 'partner-api')}'`).join('\n'),
  )
  const lines = await compile(typescript7, ['imports.ts'], { lib: ['es2022'], skipLibCheck: false })
  t.ok(lines.some((line) => line.endsWith('/partner-api-client/client.d.ts')))
  t.same(lines.filter(isError), [])
})

t.test('npm run check lints the documentation of every entry', (t) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const source of Object.values(sources)) t.match(scripts.check, source.slice(2))
  t.end()
})

/**
 * Bytes, minified and gzipped, the packages that it depends on included. The first have to be loaded before a service can
 * respond; the second include what generates its documents, loaded on the first request for one.
 */
const budgets = {
  "export { createPartnerApi } from 'partner-api'": [46_800, 102_700],
  "export { createPartnerClient } from 'partner-api-client'": [4_500, 4_500],
  "export { Problem } from 'partner-api'": [1_300, 1_300],
  "export * from 'partner-api'": [63_700, 112_900],
} as const

t.test('bundles contain only what is used and stay within their size limits', async (t) => {
  const nothing = await weigh("import 'partner-api'", folder)
  t.equal(nothing.code, '')
  const said = new Map<string, Weight>()
  for (const [program, [start, whole]] of Object.entries(budgets)) {
    const weight = await weigh(program, folder)
    t.match(weight.code, 'export')
    t.ok(weight.start <= start, `${weight.start} of ${start} bytes: ${program}`)
    t.ok(weight.whole <= whole, `${weight.whole} of ${whole} bytes with what is loaded later`)
    said.set(program, weight)
  }
  const kilobytes = (bytes: number): string =>
    bytes < 10_000 ? (bytes / 1000).toFixed(1) : (bytes / 1000).toFixed(0)
  const [service, client] = [...said.values()]
  const later = service!.whole - service!.start
  const sentence = `${kilobytes(service!.start)} KB, plus ${kilobytes(later)} KB loaded on demand; ` +
    `the client is ${kilobytes(client!.start)} KB`
  t.ok(read('README.md').replaceAll('\n', ' ').includes(sentence), `README: ${sentence}`)
})
