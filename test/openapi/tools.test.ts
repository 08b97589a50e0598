/**
 * What others' tools say of the document: Redocly, Spectral with OWASP's rules, an OpenAPI validator, and types that
 * openapi-typescript makes of it, with which a client reads every endpoint of a running service.
 */
import { spawn } from 'node:child_process'
import { copyFile, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'
import t from 'tap'
import { serve } from '../../adapters/runtimes/node.ts'
import { createPartnerApi } from '../../core/api.ts'
import { createDocument } from '../../core/openapi/document.ts'
import { ROUTES } from '../../core/routes/router.ts'
import { resolveSettings } from '../../core/settings.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { fillWorld } from '../support/world.ts'

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, '../..')

const folder = await mkdtemp(join(tmpdir(), 'partner-api-openapi-'))
await symlink(join(root, 'test/node_modules'), join(folder, 'node_modules'))
t.teardown(() => rm(folder, { recursive: true, force: true }))

const described = await createDocument(ROUTES, resolveSettings({}))
const made = JSON.stringify(described)
const file = join(folder, 'openapi.json')
await writeFile(file, made)

/** Without a bound, and with references to nothing: a tool that looks finds both. */
const broken = join(folder, 'broken.json')
const verify = '/service/developer/verify-key'
const some = { ...described, paths: { [verify]: described.paths[verify] }, components: {} }
await writeFile(broken, JSON.stringify(some).replace(/"maxLength":80,/g, ''))

interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Runs a package's program with this Node, away from everybody's services. */
function run(program: string, options: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...options], {
    cwd: folder,
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output += chunk)
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

/** The program of a package, as the tools of this folder or as the project has it. */
function programOf(name: string, bin: string, from = join(here, 'package.json')): string {
  const require = createRequire(from)
  for (const place of require.resolve.paths(name) ?? []) {
    const manifest = join(place, name, 'package.json')
    try {
      return join(dirname(manifest), require(manifest).bin[bin])
    } catch {
      // Not here.
    }
  }
  throw new Error(`${name} is not installed.`)
}

t.test('Redocly’s strictest rules hold', async (t) => {
  const options = ['lint', file, broken, '--config', join(here, 'redocly.yaml')]
  const { code, output } = await run(programOf('@redocly/cli', 'redocly'), options)
  t.equal(code, 1)
  const found = [...output.matchAll(/^\[\d+\] (\S+?):/gm)].map(([, path = '']) => path)
  t.strictSame([...new Set(found)], ['broken.json'], output)
  t.match(output, /openapi\.json: validated/)
})

t.test('Spectral’s and OWASP’s rules hold, but for those that are named', async (t) => {
  const rules = ['--ruleset', join(here, 'spectral.yaml'), '--fail-severity', 'hint', '--format', 'json']
  const { code, output } = await run(programOf('@stoplight/spectral-cli', 'spectral'), [
    'lint',
    file,
    broken,
    ...rules,
  ])
  t.equal(code, 1)
  const found: readonly { code: string; source: string }[] = JSON.parse(output)
  t.strictSame(found.filter(({ source }) => !source.endsWith('broken.json')), [])
  t.ok(found.some(({ code }) => code === 'owasp:api4:2023-string-limit'), 'and it looks')
})

t.test('it is OpenAPI 3.1', async (t) => {
  const validator = new Validator()
  const result = await validator.validate(JSON.parse(made))
  t.ok(result.valid, JSON.stringify(result.errors))
  t.equal(validator.version, '3.1')
  const without = { ...JSON.parse(made), info: {} }
  t.notOk((await new Validator().validate(without)).valid, 'and it looks')
})

t.test('a client with generated types compiles, and reads every endpoint', async (t) => {
  const wire = join(folder, 'wire.d.ts')
  const types = await run(programOf('openapi-typescript', 'openapi-typescript'), [file, '--output', wire])
  t.equal(types.code, 0, types.output)
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await copyFile(join(here, 'client/client.ts'), join(folder, 'client.ts'))
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { declaration: false, skipLibCheck: false },
      include: ['.'],
      exclude: [],
    }),
  )
  const compiled = await run(programOf('typescript', 'tsc', join(root, 'package.json')), ['-p', folder])
  t.equal(compiled.code, 0, compiled.output)

  const store = await openMemoryStore()
  const { keys } = await fillWorld(store)
  const api = createPartnerApi({ store })
  const server = await serve(api, { port: 0 })
  t.teardown(async () => {
    await server.close()
    await api.close()
  })
  const { code, output } = await run(join(folder, 'client.ts'), [server.url, 'demo'], {
    PARTNER_API_KEY: keys['demo full'].text,
  })
  t.equal(code, 0, output)
  t.match(JSON.parse(output), {
    'verify-key': [true, true, 'live', 4],
    widget: ['demo', /./, 6],
    recent: [3, /^[A-Z]{2}$/],
    directory: [Number, Number, true],
    detail: [true, Number],
    banner: null,
    countries: Number,
    industries: Number,
    plans: [7, 12_000],
    signups: [201, 'received'],
    summary: 30,
    activity: ['j***@e***.com', 5],
    health: 'ok',
    openapi: '3.1.1',
    docs: true,
    markdown: ['# Partner API', '### Create a signup'],
    catalog: 2,
    refused: [403, 'partner_mismatch'],
  })
})
