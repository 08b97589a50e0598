import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Binaries, binariesVersion } from './binaries.ts'
import { createPrivateFolder } from './private-folder.ts'
import { giveAway, run, runningUid, unprivileged } from './unprivileged.ts'

/** The superuser of every server. */
export const superuser = 'postgres'
const cache = fileURLToPath(new URL('../node_modules/.cache', import.meta.url))

/**
 * Makes the data folder of a server that has never run: a copy of one that is made once, as that takes far longer.
 * Connections over TCP need a password, and no user has one yet. Connections through the socket need none.
 */
export async function createDataFolder(binaries: Binaries, path: string): Promise<void> {
  const template = join(cache, `postgres-${binariesVersion()}-uid-${runningUid}`)
  if (!existsSync(template)) await makeTemplate(binaries, template)
  await run('cp', ['-Rp', template, path])
  await giveAway(path)
}

/** Two programs may make it at once: each makes its own, and the first to be ready keeps it. */
async function makeTemplate(binaries: Binaries, template: string): Promise<void> {
  await mkdir(cache, { recursive: true })
  const folder = await createPrivateFolder('initdb', true)
  const ready = await mkdtemp(`${template}-`)
  try {
    // Text is compared by its bytes: nothing under test can come to depend on the machine's languages.
    const [command = '', ...rest] = unprivileged([
      binaries.initdb,
      '-D',
      join(folder.path, 'data'),
      '-U',
      superuser,
      '--locale=C',
      '--encoding=UTF8',
      '--auth-local=trust',
      '--auth-host=scram-sha-256',
      '--no-sync',
      '--no-instructions',
    ])
    await run(command, rest, folder.path)
    await run('cp', ['-Rp', join(folder.path, 'data'), ready])
    await rename(join(ready, 'data'), template).catch((error) => {
      if (!existsSync(template)) throw error
    })
  } finally {
    await Promise.all([folder.remove(), rm(ready, { recursive: true, force: true })])
  }
}
