/** Compiles programs against the sources, with the compiler's options of the project. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { ROOT } from '../package/installed.ts'
import { temporaryFolder } from './cli-program.ts'

/** The module of the partners' client, to import from. */
export const CLIENT: string = join(ROOT, 'adapters/client/mod.ts')

/**
 * Compiles modules.
 *
 * @param modules Their texts by name.
 * @returns The errors, a line each: `name.ts(line,column): error …`.
 */
export function compile(modules: Readonly<Record<string, string>>): string[] {
  const folder = temporaryFolder()
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(folder, `${name}.ts`), text)
  const compilerOptions = {
    noEmit: true,
    types: [],
    declaration: false,
    noUnusedLocals: false,
    rewriteRelativeImportExtensions: false,
    allowImportingTsExtensions: true,
  }
  const config = { extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: ['*.ts'], exclude: [] }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const options = { cwd: folder, encoding: 'utf8' } as const
  const { status, stdout, stderr } = spawnSync(process.execPath, [compiler, '-p', folder], options)
  const errors = stdout.split('\n').filter((line) => /^\S/.test(line))
  if (status !== 0 && errors.length === 0) throw new Error(`The compiler failed: ${stderr}`)
  return errors
}
