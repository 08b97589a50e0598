/** The packages: installation, files, links, entries on every runtime, types, program, and bundle size. */
import { once } from 'node:events'
import { cpSync, existsSync, globSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { absence, RUNTIMES } from '../runtimes/runtimes.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { weigh, type Weight } from './bundle.ts'
import { attempt, binary, MANIFEST, ROOT, run } from './installed.ts'
import { serveDependencies } from './registry.ts'
import { copyCheckout, installedIn, installPackages, NAMES, packPackages, tarballOf } from './tarballs.ts'
import * as clientModule from '../../adapters/client/mod.ts'
import { serve } from '../../adapters/runtimes/node.ts'
import { createPartnerApi } from '../../core/api.ts'
import { startWorker } from '../support/workerd-process.ts'
import { temporaryFolder } from '../support/cli-program.ts'
import { fillWorld } from '../support/world.ts'

const home = temporaryFolder()
const checkout = join(home, 'checkout')
const out = join(home, 'out')
const folder = join(home, 'project')
const repository = 'https://github.com/acme-travel/partner-api'
copyCheckout(checkout, {
  repository: { type: 'git', url: `git+${repository}.git` },
  homepage: `${repository}#readme`,
  bugs: { url: `${repository}/issues` },
})
const [manifestOfCheckout, registry, packed] = await Promise.all([
  readFileSync(join(checkout, 'package.json'), 'utf8'),
  serveDependencies(temporaryFolder()),
  packPackages(checkout, out),
])
const [service = '', client = ''] = NAMES.map((name) => join(out, tarballOf(name)))
const installed = await installPackages(folder, [service, client], registry.url)
const installedAlone = await installPackages(join(home, 'partner'), [client], registry.url)
registry.close()
type Name = typeof NAMES[number]
/** The folder of an installed package's files, or the path of one. */
const pathIn = (name: Name, file = '') => join(folder, 'node_modules', name, file)
cpSync(join(ROOT, 'test/package/consumer'), folder, { recursive: true })

const read = (path: string): string => readFileSync(pathIn('partner-api', path), 'utf8')
const readClient = (path: string): string => readFileSync(pathIn('partner-api-client', path), 'utf8')
const main = 'node_modules/partner-api/dist/cli/main.js'

function readManifest(name: Name) {
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

const store = await openMemoryStore()
const world = await fillWorld(store)
const server = await serve(createPartnerApi({ store }), { port: 0 })
t.teardown(() => server.close())
/** Settings of a client of a real service. */
const settings = { url: server.url, key: world.keys['demo full'].text, partner: 'demo' }

const pathsOf = (name: Name): string[] =>
  globSync('**', { cwd: pathIn(name), withFileTypes: true }).filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(pathIn(name).length + 1).replaceAll('\\', '/'))

t.test('installing the packages prints nothing on standard error', (t) => {
  t.equal(installed.stderr, '')
  t.equal(installedAlone.stderr, '')
  t.same(installedIn(join(home, 'partner')), ['partner-api-client'], 'the client brings no other package')
  t.end()
})

t.test('npm packs the manifest for users, and leaves that of the checkout', async (t) => {
  t.equal(readFileSync(join(checkout, 'package.json'), 'utf8'), manifestOfCheckout)
  const { scripts: _, workspaces: __, devDependencies: ___, ...manifest } = JSON.parse(manifestOfCheckout)
  t.same(readManifest('partner-api'), manifest)
  const { code, stderr } = await attempt('npm', ['publish', '--dry-run', '--offline'], checkout)
  t.equal(code, 1, 'a checkout is not published: its manifest would be')
  t.match(stderr, 'npm publish partner-api-VERSION.tgz')
})

for (const [index, name] of NAMES.entries()) {
  const tarball = join(out, tarballOf(name))
  t.test(`${name} passes publint, attw, and the dry runs of npm and JSR`, async (t) => {
    await run(binary('publint'), ['--strict', '--pack', 'false', pathIn(name)], out)
    await run(binary('attw'), [tarball, '--profile', 'esm-only'], out)
    await run('npm', ['publish', '--dry-run', '--offline', tarball], out)
    const others = await publishedOnJsr(index === 0 ? checkout : join(checkout, 'dist/client'))
    t.same(others, [], 'files that its entries do not need')
  })

  t.test(`the manifest of ${name} has the version, the licence and links, and npm would fix nothing`, async (t) => {
    const manifest = readManifest(name)
    t.match(manifest, { version: MANIFEST.version, license: 'MIT', bugs: { url: `${repository}/issues` } })
    t.match(manifest, { homepage: `${repository}#readme`, repository: { url: `git+${repository}.git` } })
    const aside = temporaryFolder()
    cpSync(pathIn(name, 'package.json'), join(aside, 'package.json'))
    await run('npm', ['pkg', 'fix'], aside)
    t.same(JSON.parse(readFileSync(join(aside, 'package.json'), 'utf8')), manifest)
  })

  t.test(`${name} has no source maps and no paths of this machine`, (t) => {
    const local = [ROOT, checkout, process.env['HOME'] ?? ROOT].map((path) => path.replace(/\/?$/, '/'))
      .filter((path) => path.length > 1)
    for (const path of pathsOf(name)) {
      const text = readFileSync(pathIn(name, path), 'utf8')
      t.notMatch(text, /^\/\/# sourceMappingURL=/m, path)
      for (const folder of local) t.notOk(text.includes(folder), `${path} names ${folder}`)
    }
    t.end()
  })

  t.test(`the pages of ${name} link to files that are packed`, (t) => {
    const pages = pathsOf(name).filter((path) => path.endsWith('.md'))
    t.ok(pages.includes('README.md'))
    for (const page of pages) {
      const prose = readFileSync(pathIn(name, page), 'utf8').replace(/^```.*?^```/gms, '')
      const links = prose.matchAll(/(?:\]\(|\b(?:src|srcset|href)=")(?!\w+:|#)([^)"#\s]+)/g)
      for (const [, link = ''] of links) {
        t.ok(existsSync(join(dirname(pathIn(name, page)), link)), `${page} links to ${link}`)
      }
    }
    t.end()
  })
}

/** @returns The files that JSR would get and that are no part of the package. @throws if it would refuse it. */
async function publishedOnJsr(folder: string): Promise<readonly string[]> {
  const words = ['publish', '--dry-run', '--allow-dirty', '--no-check']
  const { stderr } = await run(binary('deno'), words, folder)
  const paths = Array.from(stderr.matchAll(/^ +file:\/\/(\S+)/gm), ([, path = '']) => path)
    .map((path) => path.slice(realpathSync(folder).length + 1))
  if (paths.length === 0) throw new Error(`JSR would get no files: ${stderr}`)
  const published =
    /^(?:(?:core|adapters)\/.+\.(?:ts|json)|client\.(?:js|d\.ts)|(?:deno|jsr)\.json|[A-Z]+(?:\.md)?)$/
  return paths.filter((path) => !published.test(path))
}

t.test('the tarball of the service contains only the expected files', (t) => {
  const allowed = [
    /^(?:package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
    /^dist\/(?:(?:core|adapters)\/[\w\-/]+\.(?:js|d\.ts)|core\/(?:content|openapi)\/[\w-]+\.json)$/,
    /^dist\/cli\/[\w\-/]+\.js$/,
    /^dist\/fixtures\/content\/(?:banners|industries|plans|profiles)\.jsonl$/,
    /^adapters\/client\/README\.md$/,
    /^docs\/[\w-]+\.(?:md|svg)$/,
    /^examples\/(?:deploy|monitoring|orders|shop)\/[\w.@-]+$/,
    /^examples\/(?:[\w-]+\.(?:js|ts|conf|toml)|pre-commit)$/,
    /^examples\/partners\/\w+\/[\w-]+\.(?:js|json|md|php|py|toml|html|css)$/,
  ]
  const paths = pathsOf('partner-api')
  t.same(paths.filter((path) => !allowed.some((pattern) => pattern.test(path))), [])
  for (const pattern of allowed) t.ok(paths.some((path) => pattern.test(path)), String(pattern))
  const { entryCount, size } = packed[0]!
  t.comment(`${entryCount} files, ${size} bytes`)
  t.ok(entryCount <= 800, 'at most 800 files')
  t.ok(size < 785_000, 'less than 785 KB')
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
  const { size } = packed[1]!
  t.comment(`${size} bytes`)
  t.ok(size < 28_800, 'less than 28.8 KB')
  for (const path of ['client.js', 'client.d.ts']) {
    t.notMatch(readClient(path), /(?<!\.)\b(?:import|from)\b ?['"(]/)
  }
  // What the types export as a value is one.
  const [, exported = ''] = /^export \{([^}]*)\}/m.exec(readClient('client.d.ts')) ?? []
  const values = exported.split(',').map((name) => name.trim()).filter((name) => !name.startsWith('type '))
  t.strictSame(values.sort(), Object.keys(clientModule).sort())
  const { dependencies, exports } = readManifest('partner-api-client')
  t.same({ dependencies, exports }, { dependencies: undefined, exports: './client.js' })
  const guide = readClient('README.md')
  t.match(guide, readFileSync(join(ROOT, 'examples/client.js'), 'utf8'))
  const methods = Object.keys(clientModule.createPartnerClient(settings))
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

const bun = RUNTIMES.find(({ name }) => name === 'Bun')!

t.test('Bun makes one file of the program, as a page says', { skip: absence(bun) ?? false }, async (t) => {
  const [, words = ''] = /`bun (build --compile [^`]+)`/.exec(read('docs/deploy.md')) ?? []
  await run(bun.command[0]!, words.split(' '), folder)
  const aside = temporaryFolder()
  const program = join(folder, process.platform === 'win32' ? 'partner-api.exe' : 'partner-api')
  const create = ['partners', 'create', 'acme', '--name', 'Acme', '--module', 'profiles', '--json']
  t.equal(JSON.parse((await run(program, create, aside)).stdout).data.slug, 'acme')
  await run(program, ['store', 'backup', 'backup.db'], aside)
  const { stdout } = await run(program, ['openapi'], aside)
  t.equal(JSON.parse(stdout).openapi, '3.1.1')
  t.match(await attempt(program, ['demo', '--no-serve', '--store', 'memory:'], aside), { code: 2 })
})

t.test('service and client work in a Worker', async (t) => {
  const { id, text } = world.keys['demo full']
  const variables = {
    SETTINGS: JSON.stringify(store.settings),
    FACTS: JSON.stringify(await store.findKey(id)),
  }
  const worker = await startWorker('worker.js', folder, { variables })
  t.teardown(() => worker.end())
  const answer = await fetch(`${worker.url}/service/public/countries?partner=demo`, {
    headers: { 'X-Service-Partner-Key': text },
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
  const strict = { lib: ['es2022'], skipLibCheck: false }
  const lines = await compile(typescript7, ['imports.ts'], strict)
  t.ok(lines.some((line) => line.endsWith('/partner-api-client/client.d.ts')))
  // The types of valibot itself name `Blob` and `File`.
  const own = lines.filter((line) => isError(line) && !line.startsWith('node_modules/valibot/'))
  t.same(own, [])
  const withSchemas = ['.', './node', './bun', './deno', './workers']
  const others = Object.keys(sources).filter((entry) => !withSchemas.includes(entry))
  writeFileSync(
    join(folder, 'imports.ts'),
    others.map((entry) => `import '${entry.replace('.', 'partner-api')}'`).join('\n'),
  )
  t.same((await compile(typescript7, ['imports.ts'], strict)).filter(isError), [], others.join())
  const typeRoots = [join(ROOT, 'node_modules/@types')]
  writeFileSync(join(folder, 'imports.ts'), `import 'partner-api'`)
  const onNode = await compile(typescript7, ['imports.ts'], { ...strict, types: ['node'], typeRoots })
  t.same(onNode.filter(isError), [], '@types/node has both')
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
  "export { createPartnerApi } from 'partner-api'": [51_100, 113_500],
  "export { createPartnerApi } from 'partner-api'; export { openSqliteStore } from 'partner-api/sqlite'": [
    88_000,
    147_600,
  ],
  "export { createPartnerClient } from 'partner-api-client'": [5_600, 5_600],
  "export { Problem } from 'partner-api'": [2_200, 2_200],
  "export * from 'partner-api'": [73_000, 128_300],
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
  const [service, onSqlite, client] = [...said.values()]
  const later = service!.whole - service!.start
  const sentence =
    `${kilobytes(service!.start)} KB without a store and ${kilobytes(onSqlite!.start)} KB with SQLite, ` +
    `plus ${kilobytes(later)} KB loaded on demand; the client is ${kilobytes(client!.start)} KB`
  t.ok(read('README.md').replaceAll('\n', ' ').includes(sentence), `README: ${sentence}`)
})
