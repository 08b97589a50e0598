/** `npm run release` on repositories that are not ready. `release-folder.test.ts` has one that is. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import { temporaryFolder } from '../support/cli-program.ts'
import { attempt, commit, createRepository, release, ROOT, run } from './installed.ts'
import { checkFolder, checkSettings, NOTICE } from './ready.ts'

const url = 'https://github.com/acme-travel/partner-api'
/** What is read before anything is built. */
const few = [
  '.gitignore',
  'package.json',
  'package-lock.json',
  'deno.json',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'adapters/client/README.md',
]
const publish = (text: string): string => text.replaceAll(new RegExp(NOTICE, 'gi'), 'published')
const published = { 'README.md': publish, 'adapters/client/README.md': publish }

async function repositoryWith(changes: Readonly<Record<string, (text: string) => string>>): Promise<string> {
  const folder = join(temporaryFolder(), 'repository')
  await createRepository(folder, few, changes)
  return folder
}

/** The checks that failed, with their reasons. */
const failures = (report: string): string[] =>
  report.split(/^(?=ok |FAILED|Left|Not ready|Ready)/m)
    .filter((part) => part.startsWith('FAILED')).map((part) =>
      part.slice('FAILED'.length).trim().replace(/\s+/g, ' ')
    )

t.test('everything that is not ready is reported at once, before anything is built', async (t) => {
  const folder = await repositoryWith({
    'deno.json': (text) => text.replace(/"version": ".*?"/, '"version": "9.9.9"'),
    'CHANGELOG.md': (text) => text.replace(/^## /m, '## Unreleased\n\n## '),
    'README.md': (text) => `${text}\nIt is not published yet.\n`,
  })
  await run('git', ['tag', 'v0.1.0'], folder)
  await commit(folder)
  writeFileSync(join(folder, 'new.txt'), 'new')
  const { code, stdout } = await release(folder, '--repository', 'https://github.com/OWNER/NAME')
  t.equal(code, 1)
  t.same(failures(stdout), [
    'work tree: has changes that are not committed: ?? new.txt',
    'versions: deno.json has 9.9.9, and package.json 0.1.0' +
    ' the newest section of CHANGELOG.md has Unreleased, and package.json 0.1.0' +
    ' CHANGELOG.md says nothing about Unreleased',
    'tag: v0.1.0 is another commit: raise the version',
    'pages: say that a package is not published: README.md, adapters/client/README.md',
    'settings: repository is a placeholder: https://github.com/OWNER/NAME' +
    ' homepage is a placeholder: https://github.com/OWNER/NAME#readme' +
    ' bugs is a placeholder: https://github.com/OWNER/NAME/issues',
  ])
  t.match(stdout, /\nNot ready\. Nothing was packed or published\.\n$/)
  t.notOk(existsSync(join(folder, '.release')))
})

t.test('a folder with other files is refused, and kept', async (t) => {
  const folder = temporaryFolder()
  const inFolder = (...names: string[]) => {
    for (const name of names) writeFileSync(join(folder, name), '')
    return () => checkFolder(folder)
  }
  t.equal(inFolder('partner-api-0.1.0.tgz', 'client', 'container', 'SHA256SUMS')(), folder)
  t.equal(checkFolder(join(folder, 'new')), join(folder, 'new'))
  const store = 'partner-api-2026-11-20.db'
  t.throws(inFolder(store), { message: /has other files.*\.db$/ }, 'a store is not removed')
  rmSync(join(folder, store))
  t.throws(inFolder('package.json'), { message: /has other files.*: package\.json$/ })
  const repository = await repositoryWith(published)
  const { code, stdout } = await release(repository, '--repository', url, '--out', '.')
  t.equal(code, 1)
  t.match(failures(stdout), [/^folder: .* has other files/])
  t.ok(existsSync(join(repository, 'package.json')))
})

t.test('the types have to be right, and settings may come from the environment', async (t) => {
  const scripts = { types: 'echo "the compiler says no" && exit 3', prepack: 'exit 1' }
  const folder = await repositoryWith({
    ...published,
    'package.json': (text) => JSON.stringify({ ...JSON.parse(text), scripts }),
  })
  const program = [process.execPath, join(ROOT, 'test/package/release.ts')]
  const { code, stdout } = await attempt('env', [`RELEASE_REPOSITORY=${url}`, ...program], folder)
  t.equal(code, 1)
  t.match(failures(stdout), [/^npm run types: exit code \d+ .*the compiler says no/, /^npm pack: /])
  t.notOk(existsSync(join(folder, '.release')))
})

t.test('packages that nobody could use are refused, and removed', async (t) => {
  const build = () =>
    `import { mkdirSync, writeFileSync } from 'node:fs'
mkdirSync('dist/client', { recursive: true })
const client = { name: 'partner-api-client', version: '0.1.0', type: 'module', exports: './client.js', bin: './none.js' }
writeFileSync('dist/client/package.json', JSON.stringify(client))
writeFileSync('dist/client/client.js', 'export const made = "${folder}/x"\\n//# sourceMappingURL=client.js.map\\n')
writeFileSync('dist/index.js', 'import "nothing"\\n')`
  const folder: string = join(temporaryFolder(), 'repository')
  await createRepository(folder, few, {
    ...published,
    'README.md': () =>
      '# Package\n\n[more](docs/none.md) <img src="none.svg"> [elsewhere](https://example.com)\n',
    'build.js': build,
    'package.json': (text) =>
      JSON.stringify({
        ...JSON.parse(text),
        bin: {},
        workspaces: [],
        exports: './dist/index.js',
        dependencies: {},
        scripts: { types: 'true', prepack: 'node build.js' },
      }),
  })
  const { code, stdout } = await release(folder, '--repository', url)
  t.equal(code, 1)
  t.match(stdout, 'ok      npm run types: passed')
  t.match(stdout, 'ok      npm pack: ')
  const failed = failures(stdout)
  const reasons = {
    'partner-api: files':
      'README.md links to docs/none.md, which is not in the package README.md links to none.svg, which is not in the package',
    'partner-api: imports': "Cannot find package 'nothing'",
    'partner-api demo': /partner-api/,
    'partner-api-client: files':
      `no LICENSE no README.md client.js is or has a source map client.js names ${folder}`,
    'partner-api-client: manifest': 'npm pkg fix changes it',
  }
  for (const [check, reason] of Object.entries(reasons)) {
    t.match(failed.find((line) => line.startsWith(`${check}: `)), reason)
  }
  t.notOk(existsSync(join(folder, '.release')))
})

t.test('only real places of a project are accepted', (t) => {
  t.same(checkSettings({ repository: `${url}.git` }), {
    repository: url,
    homepage: `${url}#readme`,
    bugs: `${url}/issues`,
  })
  t.match(
    checkSettings({ repository: 'https://gitlab.com/acme/tools/api', bugs: 'https://bugs.acme.com/' }),
    {
      bugs: 'https://bugs.acme.com/',
    },
  )
  const refused = {
    '': /^no repository: /,
    'acme/api': /must be an https: URL/,
    'git@github.com:acme/api.git': /must be an https: URL/,
    'http://github.com/acme/api': /must be an https: URL/,
    'https://github.com/owner/api': /is a placeholder/,
    'https://github.com/acme/repo': /is a placeholder/,
    'https://github.com/<you>/api': /is a placeholder/,
    'https://github.com/your-name/api': /is a placeholder/,
    'https://git.example/acme/api': /is a placeholder/,
    'https://git.acme.com/acme/api': /github\.com or gitlab\.com/,
    'https://github.com/acme': /github\.com or gitlab\.com/,
  }
  for (const [repository, message] of Object.entries(refused)) {
    t.throws(() => checkSettings({ repository }), { message }, repository)
  }
  t.throws(() => checkSettings({ repository: url, homepage: 'https://example.com' }), {
    message: 'homepage is a placeholder: https://example.com',
  })
  t.end()
})

t.test('usage', async (t) => {
  const { code, stderr } = await release(ROOT, '--publish')
  t.equal(code, 2)
  t.match(stderr, /--publish.*\n\nUsage: npm run release -- \[--repository URL\]/)
  const help = await release(ROOT, '--help')
  t.equal(help.code, 0)
  t.match(help.stdout, /^Usage: /)
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  t.match(scripts.release, /test\/package\/release\.ts$/)
  t.notMatch(scripts.release, 'lab.ts', 'the test tools are not needed')
})
