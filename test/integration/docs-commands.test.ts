/**
 * Runs what the docs show. The language of a code block says how it is checked:
 *
 * - `sh`: the blocks of a page are run in order, in a fresh folder with the command `partner-api`.
 * - `ts`: a program that is run between them, in the same folder.
 * - `console`: commands that a test cannot run, only of the programs in `notRun`.
 * - `json` is JSON, and `text` is output or a diagram.
 * - After `<!-- examples/FILE -->`, and in any other language: the block equals that file, which other tests run.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { type PostgresServer, startServer } from '../postgres/server.ts'
import { cleanEnv, runProgram } from '../support/cli-program.ts'
import { type Block, blocksOf, PAGES, readPage, ROOT } from './docs.ts'

/** Programs that need root, a registry or a daemon, and what comes from them. */
const notRun = ['npm', 'npx', 'bun', 'bunx', 'deno', 'docker', 'kubectl', 'sudo', 'systemctl', 'journalctl']
const exampleStore = 'postgres://partner_api@db.example/partner_api'
const exports: Readonly<Record<string, string>> =
  JSON.parse(readFileSync(join(ROOT, 'deno.json'), 'utf8')).exports

/** What the commands of a page print, in this order. */
const printed: Readonly<Record<string, readonly RegExp[]>> = {
  'README.md': [/The key is valid\./, /"slug":"universite-du-voyage"/, /"status":"ok"/],
  'docs/concepts.md': [/refused: 403 module_inactive/],
  'docs/content-format.md': [/2 created/, /line 2/],
  'docs/first-integration.md': [
    /The key is valid\./,
    /\n6\n/,
    /403 module_inactive: The module widget is not active for this partner\./,
    /module\.activated/,
  ],
  'docs/move-here.md': [/1 issued.*Nothing was written/],
  'docs/operate.md': [
    /refused: 403 module_inactive/,
    /works until/,
    /audit log is intact/,
    /\d ok and \d not allowed/,
  ],
  'docs/own-endpoints.md': [/"id":"c42".*"has_more":false/],
  'docs/protect.md': [/Invoice a17 for Acme Travel/, /function/],
  'docs/partners.md': [/"has_more":true/, /The key is valid\./],
  'docs/plan-changes.md': [/1 key\./, /successor: +\w{12}, until/],
  'docs/postgres.md': [
    /copy is complete/,
    /The key is valid\./,
    /web-1 applied it after \d+ ms/,
    /key_revoked/,
    /"status":"ok"/,
  ],
  'docs/upgrade.md': [/audit log is intact/, /11 ok and 1 skipped/],
}

let server: Promise<PostgresServer> | undefined
t.teardown(async () => (await server)?.close())

const blocks = PAGES.flatMap(blocksOf)
const isRun = ({ language, file }: Block): boolean =>
  language === 'sh' || language === 'ts' && file === undefined

for (const page of PAGES) {
  const own = blocksOf(page).filter(isRun)
  if (own.length === 0) continue
  const needsServer = own.some(({ code }) => code.includes(exampleStore))
  t.test(
    `the commands of ${page} work in order`,
    { skip: needsServer && hasServer() || false },
    async (t) => {
      const folder = await makeFolder(t)
      const commands = await runCommandsIn(t, folder)
      let script = [commands, lifecycle, ...own.map(toScript)].join('\n')
      if (needsServer) {
        const { password, createDatabase } = await (server ??= startServer())
        const url = new URL(await createDatabase())
        url.password = ''
        script = script.replaceAll(exampleStore, url.href)
        process.env['PGPASSWORD'] = password
        t.teardown(() => delete process.env['PGPASSWORD'])
      }
      const { status, output } = await runShell(script, folder)
      if (status !== 0) t.comment(output.replaceAll('\r', '\n'))
      t.equal(status, 0)
      t.match(output, new RegExp((printed[page] ?? []).map(({ source }) => source).join('.*'), 's'))
    },
  )
}

/** Creates a folder with the program `partner-api`. */
async function makeFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'partner-api-docs-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const program = join(folder, 'partner-api')
  await writeFile(program, `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, 'cli/main.ts')}" "$@"\n`)
  await chmod(program, 0o755)
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/**
 * Runs the commands of a page, except `serve`, in this process: a page has up to thirty, and a process for each would
 * take most of the test's time.
 *
 * @returns A shell function `partner-api`, which sends its arguments to this process.
 */
