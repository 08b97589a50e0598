/** The published package: files, entries on every runtime, types, program, and bundle size. */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { absence, RUNTIMES } from '../runtimes/runtimes.ts'
import { weigh, type Weight } from './bundle.ts'
import { attempt, binary, installPackage, MANIFEST, ROOT, run } from './installed.ts'
import { startWorker } from '../support/workerd-process.ts'

const installed = await installPackage()
const { folder } = installed
t.teardown(() => installed.remove())
cpSync(join(ROOT, 'test/package/consumer'), folder, { recursive: true })

const read = (path: string): string => readFileSync(join(folder, 'node_modules/partner-api', path), 'utf8')
const entries = Object.keys(MANIFEST.exports)
const main = 'node_modules/partner-api/dist/cli/main.js'

/** What each entry exports, from where the checkout has it. */
const sources: Readonly<Record<string, string>> =
  JSON.parse(readFileSync(join(ROOT, 'deno.json'), 'utf8')).exports
const names = Object.fromEntries(
  await Promise.all(entries.map(async (entry): Promise<[string, string[]]> => {
    const module = await import(pathToFileURL(join(ROOT, sources[entry]!)).href)
    return [entry, Object.keys(module).sort()]
  })),
)

t.test('the tarball contains only the expected files', (t) => {
  const allowed = [
    /^(?:package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
    /^dist\/(?:(?:core|adapters)\/[\w\-/]+\.(?:js|d\.ts)|core\/openapi\/samples\.json)$/,
    /^dist\/cli\/[\w\-/]+\.js$/,
    /^dist\/fixtures\/content\/(?:banners|industries|plans|profiles)\.jsonl$/,
    /^docs\/[\w-]+\.(?:md|svg)$/,
    /^examples\/deploy\/[\w.-]+$/,
    /^examples\/[\w-]+\.(?:js|conf)$/,
    /^examples\/partners\/\w+\/[\w-]+\.(?:js|md|php|py)$/,
  ]
  const paths = installed.files.map(({ path }) => path)
  t.same(paths.filter((path) => !allowed.some((pattern) => pattern.test(path))), [])
  for (const pattern of allowed) t.ok(paths.some((path) => pattern.test(path)), String(pattern))
  const bytes = installed.files.reduce((sum, { size }) => sum + size, 0)
  t.comment(`${paths.length} files, ${installed.size} bytes, unpacked ${bytes}`)
  t.ok(paths.length <= 800, 'at most 800 files')
  t.ok(installed.size < 500_000, 'less than half a megabyte')
  t.end()
})

t.test('links of the README and the changelog exist', (t) => {
  const links = ['README.md', 'CHANGELOG.md']
    .flatMap((path) => [...read(path).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = '']) => link))
  const paths = new Set(installed.files.map(({ path }) => path))
  t.ok(links.length > 5)
  t.same(links.filter((link) => !paths.has(link)), [])
  t.end()
})

t.test('the changelog has this version', (t) => {
  t.match(read('CHANGELOG.md'), `\n## ${MANIFEST.version}\n`)
  t.end()
})

