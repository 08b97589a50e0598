/** Drizzle's command line in a folder of a test. */
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { attempt, ROOT } from '../package/installed.ts'

/**
 * Puts Drizzle, its command line and the driver into a folder.
 *
 * @returns Runs a command there, and returns what it printed.
 */
export function drizzleKitIn(
  folder: string,
): (words: readonly string[], env?: Readonly<Record<string, string>>) => Promise<string> {
  const packages = join(folder, 'node_modules')
  const { resolve } = createRequire(import.meta.url)
  mkdirSync(packages, { recursive: true })
  // A copy: it looks for Drizzle and the driver beside itself, and npm has put them elsewhere.
  const kit = dirname(resolve('drizzle-kit'))
  cpSync(kit, join(packages, 'drizzle-kit'), { recursive: true })
  const link = (target: string, name: string) => {
    if (!existsSync(join(packages, name))) symlinkSync(target, join(packages, name))
  }
  link(dirname(resolve('drizzle-orm')), 'drizzle-orm')
  link(join(ROOT, 'node_modules/postgres'), 'postgres')
  for (const name of readdirSync(dirname(kit))) link(join(dirname(kit), name), name)

  return async (words, env = {}) => {
    const program = join(packages, 'drizzle-kit/bin.cjs')
    const { code, stdout, stderr } = await attempt(process.execPath, [program, ...words], folder, env)
    if (code !== 0) throw new Error(`drizzle-kit ${words.join(' ')}: ${stdout}${stderr}`)
    return stdout + stderr
  }
}
