/**
 * Builds the Containerfile of the examples and runs what it makes, with the restrictions of docs/deploy.md. The images that
 * it names are replaced by local ones with the same programs at the same paths; the file itself is unchanged.
 */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import { ROOT } from '../package/installed.ts'
import { packPackages } from '../package/tarballs.ts'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import { temporaryFolder } from '../support/cli-program.ts'
import { build, buildImage, npmFolder, openPodman, serveDependencies } from './containers.ts'
import { readPage } from './docs.ts'

const podman = await openPodman()
if (typeof podman === 'string') {
  t.test('the image', { skip: podman }, (t) => t.end())
  process.exit()
}
t.teardown(() => podman.close())

const FILE = 'examples/deploy/Containerfile'
const [withNpm = '', withNode = ''] = [...readPage(FILE).matchAll(/^FROM (\S+)/gm)].map(([, name]) => name!)
const restrictions = [
  ...['--read-only', '--read-only-tmpfs=false', '--cap-drop', 'all', '--security-opt', 'no-new-privileges'],
  ...['--cgroups', 'disabled', '--pull', 'never'],
]

await t.test('it is built', async (t) => {
  const context = temporaryFolder()
  const repository = 'https://github.com/acme-travel/partner-api'
  const [registry] = await Promise.all([
    serveDependencies(temporaryFolder()),
    packPackages(ROOT, context, { repository, homepage: repository, bugs: repository }),
    buildImage(podman, withNode, {
      programs: { '/nodejs/bin/node': join(ROOT, 'test/node-24/node_modules/.bin/node') },
      texts: { '/etc/passwd': 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' },
      instructions: ['ENTRYPOINT ["/nodejs/bin/node"]'],
    }),
  ])
  t.teardown(() => registry.close())
  await buildImage(podman, withNpm, {
    from: withNode,
    programs: { '/bin/sh': '/bin/sh', '/bin/mkdir': '/bin/mkdir', '/usr/bin/env': '/usr/bin/env' },
    folders: { '/usr/local/lib/node_modules/npm': npmFolder() },
    links: {
      '/usr/local/bin/node': '/nodejs/bin/node',
      '/usr/local/bin/npm': '../lib/node_modules/npm/bin/npm-cli.js',
    },
    instructions: [`ENV PATH=/usr/local/bin:/usr/bin:/bin npm_config_registry=${registry.url}`],
  })
  cpSync(join(ROOT, FILE), join(context, 'Containerfile'))
  await build(podman, 'partner-api', join(context, 'Containerfile'), context)
  const [{ Size, Config }] = JSON.parse(await podman.run('inspect', 'partner-api'))
  t.comment(`${(Size / 1e6).toFixed(0)} MB`)
  t.ok(Size < 150e6, `${Size} bytes`)
  t.equal(Config.User, '65532:65532', 'a number, which Kubernetes needs to know that it is not root')
  t.same(Object.keys(Config.Volumes), ['/data'])
  t.equal(Config.StopSignal, 'SIGTERM')
  t.notMatch(JSON.stringify(Config.Env), registry.url)
})

/** Runs a script in a new container. */
const evaluate = (script: string) =>
  podman.run(
    'run',
    '--rm',
    ...restrictions,
    '--network=none',
    '--entrypoint=node',
    'partner-api',
    '-e',
    script,
  )

await t.test('it has no npm, shell or compiler, and writes nowhere but in its volume', async (t) => {
  const found = JSON.parse(
    await evaluate(`
      const names = ['opt', 'usr', 'nodejs', 'etc', 'lib', 'bin'].filter((name) => fs.existsSync('/' + name))
        .flatMap((name) => fs.readdirSync('/' + name, { recursive: true }))
      const status = fs.readFileSync('/proc/self/status', 'utf8')
      console.log(JSON.stringify({
        tools: names.filter((path) => /(^|\\/)(npm|npx|sh|bash|make|gcc|tsc)$/.test(path)),
        files: names.length,
        ids: [process.getuid(), process.getgid(), process.pid],
        rights: status.match(/^(CapEff|CapBnd|NoNewPrivs):.*/gm).map((line) => parseInt(line.split('\\t')[1], 16)),
        writable: ['/', '/tmp', '/opt/partner-api', '/nodejs', '/data'].filter((path) => {
          try { fs.writeFileSync(path + '/new', ''); return true } catch { return false }
        }),
      }))`),
  )
  t.same(found.tools, [])
  t.ok(found.files > 300)
  t.same(found.ids, [65532, 65532, 1])
  t.same(found.rights, [0, 0, 1])
  t.same(found.writable, ['/data'])
})

await t.test('it serves, answers commands, stops when told, and finds its data again', async (t) => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const health = () => fetch(`${url}/service/health`).then(({ status }) => status, () => 0)
  const start = async () => {
    const flags = [
      '--network=host',
      '--env',
      `PORT=${port}`,
      '--env',
      'HOST=127.0.0.1',
      '--volume',
      'data:/data',
    ]
    await podman.run('run', '--detach', '--name', 'partner-api', ...restrictions, ...flags, 'partner-api')
    await until(async () => await health() === 200, 'the container to serve')
  }
  const stop = async () => {
    await podman.run('stop', '--time', '15', 'partner-api')
    const [{ State }] = JSON.parse(await podman.run('inspect', 'partner-api'))
    t.equal(State.ExitCode, 0)
    t.match((await podman.attempt(['logs', 'partner-api'])).stderr, '"event":"stopped"')
    await podman.run('rm', 'partner-api')
  }
  const command = (...words: string[]) => podman.run('exec', 'partner-api', 'partner-api', ...words)
  const verify = (key: string) =>
    podman.attempt(
      ['exec', '-i', 'partner-api', 'partner-api', 'verify', '--url', url, '--partner', 'acme', '--json'],
      key,
    )

  await start()
  t.equal((await podman.attempt(['healthcheck', 'run', 'partner-api'])).code, 0, 'healthy')
  await command('partners', 'create', 'acme', '--name', 'Acme Travel', '--module', 'profiles')
  const key = await command('keys', 'issue', 'acme', '--name', 'Shop', '--quiet')
  const verified = await verify(key)
  t.equal(verified.code, 0, verified.stderr)
  t.equal(JSON.parse(verified.stdout).data.partner.slug, 'acme')
  await stop()
  await start()
  t.equal((await verify(key)).code, 0, 'the volume has the data')
  await stop()
})
