/** Runs the commands of the README, compares its tables with the code, and checks the paths that the docs name. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { parseUrl } from '../../adapters/stores/postgres/url.ts'
import { PROBLEMS } from '../../core/http/problem.ts'
import { DEFAULT_LIMITS } from '../../core/limits/policies.ts'
import { MODULES } from '../../core/policy/modules.ts'
import { compileRoutes, ROUTES } from '../../core/routes/router.ts'
import { hasServer } from '../postgres/binaries.ts'
import { startServer } from '../postgres/server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const readme = await readFile(join(root, 'README.md'), 'utf8')

/** The code blocks of a language, in order. */
function blocks(language: string, text: string = readme): string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, code = '']) =>
    code
  )
}

const many =
  readme.split(/^(?=## )/m).find((section) => section.startsWith('## Serve it from many machines')) ?? ''
const story = blocks('sh', readme.replace(many, ''))
  .filter((block) => block.includes('partner-api ') || block.includes('<<'))

const exampleStore = 'postgres://partner_api@db.example/partner_api'
const noServer = { skip: hasServer() ?? false }

/** Creates a database. @returns Its URL without the password, as in the README, and an environment with it. */
async function exampleDatabase(t: Test): Promise<{ url: string; env: Readonly<Record<string, string>> }> {
  const server = await startServer()
  t.teardown(() => server.close())
  const url = new URL(await server.createDatabase())
  url.password = ''
  return { url: url.href, env: { PGPASSWORD: server.password } }
}

/** Creates a folder with a `partner-api` command. */
async function makeFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'partner-api-readme-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const program = join(folder, 'partner-api')
  await writeFile(program, `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'cli/main.ts')}" "$@"\n`)
  await chmod(program, 0o755)
  return folder
}

/** Serves in the background on a free port, and waits until the server accepts connections. */
function served(options: string): string {
  return [
    // An earlier server may have written this file.
    ': > served',
    `partner-api serve --port 0 ${options} > served & server=$!`,
    `trap 'kill $server; wait $server' EXIT`,
    'until grep -q listening served; do kill -0 $server; read -t 0.05 <> <(:) || true; done',
    `base=$(sed 's/listening on //' served)`,
  ].join('\n')
}

async function runShell(
  script: string,
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ status: number | null; output: string }> {
  const PATH = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter)
  const child: ChildProcess = spawn('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    cwd: folder,
    env: { ...process.env, ...env, PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => output += chunk)
  const [status] = await once(child, 'close') as [number | null]
  return { status, output }
}

t.test('the commands work in order', async (t) => {
  const folder = await makeFolder(t)
  // The only changes: a free port instead of 8787, and the wait for the server.
  const script = story.join('\n')
    .replace('partner-api serve --port 8787 &', served(''))
    .replaceAll('http://127.0.0.1:8787', '$base')
  t.match(script, /\$base/)
  const { status, output } = await runShell(script, folder)
  t.equal(status, 0, output)
  t.match(output, /"slug":"universite-du-voyage"/, 'curl finds the profile')
  t.notMatch(output, /nordlicht-reisen/, 'curl finds no other profile')
  t.match(output, /countries +no/, 'the deactivated module is listed as such')

  await t.test('the commands continue after the move to PostgreSQL', noServer, async (t) => {
    const { url, env } = await exampleDatabase(t)
    // Also use the key before and after it is revoked.
    const use = 'partner-api verify --url "$base" --partner acme --key-file next.key'
    const script = [...blocks('sh', many), `${use} || test $? = 1`].join('\n')
      .replace(exampleStore, url)
      .replace(/partner-api serve --host 0\.0\.0\.0 --port 8787 (.*)/, (_, rest) => `${served(rest)}\n${use}`)
    t.equal(script.split('verify').length, 3)
    t.notMatch(script, 'example')
    const { status, output } = await runShell(script, folder, env)
    t.equal(status, 0, output)
    t.match(output, /The key is valid.*state: +revoked.*web-1 applied it after \d+ ms.*key_revoked/s)
  })
})

t.test('the npm scripts of the README exist', async (t) => {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const named = [...readme.matchAll(/npm (?:run (?:-s )?)?(start|test|check|bench|partner-api)\b/g)].map((
    [, name],
  ) => name)
  t.ok(named.length >= 5)
  for (const line of ['npm ci && npm start', 'npm ci && npm test']) t.match(readme, `\n${line}\n`)
  for (const name of named) t.type(scripts[name ?? ''], 'string', `npm script ${name}`)
})

t.test('a command that starts a server is the only one of its code block', (t) => {
  const serving = blocks('sh').filter((block) => /^partner-api serve /m.test(block))
  t.equal(serving.length, 2)
  for (const block of serving) t.match(block, /^partner-api serve .*\n$/, 'it is the only command')
  t.end()
})

t.test('the directory example is as short as the README states', async (t) => {
  const directory = await readFile(join(root, 'examples/companies.js'), 'utf8')
  t.match(readme, 'in fewer than 100 lines')
  t.ok(directory.split('\n').length < 100)
})

t.test('the README states the defaults of a store URL', (t) => {
  const { tls, connections } = parseUrl('postgres://user@host/name', { environment: {} })
  t.same([tls.mode, connections], ['prefer', 4])
  t.match(readme, /TLS is used when the server offers\s+it.* of which 4 are for reads and transactions/s)
  for (
    const parameter of readme.matchAll(
      /`\??((?:sslmode|connect_timeout|target_session_attrs|pooler)=\w[\w-]*)`/g,
    )
  ) {
    t.ok(parseUrl(`postgres://user@host/name?${parameter[1]}`, { environment: {} }))
  }
  const listed = /Its parameters are (.*?) any other is an error/s.exec(readme)![1]!
  // An empty value counts as absent.
  const names = Array.from(listed.matchAll(/`([a-z_]+)`/g), ([, name]) => `${name}=`)
  t.equal(names.length, 14)
  t.ok(parseUrl(`postgres://user@host/name?${names.join('&')}`, { environment: {} }))
  t.end()
})

const [withSqlite = '', withPostgres = ''] = blocks('ts')

t.test('the embedding example serves', (t) => serves(t, withSqlite))

t.test('the embedding example on PostgreSQL serves', noServer, async (t) => {
  const { url, env } = await exampleDatabase(t)
  await serves(t, withPostgres.replace(exampleStore, url), env)
})

async function serves(t: Test, example: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'partner-api-readme-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  t.notMatch(example, 'db.example')
  const exports = JSON.parse(await readFile(join(root, 'deno.json'), 'utf8')).exports as Record<
    string,
    string
  >
  const local = example.replace(
    /'partner-api(\/\w+)?'/g,
    (_, entry: string | undefined) => JSON.stringify(join(root, exports[`.${entry ?? ''}`] ?? 'nowhere')),
  )
  await writeFile(join(folder, 'example.mts'), local)
  const child = spawn(process.execPath, ['example.mts'], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'close').then(() => Promise.reject(new Error('the example exited before it listened'))),
  ])
  const answer = await fetch(`${String(line).trim()}/service/health`)
  t.same(await answer.json(), { data: { status: 'ok' } })
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  t.same(await closed, [0, null], 'SIGTERM drains the server, and the process exits')
}

