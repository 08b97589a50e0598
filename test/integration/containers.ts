/**
 * Podman with a storage of its own, and local images in the place of those that recipes name, because no registry of
 * images can be reached here.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { cleanEnv, type Ended, ending } from '../support/cli-program.ts'

/** Podman, whose containers end with this process. */
export interface Podman {
  /** Runs a command. @throws with what it printed unless it exits with 0. */
  run(...args: string[]): Promise<string>
  /** Runs a command, whatever its exit code. */
  attempt(args: readonly string[], input?: string): Promise<Ended>
  close(): Promise<void>
}

/**
 * Podman needs cgroups of one version, and would otherwise see those of two on some machines. Namespaces show it
 * one, of this process alone, and end its containers with this process.
 */
const namespace = 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && echo ready && exec cat'

/** @returns Why containers cannot be run here. */
export async function openPodman(): Promise<Podman | string> {
  if (spawnSync('podman', ['--version']).status !== 0) return 'podman is not installed'
  const folder = mkdtempSync(join(tmpdir(), 'partner-api-podman-'))
  // By default, it raises limits, which not even root can do everywhere.
  writeFileSync(join(folder, 'containers.conf'), '[containers]\ndefault_ulimits = []\n')
  const env = cleanEnv({ CONTAINERS_CONF: join(folder, 'containers.conf'), XDG_CONFIG_HOME: folder })
  const prefix: string[] = []
  const holder = process.getuid!() === 0
    ? spawn('unshare', [...'-m -C -p --fork --kill-child --mount-proc sh -c'.split(' '), namespace])
    : undefined
  if (holder !== undefined) {
    const [ready] = await Promise.race([once(holder.stdout, 'data'), once(holder, 'exit')])
    if (String(ready) !== 'ready\n') return 'root may not mount file systems here'
    const path = `/proc/${holder.pid}/ns`
    prefix.push('nsenter', `-m${path}/mnt`, `-C${path}/cgroup`, `-p${path}/pid_for_children`)
  }
  const [program = '', ...words] = [
    ...prefix,
    'podman',
    '--root',
    join(folder, 'storage'),
    '--runroot',
    join(folder, 'run'),
    '--log-level',
    'error',
  ]
  const podman: Podman = {
    attempt(args, input = '') {
      const child = spawn(program, [...words, ...args], { env, timeout: 120_000 })
      child.stdin.end(input)
      return ending(child)
    },
    async run(...args) {
      const { code, stdout, stderr } = await podman.attempt(args)
      if (code === 0) return stdout.trim()
      throw new Error(`podman ${args.join(' ')}: ${code}\n${stdout}${stderr}`)
    },
    async close() {
      await podman.attempt(['rm', '--all', '--force', '--time', '0'])
      await podman.attempt(['rmi', '--all', '--force'])
      holder?.kill('SIGKILL')
      if (holder === undefined) await podman.attempt(['unshare', 'rm', '-rf', join(folder, 'storage')])
      else await once(holder, 'close')
      rmSync(folder, { recursive: true, force: true })
    },
  }
  const { code, stderr } = await podman.attempt(['info'])
  if (code === 0) return podman
  await podman.close()
  return `podman does not work here: ${stderr.trim().split('\n').at(-1)}`
}

/** Builds an image of programs of this machine with the libraries they need. `files` are further ones, by their path. */
export async function buildImage(
  podman: Podman,
  name: string,
  options: {
    readonly from?: string
    readonly programs?: Readonly<Record<string, string>>
    readonly folders?: Readonly<Record<string, string>>
    readonly links?: Readonly<Record<string, string>>
    readonly texts?: Readonly<Record<string, string>>
    readonly instructions?: readonly string[]
  },
): Promise<void> {
  const { from = 'scratch', programs = {}, folders = {}, links = {}, texts = {}, instructions = [] } = options
  const context = mkdtempSync(join(tmpdir(), 'partner-api-image-'))
  const place = (path: string): string => {
    mkdirSync(dirname(join(context, 'root', path)), { recursive: true })
    return join(context, 'root', path)
  }
  try {
    for (const [path, program] of Object.entries(programs)) {
      cpSync(realpathSync(program), place(path))
      for (const library of librariesOf(program)) cpSync(realpathSync(library), place(library))
    }
    for (const [path, folder] of Object.entries(folders)) {
      cpSync(folder, place(path), { recursive: true, verbatimSymlinks: true })
    }
    for (const [path, target] of Object.entries(links)) symlinkSync(target, place(path))
    for (const [path, text] of Object.entries(texts)) writeFileSync(place(path), text)
    writeFileSync(
      join(context, 'Containerfile'),
      [`FROM ${from}`, 'COPY root /', ...instructions, ''].join('\n'),
    )
    await build(podman, name, join(context, 'Containerfile'), context)
  } finally {
    rmSync(context, { recursive: true })
  }
}

/** Builds an image without asking a registry of images. */
export async function build(podman: Podman, name: string, file: string, context: string): Promise<void> {
  const flags = ['--pull=never', '--isolation=chroot', '--network=host', '--format=docker', '--quiet']
  await podman.run('build', ...flags, '--tag', name, '--file', file, context)
}

function librariesOf(program: string): string[] {
  const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8' })
  return [...stdout.matchAll(/(?:=> |^\s+)(\/\S+) \(/gm)].map(([, path]) => path!)
}

/** The folder of npm on this machine. */
export function npmFolder(): string {
  const found = process.env['npm_execpath'] ??
    realpathSync(spawnSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).stdout.trim())
  const folder = dirname(dirname(found))
  if (basename(folder) !== 'npm') throw new Error(`npm is not in ${folder}`)
  return folder
}
