/**
 * `npm run release -- --repository URL` checks that this commit can be released, and packs what is published. It
 * publishes nothing.
 */
import { rmSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { attempt } from './installed.ts'
import {
  checkFolder,
  checkPages,
  checkSettings,
  checkTag,
  checkVersions,
  checkWorkTree,
  type Links,
} from './ready.ts'
import { installPackages, NAMES, packPackages, verifications } from './tarballs.ts'

const USAGE = `Usage: npm run release -- --repository URL [options]

Checks that this commit can be released, and packs it into a folder. Publishes nothing.

  --repository URL  GitHub or GitLab project (or RELEASE_REPOSITORY)
  --homepage URL    default: the README of the repository (or RELEASE_HOMEPAGE)
  --bugs URL        default: the issues of the repository (or RELEASE_BUGS)
  --out FOLDER      default: .release; what an earlier release left there is removed
  --checked         npm run check has passed on this commit: skip it
`

/** A check returns what it found, or throws an error that says what is not ready. */
type Check = readonly [name: string, check: () => string | Promise<string>]

const root = process.cwd()
let ready = true

/** Runs checks at once, and prints their results in order. */
async function runAll(checks: readonly Check[]): Promise<void> {
  // A check that throws while it starts must not keep the others from running.
  const results = checks.map(async ([, check]) => await check())
  await Promise.allSettled(results)
  for (const [index, [name]] of checks.entries()) {
    try {
      console.log(`ok      ${name}: ${await results[index]}`)
    } catch (error) {
      ready = false
      console.log(`FAILED  ${name}: ${(error as Error).message.trimEnd().replaceAll('\n', '\n        ')}`)
    }
  }
}

async function release(out: string, given: Partial<Links>, isChecked: boolean): Promise<boolean> {
  let links: Links | undefined
  let version = ''
  await runAll([
    ['work tree', () => checkWorkTree(root)],
    ['versions', () => `${version = checkVersions(root)} in every manifest and the changelog`],
    ['tag', () => checkTag(root)],
    ['pages', () => checkPages(root)],
    ['folder', () => checkFolder(out)],
    ['settings', () => (links = checkSettings(given)).repository],
  ])
  if (!ready || links === undefined) return false
  await runAll([['npm run check', () => isChecked ? 'skipped, as --checked says that it passed' : check()]])
  if (!ready) return false

  rmSync(out, { recursive: true, force: true })
  const urls = links
  await runAll([['npm pack', () => packPackages(root, out, urls)]])
  if (ready) await runAll([['npm install', () => installPackages(root, out, version)]])
  if (ready) await runAll(verifications(root, out, version))
  if (!ready) {
    rmSync(out, { recursive: true, force: true })
    return false
  }
  const shown = relative(root, out) || '.'
  console.log(`
Left to do:
  [ ] npm test passes on this commit
  [ ] git tag v${version} && git push origin v${version}
In a CI job of ${urls.repository}, because npm attests its builds only (elsewhere, add --provenance=false to npm publish):
${NAMES.map((name) => `  [ ] npm publish ${join(shown, `${name}-${version}.tgz`)}`).join('\n')}
  [ ] npx deno publish
  [ ] (cd ${join(shown, 'client')} && npx deno publish)`)
  return true
}

async function check(): Promise<string> {
  const { code, stdout, stderr } = await attempt('npm', ['run', 'check'], root)
  if (code === 0) return 'passed'
  throw new Error(`exit code ${code}\n${stdout}${stderr}`)
}

function readArguments() {
  const url = { type: 'string' } as const
  try {
    return parseArgs({
      options: {
        repository: url,
        homepage: url,
        bugs: url,
        out: { type: 'string', default: '.release' },
        checked: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exit(2)
  }
}

const { out, checked, help, ...urls } = readArguments()
if (help) {
  console.log(USAGE)
} else {
  const { RELEASE_REPOSITORY, RELEASE_HOMEPAGE, RELEASE_BUGS } = process.env
  const given = {
    repository: urls.repository ?? RELEASE_REPOSITORY ?? '',
    homepage: urls.homepage ?? RELEASE_HOMEPAGE ?? '',
    bugs: urls.bugs ?? RELEASE_BUGS ?? '',
  }
  const done = await release(resolve(out), given, checked)
  console.log(done ? '\nReady. Nothing was published.' : '\nNot ready. Nothing was packed or published.')
  process.exitCode = done ? 0 : 1
}