async function runCommandsIn(t: Test, folder: string): Promise<string> {
  const before = process.cwd()
  process.chdir(folder)
  t.teardown(() => process.chdir(before))
  const [stdoutFile, stderrFile] = [join(folder, '.stdout'), join(folder, '.stderr')]
  const listener = createServer((socket) => {
    let received = ''
    socket.on('data', async (chunk) => {
      received += chunk
      if (!received.endsWith('\0\n')) return
      const [PARTNER_API_STORE = '', PARTNER_API_KEY = '', ...args] = received.slice(0, -2).split('\0')
      const env = { ...PARTNER_API_STORE && { PARTNER_API_STORE }, ...PARTNER_API_KEY && { PARTNER_API_KEY } }
      const { code, stdout, stderr } = await runProgram(args, { env })
      await writeFile(stdoutFile, stdout)
      await writeFile(stderrFile, stderr)
      socket.end(`${code}\n`)
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => listener.close())
  return `partner-api() {
    local code
    exec {connection}<>/dev/tcp/127.0.0.1/${(listener.address() as AddressInfo).port}
    printf '%s\\0' "\${PARTNER_API_STORE-}" "\${PARTNER_API_KEY-}" "$@" >&$connection
    echo >&$connection
    read -r code <&$connection
    exec {connection}>&-
    cat .stdout
    cat .stderr >&2
    return $code
  }`
}

/** One server runs at a time. `start COMMAND` waits until it accepts connections, and sets `base`. */
const lifecycle = `
  server=
  stop() { if [ -n "$server" ]; then kill $server; wait $server; server=; fi; }
  trap stop EXIT
  start() {
    stop
    : > served
    "$@" > served & server=$!
    until grep -q http:// served; do kill -0 $server; read -t 0.05 <> <(:) || true; done
    base=$(sed 's/.*http:/http:/' served)
  }`

/** The only changes: free ports, the wait for a server, and the sources instead of the package. */
function toScript({ place, language, code }: Block): string {
  const title = `echo "# ${place}" >&2`
  if (language === 'sh') {
    const commands = code
      .replace(
        /^partner-api serve (?:--host 0\.0\.0\.0 )?--port 8787(.*?)( &)?$/gm,
        'start ./partner-api serve --port 0$1',
      )
      .replaceAll('http://127.0.0.1:8787', '$base')
    return `${title}\n${commands}`
  }
  const name = `line-${place.split(':')[1]}.mts`
  const local = code.replace(
    /'partner-api(\/\w+)?'/g,
    (_, entry = '') => JSON.stringify(join(ROOT, exports[`.${entry}`] ?? 'nowhere')),
  )
  const isServer = /\bserve\(/.test(code)
  return `${title}\ncat > ${name} <<'PROGRAM'\n${local}PROGRAM\n${
    isServer ? `start node ${name}; curl -sSf $base/service/health; stop` : `node ${name}`
  }`
}

async function runShell(
  script: string,
  folder: string,
): Promise<{ status: number | null; output: string }> {
  const PATH = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter)
  const child = spawn('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    cwd: folder,
    env: { ...cleanEnv(), PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => output += chunk)
  const [status] = await once(child, 'close') as [number | null]
  return { status, output }
}

t.test('a command that starts a server is the only one of its code block', (t) => {
  const serving = blocks.filter(({ language, code }) =>
    language === 'sh' && /^partner-api serve /m.test(code)
  )
  t.ok(serving.length >= 2)
  for (const { place, code } of serving) t.match(code, /^partner-api serve .*\n$/, place)
  t.end()
})

t.test('blocks that are not run show files, JSON, output or commands of other programs', (t) => {
  for (const block of blocks) {
    const { place, language, file, code } = block
    if (isRun(block) || language === 'text') continue
    if (language === 'json') t.ok(JSON.parse(code), place)
    else if (language === 'console') {
      for (const line of code.trim().replaceAll('\\\n', '').split('\n')) {
        t.ok(line.startsWith('#') || notRun.includes(line.split(' ')[0]!), `${place}: ${line}`)
      }
    } else t.equal(code, file && readFileSync(join(ROOT, file), 'utf8'), `${place} shows a file of examples`)
  }
  const count = blocks.filter(({ language }) => language === 'console').length
  t.ok(count <= 17, `${count} blocks of commands that no test runs`)
  t.end()
})

t.test('every example has a place in the docs', (t) => {
  const docs = PAGES.map(readPage).join('')
  for (const name of readdirSync(join(ROOT, 'examples'))) t.match(docs, `examples/${name}`)
  t.end()
})

t.test('the npm scripts that the docs name exist', (t) => {
  const { scripts } = JSON.parse(readPage('package.json'))
  for (const page of [...PAGES, 'test/README.md']) {
    const text = readPage(page)
    for (
      const [, script = ''] of text.matchAll(
        /npm (?:run (?:-s )?)?(start|test|check|fmt|build|bench|partner-api)\b/g,
      )
    ) {
      t.type(scripts[script], 'string', `${page}: npm script ${script}`)
    }
  }
  t.end()
})

t.test('the directory example is as short as the docs state', (t) => {
  t.match(readPage('docs/embed.md'), 'fewer than 120 lines')
  t.ok(readPage('examples/companies.ts').trimEnd().split('\n').length < 120)
  t.end()
})
