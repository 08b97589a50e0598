/**
 * `npm run release` checks that this commit can be released, and makes all that is published. It publishes nothing, and
 * needs no test tools.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { writeChecksums, writeContainer, writeExecutables, writeSbom } from './artifacts.ts'
import { attempt } from './installed.ts'
import {
  type Check,
  checkFolder,
  checkPages,
  checkSettings,
  checkTag,
  checkVersions,
  checkWorkTree,
  type Links,
} from './ready.ts'
import { installPackages, NAMES, packPackages, verifications } from './tarballs.ts'

const USAGE = `Usage: npm run release -- [--repository URL] [options]

Makes all that is published in a folder: tarballs, executables for this machine, a container context, a list of
dependencies, checksums. Publishes nothing.

  --repository URL  GitHub or GitLab project (or RELEASE_REPOSITORY), for the manifests of packages that are published.
                    Also checks that the tag is free, and that no page says that they are not published
  --homepage URL    default: the README of the repository (or RELEASE_HOMEPAGE)
  --bugs URL        default: the issues of the repository (or RELEASE_BUGS)
  --out FOLDER      default: .release; what an earlier release left there is removed
`

const WITHOUT_LINKS = `
Made to be used, not to be published: pass --repository for that.`

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

async function release(out: string, given: Partial<Links>): Promise<boolean> {
  const isForPublishing = Object.values(given).some((url) => url !== '')
  let links: Links | undefined
  let version = ''
  await runAll([
    ['work tree', () => checkWorkTree(root)],
    ['versions', () => `${version = checkVersions(root)} in every manifest and the changelog`],
    ['folder', () => checkFolder(out)],
    ...isForPublishing
      ? [
        ['tag', () => checkTag(root)],
        ['pages', () => checkPages(root)],
        ['settings', () => (links = checkSettings(given)).repository],
      ] satisfies Check[]
      : [],
  ])
  if (!ready) return false

  rmSync(out, { recursive: true, force: true })
  const trial = mkdtempSync(join(tmpdir(), 'partner-api-trial-'))
  try {
    await runAll([['npm run types', checkTypes], ['npm pack', () => packPackages(root, out, links)]])
    if (ready) await runAll([['npm install', () => installPackages(root, out, version, trial)]])
    if (ready) await runAll(verifications(root, out, version, trial, isForPublishing))
    if (ready) {
      await runAll([
        ['dependencies', () => writeSbom(root, out, version, trial)],
        ['container', () => writeContainer(root, out, version)],
        ['executables', () => writeExecutables(root, out, version, trial)],
      ])
    }
    if (ready) await runAll([['checksums', () => writeChecksums(out)]])
  } finally {
    rmSync(trial, { recursive: true, force: true })
    if (!ready) rmSync(out, { recursive: true, force: true })
  }
  if (ready) console.log(links ? listSteps(relative(root, out), version, links) : WITHOUT_LINKS)
  return ready
}

function listSteps(out: string, version: string, { repository }: Links): string {
  return `
Left to do:
  [ ] npm run check and npm test pass on this commit
  [ ] git tag v${version} && git push origin v${version}
  [ ] upload SHA256SUMS and ${join(out, `partner-api-${version}*`)} to the release of the tag
  [ ] podman build --format docker --tag partner-api:${version} ${join(out, 'container')}, and push the image
In a CI job of ${repository}, because npm attests its builds only (elsewhere, add --provenance=false to npm publish):
${NAMES.map((name) => `  [ ] npm publish ${join(out, `${name}-${version}.tgz`)}`).join('\n')}
  [ ] npx deno publish
  [ ] (cd ${join(out, 'client')} && npx deno publish)`
}

async function checkTypes(): Promise<string> {
  const { code, stdout, stderr } = await attempt('npm', ['run', '--silent', 'types'], root)
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
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exit(2)
  }
}

const { out, help, ...urls } = readArguments()
if (help) {
  console.log(USAGE)
} else {
  const { RELEASE_REPOSITORY, RELEASE_HOMEPAGE, RELEASE_BUGS } = process.env
  const given = {
    repository: urls.repository ?? RELEASE_REPOSITORY ?? '',
    homepage: urls.homepage ?? RELEASE_HOMEPAGE ?? '',
    bugs: urls.bugs ?? RELEASE_BUGS ?? '',
  }
  const done = await release(resolve(out), given)
  console.log(done ? '\nReady. Nothing was published.' : '\nNot ready. Nothing was packed or published.')
  process.exitCode = done ? 0 : 1
}
