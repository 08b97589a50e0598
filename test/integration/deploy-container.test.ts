/**
 * Builds an image of the package and runs it, with the restrictions of docs/deploy.md. The images that
 * it names are replaced by local ones with the same programs at the same paths; the file itself is unchanged. Then runs
 * the systemd units of the examples, with systemd as the first process of a container.
 */
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { ROOT, run } from '../package/installed.ts'
import { serveDependencies } from '../package/registry.ts'
import { copyCheckout, packPackages, tarballOf } from '../package/tarballs.ts'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import { temporaryFolder } from '../support/cli-program.ts'
import { build, buildImage, npmFolder, openPodman } from './containers.ts'
import { readPage } from './docs.ts'

const podman = await openPodman()
if (typeof podman === 'string') {
  t.test('the image', { skip: podman }, (t) => t.end())
  process.exit()
}
t.teardown(() => podman.close())

const execStart = /^ExecStart=.*$/m.exec(readPage('examples/deploy/partner-api.service'))![0]
const FILE = 'examples/deploy/Containerfile'
const [withNpm = '', withNode = ''] = [...readPage(FILE).matchAll(/^ARG \w+=(\S+)/gm)].map(([, name]) =>
  name!
)
const restrictions = [
  '--read-only',
  '--read-only-tmpfs=false',
  '--cap-drop',
  'all',
  '--security-opt',
  'no-new-privileges',
  '--cgroups',
  'disabled',
  '--pull',
  'never',
]

