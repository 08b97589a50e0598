/** The executables of `npm run executable`: they run in an empty folder, without an environment. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { temporaryFolder } from '../support/cli-program.ts'
import { buildExecutable } from './executable.ts'
import { binary } from './installed.ts'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const absences = {
  node: major > 25 || (major === 25 && minor >= 7) ? false : 'node --build-sea needs Node 25.7',
  bun: existsSync(binary('bun')) ? false : 'Bun is not installed',
}

for (const runtime of ['node', 'bun'] as const) {
  test(`an executable with ${runtime} inside needs no other file`, {
    skip: absences.bun || absences[runtime],
  }, async (t) => {
    const folder = temporaryFolder()
    const file = join(folder, 'partner-api')
    buildExecutable(runtime, file)
    const cwd = join(folder, 'empty')
    mkdirSync(cwd)

    const run = (words: string[], env: Record<string, string> = {}) =>
      new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
        const child = execFile(
          file,
          words,
          { cwd, env },
          (error, stdout, stderr) =>
            resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
        )
        child.stdin!.end()
      })
    t.match(await run(['--version']), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' })
    t.match(await run(['--store', 'sqlite:a.db', 'migrate']), { code: 0, stdout: /pending: +nothing/ })
    t.match(await run(['no-such-command']), { code: 2 })
    // Loads every command.
    t.match(await run(['completions', 'bash']), { code: 0, stdout: 'partner-api' })

    const demo = spawn(file, ['demo', '--port', '0', '--json'], { cwd, env: {} })
    t.teardown(() => demo.kill('SIGKILL'))
    const [line] = await once(createInterface(demo.stdout), 'line')
    const { key, url, content } = JSON.parse(line).data
    t.match(content, { profiles: 64 })
    const profiles = await fetch(`${url}/service/public/profiles?partner=demo`, {
      headers: { 'x-service-partner-key': key },
    })
    t.equal(profiles.status, 200)
    t.equal((await profiles.json()).data.length, 20)
    for (const page of ['docs', 'openapi.json']) {
      const { status, headers } = await fetch(`${url}/service/${page}`)
      t.same([status, headers.get('content-type')?.split(/[/;]/)[1]], [
        200,
        page === 'docs' ? 'html' : 'json',
      ])
    }
    t.match(
      await run(['verify', '--url', url, '--partner', 'demo', '--smoke'], { PARTNER_API_KEY: key }),
      { code: 0 },
    )
    demo.kill('SIGTERM')
    const [code] = await once(demo, 'exit')
    t.equal(code, 0)

    const words = [
      'serve',
      '--port',
      '0',
      '--metrics',
      '0',
      ...process.platform === 'linux' ? ['--workers', '2'] : [],
    ]
    const server = spawn(file, words, { cwd, env: {} })
    t.teardown(() => server.kill('SIGKILL'))
    const exited = once(server, 'exit')
    const started = await Promise.race([once(createInterface(server.stdout), 'line'), exited])
    t.match(started, [/^listening on /])
    const restore = await run(['store', 'restore', 'a.db', '--replace'])
    t.match(restore, { code: 1, stderr: /Another process/ })
    server.kill('SIGTERM')
    t.same(await exited, [0, null])
    t.match(await run(['store', 'backup', 'b.db']), { code: 0, stdout: /^seal: /m })
    t.same(readdirSync(cwd).filter((name) => !/\.db(?:-[\w-]+)?$/.test(name)), [])
  })
}