t.test('the package has six dependencies and uses each', (t) => {
  const imported = new Set(
    installed.files.filter(({ path }) => /^dist\/.*\.js$/.test(path))
      .flatMap((
        { path },
      ) => [...read(path).matchAll(/(?:from|import)\s*\(?\s*'((?:@[\w-]+\/)?[\w-]+)[\w/-]*'/g)])
      .map(([, name = '']) => name),
  )
  // `bun` is never a package here, and `node:` has a colon.
  t.same([...imported].sort(), Object.keys(MANIFEST.dependencies).sort())
  t.same([...imported].sort(), [
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

t.test('every entry works in a Worker', async (t) => {
  const worker = await startWorker('worker.js', folder)
  t.teardown(() => worker.end())
  const key = await (await fetch(`${worker.url}/key`)).text()
  const answer = await fetch(`${worker.url}/service/public/countries?partner=acme`, {
    headers: { 'X-Service-Partner-Key': key },
  })
  t.equal(answer.status, 200)
  t.equal((await answer.json()).data.length, 250)
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
  t.same(JSON.parse(stdout), Object.fromEntries(entries.map((entry) => [entry, []])))
})

const typescript5 = createRequire(
  createRequire(join(ROOT, 'test/openapi/package.json')).resolve('openapi-typescript'),
).resolve('typescript/bin/tsc')

/** @returns What the compiler printed: the files that it read, and errors. */
async function compile(compiler: string, file: string, options: object): Promise<string[]> {
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
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }))
  return (await attempt(process.execPath, [compiler, '--listFiles'], folder)).stdout.trim().split('\n')
}

const isError = (line: string): boolean => line.includes('error TS')

for (
  const [name, compiler, module, moduleResolution] of [
    ['TypeScript 7', binary('tsc'), 'nodenext', 'nodenext'],
    ['TypeScript 7', binary('tsc'), 'esnext', 'bundler'],
    ['TypeScript 5', typescript5, 'nodenext', 'nodenext'],
  ] as const
) {
  t.test(`the types compile in a program with ${name}, ${moduleResolution}`, async (t) => {
    const lib = ['es2022', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable']
    const lines = await compile(compiler, 'program.ts', { lib, module, moduleResolution, skipLibCheck: true })
    const foreign = lines.filter((line) =>
      line.includes('/node_modules/') && !/\/partner-api\/|\/valibot\/|\/lib\.[\w.]+\.d\.ts$/.test(line)
    )
    t.same(foreign, [], "of other packages, only valibot's are needed")
    t.same(lines.filter(isError), [])
    t.ok(lines.some((line) => line.endsWith('/partner-api/dist/adapters/client/mod.d.ts')))
  })
}

t.test('the types compile without the DOM library and @types/node', async (t) => {
  writeFileSync(
    join(folder, 'imports.ts'),
    entries.map((entry) => `import '${entry.replace('.', 'partner-api')}'`).join('\n'),
  )
  const lines = await compile(binary('tsc'), 'imports.ts', { lib: ['es2022'], skipLibCheck: false })
  t.ok(lines.some((line) => line.endsWith('/partner-api/dist/adapters/client/client.d.ts')))
  t.same(lines.filter((line) => isError(line) && !line.startsWith('node_modules/valibot/')), [])
})

t.test('package linters report nothing', async (t) => {
  const unpacked = join(folder, 'node_modules/partner-api')
  const [types, lint, slow] = await Promise.all([
    attempt(binary('attw'), [installed.tarball, '--profile', 'esm-only', '--format', 'json'], folder),
    attempt(binary('publint'), ['--strict', '--pack', 'false', unpacked], folder),
    attempt(binary('deno'), ['publish', '--dry-run', '--allow-dirty', '--no-check'], ROOT),
  ])
  t.equal(types.code, 0, types.stdout)
  t.equal(lint.code, 0, lint.stdout + lint.stderr)
  t.match(lint.stdout, 'All good!')
  t.equal(slow.code, 0, slow.stderr)
  t.match(slow.stderr, 'Checking for slow types in the public API')
  t.notMatch(slow.stderr, /\/(?:test|cli|fixtures)\/|tsconfig/, 'JSR gets only files that its entries import')
})

t.test('npm publishes the manifest unmodified', async (t) => {
  const aside = join(folder, 'manifest')
  mkdirSync(aside)
  cpSync(join(ROOT, 'package.json'), join(aside, 'package.json'))
  await run('npm', ['pkg', 'fix'], aside)
  t.same(
    JSON.parse(readFileSync(join(aside, 'package.json'), 'utf8')),
    JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')),
    'npm pkg fix changes nothing',
  )
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
  "export { createPartnerApi } from 'partner-api'": [36_500, 68_000],
  "export { createPartnerClient } from 'partner-api/client'": [2_900, 2_900],
  "export { Problem } from 'partner-api'": [1_300, 1_300],
  "export * from 'partner-api'": [46_000, 79_000],
} as const

t.test('bundles contain only what is used and stay within their size limits', async (t) => {
  const nothing = await weigh("import 'partner-api'", folder)
  t.equal(nothing.code, '')
  const said = new Map<string, Weight>()
  for (const [program, [start, whole]] of Object.entries(budgets)) {
    const weight = await weigh(program, folder)
    t.comment(`${program}: ${weight.start} bytes, with what is loaded later ${weight.whole}`)
    t.match(weight.code, 'export')
    t.ok(weight.start <= start, `${start} bytes: ${program}`)
    t.ok(weight.whole <= whole, `${whole} bytes with what is loaded later`)
    said.set(program, weight)
  }
  const kilobytes = (bytes: number): string =>
    bytes < 10_000 ? (bytes / 1000).toFixed(1) : (bytes / 1000).toFixed(0)
  const [service, client] = [...said.values()]
  const later = service!.whole - service!.start
  const sentence =
    `${kilobytes(service!.start)} KB, plus ${kilobytes(later)} KB loaded on demand for the API docs; ` +
    `the client is ${kilobytes(client!.start)} KB`
  t.ok(read('README.md').replaceAll('\n', ' ').includes(sentence), `README: ${sentence}`)
})