await t.test('it is built', async (t) => {
  const checkout = join(temporaryFolder(), 'checkout')
  const context = temporaryFolder()
  copyCheckout(checkout)
  const [registry] = await Promise.all([
    serveDependencies(temporaryFolder()),
    packPackages(checkout, context),
    buildImage(podman, withNode, {
      programs: { '/nodejs/bin/node': join(ROOT, 'test/node-24/node_modules/.bin/node') },
      texts: { '/etc/passwd': 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' },
      instructions: ['ENTRYPOINT ["/nodejs/bin/node"]'],
    }),
  ])
  t.teardown(() => registry.close())
  await buildImage(podman, withNpm, {
    from: withNode,
    programs: Object.fromEntries(
      ['/bin/sh', '/bin/mkdir', '/bin/rm', '/usr/bin/env'].map((path) => [path, path]),
    ),
    folders: { '/usr/local/lib/node_modules/npm': npmFolder() },
    links: {
      '/usr/local/bin/node': '/nodejs/bin/node',
      '/usr/local/bin/npm': '../lib/node_modules/npm/bin/npm-cli.js',
    },
    instructions: [`ENV PATH=/usr/local/bin:/usr/bin:/bin npm_config_registry=${registry.url}`],
  })
  cpSync(join(ROOT, FILE), join(context, 'Containerfile'))
  // The command of the docs makes the lock file beside the tarball.
  const [, command = ''] = /^npm (install --package-lock-only .*)$/m.exec(readPage('docs/deploy.md'))!
  t.match(command, tarballOf('partner-api'))
  await run('npm', [...command.split(' '), '--registry', registry.url], context)
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

const systemd = '/lib/systemd/systemd'

const skipSystemd = !existsSync(systemd)
  ? 'systemd is not installed'
  : process.getuid!() !== 0
  ? 'systemd as the first process of a container needs root'
  : false
const shared = 'examples/deploy/partner-api@.service'

/** Starts systemd as the first process of a container. */
const startSystemd = async (t: Test, unit: string, ...network: string[]) => {
  const flags = [
    '--cap-add=all',
    '--security-opt=seccomp=unconfined',
    '--security-opt=unmask=all',
    '--systemd=false',
    '--cgroups=disabled',
    '--cgroupns=host',
    '--volume=/sys/fs/cgroup:/sys/fs/cgroup',
    ...network,
    '--pull=never',
    '--tmpfs=/run',
    '--env=container=podman',
    '--env=SYSTEMD_UNIT_PATH=/units',
  ]
  const words = [`--entrypoint=${systemd}`, 'systemd', `--unit=${unit}`]
  await podman.run('run', '--detach', '--name', 'systemd', ...flags, ...words)
  t.teardown(() => podman.attempt(['rm', '--force', '--time', '0', 'systemd']))
  const inside = (...words: string[]) => podman.run('exec', 'systemd', ...words)
  return { inside, systemctl: (...words: string[]) => inside('/usr/bin/systemctl', ...words) }
}

await t.test('the unit runs under systemd', { skip: skipSystemd }, async (t) => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const target = '[Unit]\nDescription=Nothing\n'
  await buildImage(podman, 'systemd', {
    from: 'partner-api',
    programs: { [systemd]: systemd, '/usr/bin/systemctl': '/usr/bin/systemctl' },
    links: { '/usr/bin/node': '/nodejs/bin/node' },
    texts: {
      '/etc/passwd': 'root:x:0:0::/:/sbin/nologin\npartner-api:x:990:990::/:/sbin/nologin\n',
      '/etc/group': 'root:x:0:\npartner-api:x:990:\n',
      // Folders that systemd expects.
      ...Object.fromEntries(['tmp', 'var/tmp', 'var/lib', 'home', 'root'].map((path) => [`/${path}/x`, ''])),
      // Its only units: nothing else of a system is started, cleaned up or mounted.
      '/units/partner-api.service': readPage('examples/deploy/partner-api.service'),
      '/units/partner-api.service.d/test.conf': `[Service]\nExecStart=\n${
        execStart.replace('8787', String(port))
      }\nStandardError=file:/run/log\n`,
      '/units/partner-api@.service': readPage(shared),
      '/units/both.target': '[Unit]\nWants=partner-api@1.service partner-api@2.service\n',
      '/units/load.service':
        '[Service]\nExecStart=/usr/bin/node /load.ts 8787\nStandardOutput=file:/run/load\n',
      '/load.ts': readPage('test/support/restart-load.ts'),
      ...Object.fromEntries(
        ['sysinit', 'basic', 'shutdown'].map((name) => [`/units/${name}.target`, target]),
      ),
    },
    instructions: ['USER 0:0'],
  })
  const { inside, systemctl } = await startSystemd(t, 'partner-api.service', '--network=host')
  const show = (property: string) => systemctl('show', '--value', '--property', property, 'partner-api')
  await until(
    () => fetch(`${url}/service/health`).then(({ ok }) => ok, () => false),
    'the service to be healthy',
  )

  const script = `
    const read = (name) => fs.readFileSync('/proc/${await show('MainPID')}/' + name, 'utf8')
    const mounts = read('mountinfo').trim().split('\\n').map((line) => line.split(' '))
    console.log(JSON.stringify({
      status: Object.fromEntries(read('status').split('\\n').map((line) => line.split(':\\t'))),
      writable: mounts.filter(([,,,,, options]) => /^rw/.test(options)).map(([,,,, path]) => path),
      users: read('uid_map').trim().split('\\n').length,
      mode: fs.statSync('/var/lib/partner-api/partner-api.db').mode & 0o777,
    }))`
  const { status, writable, users, mode } = JSON.parse(await inside('node', '-e', script))
  t.match(status.Uid, /^990\t/)
  t.equal(status.NoNewPrivs, '1')
  t.equal(parseInt(status.CapBnd, 16), 0)
  t.equal(status.Seccomp, '2')
  t.ok(users > 1, 'PrivateUsers')
  t.comment(`writable: ${writable.join(' ')}`)
  t.ok(writable.includes('/var/lib/partner-api'))
  t.notOk(writable.some((path: string) => /^\/(?:|etc|opt|usr|home|sys)$/.test(path)))
  t.equal(mode, 0o600)
  await systemctl('stop', 'partner-api')
  t.equal(await show('Result'), 'success')
  t.match(await inside('node', '-p', "fs.readFileSync('/run/log', 'utf8')"), '"event":"stopped"')
})

await t.test(
  'no request is lost when each instance of the template restarts',
  { skip: skipSystemd },
  async (t) => {
    const page = readPage('docs/deploy.md')
    const [, setting = ''] = /sudo sysctl --write (\S+)\n/.exec(page) ?? []
    const restarts = Array.from(page.matchAll(/^sudo systemctl restart (\S+)$/gm), ([, unit]) => unit!)
    t.equal(restarts.length, 2)
    const { inside, systemctl } = await startSystemd(
      t,
      'both.target',
      '--network=none',
      `--sysctl=${setting}`,
    )
    const isReady =
      `const { status } = await fetch('http://127.0.0.1:' + process.argv[1] + '/ready'); process.exit(status === 200 ? 0 : 1)`
    const ready = async (port: number) =>
      (await podman.attempt(['exec', 'systemd', 'node', '--input-type=module', '-e', isReady, String(port)]))
        .code === 0
    const pids = () =>
      Promise.all(restarts.map((unit) => systemctl('show', '--value', '--property', 'MainPID', unit)))
    for (const port of [9461, 9462]) await until(() => ready(port), `the instance with metrics on ${port}`)
    const before = await pids()
    await systemctl('start', 'load')
    const output = () => inside('node', '-p', "fs.readFileSync('/run/load', 'utf8')")
    await until(async () => (await output()).startsWith('answered'), 'responses')
    for (const unit of restarts) await systemctl('restart', unit)
    for (const port of [9461, 9462]) await until(() => ready(port), `the instance with metrics on ${port}`)
    const after = await pids()
    t.ok(
      before.every((pid, index) => pid !== after[index] && Number(after[index]) > 0),
      'both have restarted',
    )
    await systemctl('stop', 'load')
    const { answered, failures } = JSON.parse((await output()).trim().split('\n').at(-1)!)
    t.comment(`${answered} requests`)
    t.same(failures, {})
    t.ok(answered > 100)
  },
)
