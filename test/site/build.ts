/**
 * Builds the site of the docs into `.site`: `npm run site -- [--base PATH] [--outDir FOLDER]`. The first run installs
 * VitePress into test/site.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const home = dirname(fileURLToPath(import.meta.url))
const vitepress = join(home, 'node_modules/vitepress/bin/vitepress.js')

if (!existsSync(vitepress)) run('npm', ['ci', '--no-audit', '--no-fund'], process.platform === 'win32')
run(process.execPath, [vitepress, 'build', home, ...process.argv.slice(2)])

function run(program: string, words: readonly string[], shell = false): void {
  const { status, error } = spawnSync(program, words, { cwd: home, stdio: 'inherit', shell })
  if (error) console.error(error.message)
  if (status !== 0) process.exit(status ?? 2)
}
