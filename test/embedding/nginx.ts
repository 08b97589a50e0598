import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import { EXAMPLES } from './project.ts'

const env = { ...process.env, PATH: `${process.env['PATH']}${delimiter}/usr/sbin` }

/** @returns Why there is no nginx on this machine; undefined where there is one. */
export function hasNginx(): string | undefined {
  const { error } = spawnSync('nginx', ['-v'], { env })
  return error === undefined ? undefined : 'nginx is not installed'
}

/** A site that passes what is below `/partners/` on, as the example says, to a service on a port of this machine. */
export async function startNginx(
  servicePort: number,
): Promise<{ readonly url: string; end(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-nginx-'))
  const port = await freePort()
  const location = readFileSync(join(EXAMPLES, 'nginx.conf'), 'utf8').replace(':8787/', `:${servicePort}/`)
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const places = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`)
  writeFileSync(
    join(folder, 'all.conf'),
    `daemon off;
    master_process off;
    pid ${join(folder, 'pid')};
    error_log stderr warn;
    events {}
    http {
      access_log off;
      ${places.join('\n')}
      server {
        listen 127.0.0.1:${port};
        ${location}
      }
    }`,
  )
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'all.conf')], {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr!.on('data', (text) => said += text)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  await until(() => child.exitCode !== null || accepts(port), 'nginx to listen')
  if (child.exitCode !== null) throw new Error(`nginx ended: ${said}`)
  return {
    url: `http://127.0.0.1:${port}/partners`,
    async end() {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