const endpoints = compileRoutes(ROUTES, 'service').endpoints
const tables: Record<string, string[]> = {
  endpoints: endpoints.map(({ method, path, scope, access, summary }) =>
    `| ${method} | \`${path}\` | ${
      scope === undefined ? access === 'open' ? 'no key' : 'any key' : `\`${scope}\``
    } | ${summary} |`
  ),
  modules: Object.entries(MODULES).map(([module, { scope, feature }]) =>
    `| \`${module}\` | \`${scope}\` | ${feature} |`
  ),
  limits: Object.entries(DEFAULT_LIMITS)
    .filter(([name]) =>
      name === 'authfail' ||
      ROUTES.some((route) => route.access === 'key' && route.limits.some((limit) => limit === name))
    )
    .map(([name, { quota, windowSeconds }]) => `| \`${name}\` | ${quota} | ${windowSeconds} s |`),
  problems: Object.entries(PROBLEMS).map(([code, { status, detail }]) =>
    `| \`${code}\` | ${status} | ${detail} |`
  ),
}

for (const [name, rows] of Object.entries(tables)) {
  t.test(`the table of ${name} matches the code`, (t) => {
    const [, inside = ''] = new RegExp(`<!-- ${name} -->\\n(.*?)<!-- /${name} -->`, 's').exec(readme) ?? []
    t.same(inside.trimEnd().split('\n').slice(2), rows)
    t.end()
  })
}

t.test('the docs name only files that exist', (t) => {
  const pages = ['README.md', ...globSync('{docs/*,test/README}.md', { cwd: root })]
  t.ok(pages.length >= 5)
  for (const page of pages) {
    const text = readFileSync(join(root, page), 'utf8')
    const paths = text.matchAll(
      /(?<![\w/.-])(?:core|adapters|cli|test|docs|examples|fixtures)\/[\w./*{},-]*[\w/}]/g,
    )
    for (const [path] of paths) {
      t.not(globSync(path.replace('NAME', '*'), { cwd: root }).length, 0, `${page}: ${path}`)
    }
    const folder = join(root, page, '..')
    for (const [, link = ''] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
      t.ok(existsSync(join(folder, link)), `${page}: ${link}`)
    }
  }
  t.end()
})
