/**
 * Runs what a page of the docs shows. The language of a code block says how it is checked:
 *
 * - `sh`: the blocks of a page are run in order, in a fresh folder with the command `partner-api`.
 * - `ts`: a program that is run between them, in the same folder.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { hasServer } from '../postgres/binaries.ts'
import { type Databases, useServer } from '../postgres/server.ts'
import { cleanEnv, runProgram } from '../support/cli-program.ts'
import { type Block, blocksOf, PAGES, ROOT } from './docs.ts'

const exampleStore = 'postgres://partner_api@db.example/partner_api'
const exports: Readonly<Record<string, string>> =
  JSON.parse(readFileSync(join(ROOT, 'deno.json'), 'utf8')).exports

/** What the commands of a page print, in this order. */
const printed: Readonly<Record<string, readonly RegExp[]>> = {
  'README.md': [/The key is valid\./, /"slug":"universite-du-voyage"/, /"status":"ok"/],
  'docs/base-path.md': [/(?:200 \/\S+\n){5}/],
  'docs/concepts.md': [/refused: 403 module_inactive/],
  'docs/content-format.md': [/2 created/, /line 2/],
  'docs/first-integration.md': [
    /The key is valid\./,
    /\n6\n/,
    /403 module_inactive: The module widget is not active for this partner\./,
    /module\.activated/,
  ],
  'docs/monitor.md': [/true/],
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
  'docs/test-your-mount.md': [/All is as it should be\./],
  'docs/upgrade.md': [/audit log is intact/, /11 ok and 1 skipped/],
}

/** Pages that begin with the partner and key that the commands of another page create. */
const beginsWith: Readonly<Record<string, string>> = { 'docs/protect.md': 'docs/own-endpoints.md' }

let server: Promise<Databases> | undefined
t.teardown(async () => (await server)?.close())

/** Whether a block is run. */
export const isRun = ({ language, file }: Block): boolean =>
  language === 'sh' || language === 'ts' && file === undefined

/** The blocks of a page that are run. */
const commandsOf = (page: string): readonly Block[] => blocksOf(page).filter(isRun)

/** The pages with commands, those that call curl or those that do not. */
export function pagesWithCommands({ curl }: { readonly curl: boolean }): readonly string[] {
  return PAGES.filter((page) => commandsOf(page).length > 0)
    .filter((page) => commandsOf(page).some(({ code }) => /\bcurl\b/.test(code)) === curl)
}

/** Tests that the commands of a page work. */
export function testCommands(page: string): void {
  const before = beginsWith[page]
  const setUp = before === undefined ? [] : commandsOf(before).filter(({ language }) => language === 'sh')
  const own = [...setUp, ...commandsOf(page)]
  const needsServer = own.some(({ code }) => code.includes(exampleStore))
  t.test(
    `the commands of ${page} work in order`,
    { skip: needsServer && hasServer() || false },
    async (t) => {
      const folder = await makeFolder(t)
      const commands = await runCommandsIn(t, folder)
      let script = [commands, lifecycle, ...own.map(toScript)].join('\n')
      if (needsServer) {
        const { password, createDatabase } = await (server ??= useServer())
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
  const stdoutFile = join(folder, '.stdout')
  const stderrFile = join(folder, '.stderr')
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
  const client = JSON.stringify(join(ROOT, 'adapters/client/mod.ts'))
  const local = code.replaceAll(`'partner-api-client'`, client).replace(
    /'partner-api(\/\w+)?'/g,
    (_, entry = '') => JSON.stringify(join(ROOT, exports[`.${entry}`] ?? 'nowhere')),
  )
  const isServer = /\bserve\(/.test(code)
  return `${title}\ncat > ${name} <<'PROGRAM'\n${local}PROGRAM\n${
    isServer
      ? `start node ${name}; node -e "fetch('$base/service/health').then(async (it) => console.log(await it.text()))"; stop`
      : `node ${name}`
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
