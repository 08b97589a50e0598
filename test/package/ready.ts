/** What a commit needs before it is worth packing. Each check returns what it found, or throws what is not ready. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where the project is. */
export interface Links {
  readonly repository: string
  readonly homepage: string
  readonly bugs: string
}

/** A check returns what it found, or throws an error that says what is not ready. */
export type Check = readonly [name: string, check: () => string | Promise<string>]

const placeholders = [
  /[<>{}[\]$…]|\.\.\.|\bexample\b|placeholder|change-?me|\byour[-_]|localhost/i,
  /\/(?:owner|org|organi[sz]ation|user|username|name|repo|repository|project|todo|tbd|foo|bar|xxx)(?:\/|$|#|\.git)/i,
]

/** @throws unless every URL is a real one. An empty URL of homepage or bugs is derived from the repository. */
export function checkSettings(given: Partial<Links>): Links {
  const repository = (given.repository ?? '').replace(/(?:\.git)?\/?$/, '')
  if (repository === '') {
    throw new Error('no repository: pass --repository, or set RELEASE_REPOSITORY, to the URL of the project')
  }
  const links = {
    repository,
    homepage: given.homepage || `${repository}#readme`,
    bugs: given.bugs || `${repository}/issues`,
  }
  const faults = Object.entries(links).flatMap(([name, url]) =>
    !URL.canParse(url) || !url.startsWith('https://')
      ? [`${name} must be an https: URL, and ${JSON.stringify(url)} is not`]
      : placeholders.some((pattern) => pattern.test(url))
      ? [`${name} is a placeholder: ${url}`]
      : []
  )
  // npm attests builds of these two only, and links README files to them.
  if (faults.length === 0 && !/^https:\/\/git(?:hub|lab)\.com(?:\/[\w.-]+){2,}$/.test(repository)) {
    faults.push(`repository must be a project on github.com or gitlab.com, and ${repository} is not`)
  }
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return links
}

function git(root: string, ...args: string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.trimEnd() : undefined
}

export function checkWorkTree(root: string): string {
  const commit = git(root, 'rev-parse', '--short', 'HEAD')
  const changes = git(root, 'status', '--porcelain')
  if (commit === undefined || changes === undefined) throw new Error('not a git repository with a commit')
  if (changes !== '') throw new Error(`has changes that are not committed:\n${changes}`)
  return `clean, at ${commit}`
}

/** When HEAD was committed, in seconds since 1970. */
export const commitSeconds = (root: string): number => Number(git(root, 'show', '-s', '--format=%ct'))

export function checkTag(root: string): string {
  const tag = `v${readJson(root, 'package.json').version}`
  const commit = git(root, 'rev-parse', '--quiet', '--verify', `refs/tags/${tag}^{commit}`)
  if (commit === undefined) return `${tag} is free`
  if (commit === git(root, 'rev-parse', 'HEAD')) return `${tag} is this commit`
  throw new Error(`${tag} is another commit: raise the version`)
}

/** @throws if a folder, which a release empties, has anything else than an earlier release. */
export function checkFolder(out: string): string {
  const others = existsSync(out)
    ? readdirSync(out).filter((name) =>
      !/^(?:client|container|SHA256SUMS|partner-api-(?:client-)?\d+\.\d+\.\d.*)$/.test(name)
    )
    : []
  if (others.length === 0) return out
  throw new Error(`${out} has other files, which a release would remove: ${others.slice(0, 3).join(', ')}`)
}

/** What a page says as long as readers have to install a tarball. */
export const NOTICE = /not published yet|until it is published|after publishing/i

/** The pages that say how to install a package. */
export const pages = [
  'README.md',
  'docs/partners.md',
  'docs/deploy.md',
  'docs/runtimes.md',
  'docs/upgrade.md',
  'adapters/client/README.md',
  'examples/partners/node/README.md',
] as const

/** @throws if a page of a package says that it is not published. */
export function checkPages(root: string): string {
  const stale = pages.filter((page) => existsSync(join(root, page)) && NOTICE.test(readText(root, page)))
  if (stale.length === 0) return 'none says that a package is not published'
  throw new Error(`say that a package is not published: ${stale.join(', ')}`)
}

/** @returns The version. @throws if two places disagree, or the changelog has nothing to say about it. */
export function checkVersions(root: string): string {
  const lock = readJson(root, 'package-lock.json')
  const { version } = readJson(root, 'package.json')
  const changelog = readText(root, 'CHANGELOG.md')
  const [, newest = '', notes = ''] = /^## (.+)\n([^]*?)(?=^## |$(?![^]))/m.exec(changelog) ?? []
  const guide = readText(root, 'adapters/client/README.md')
  const found = [
    ['package-lock.json', lock.version],
    ['package-lock.json, packages', lock.packages[''].version],
    ['deno.json', readJson(root, 'deno.json').version],
    ['the newest section of CHANGELOG.md', newest],
    ...Array.from(
      guide.matchAll(/partner-api-client@([\w.-]+)/g),
      ([, named]) => ['adapters/client/README.md', named],
    ),
  ]
  const faults = found.filter(([, other]) => other !== version)
    .map(([place, other]) => `${place} has ${other || 'none'}, and package.json ${version}`)
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version)) faults.push(`${version} is no version`)
  if (notes.trim() === '') faults.push(`CHANGELOG.md says nothing about ${newest}`)
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return version
}

// deno-lint-ignore no-explicit-any -- a manifest
function readJson(root: string, file: string): any {
  return JSON.parse(readText(root, file))
}

function readText(root: string, file: string): string {
  return readFileSync(join(root, file), 'utf8')
}
