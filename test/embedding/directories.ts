/** Compares directories over tables of an embedder with the sample content in a store. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import type { Test } from 'tap'
import { cleanEnv, programOn } from '../support/cli-program.ts'
import type { Mounted } from './mounted.ts'
import { MAIN, storeIn } from './project.ts'

const list = '/service/public/profiles'

/** Serves the store of a folder, with the profiles alone that every partner sees. @returns The URL. */
export async function servePublicProfiles(t: Test, folder: string): Promise<string> {
  const store = programOn(storeIn(folder))
  const { stdout } = await store.run('content', 'export', 'profiles')
  const lines = stdout.trim().split('\n').map((line) => JSON.parse(line))
  const hidden = lines.filter(({ visible_to }) => visible_to !== null).map(({ slug }) => slug)
  await store.run('content', 'remove', 'profiles', ...hidden)
  return await serveStore(t, folder)
}

/** Serves the store of a folder. @returns The URL. */
export async function serveStore(t: Test, folder: string): Promise<string> {
  const child = spawn(process.execPath, [MAIN, 'serve', '--port', '0'], { cwd: folder, env: cleanEnv() })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const [line] = await once(child.stdout, 'data')
  return String(line).trim().replace('listening on ', '')
}

async function read({ url, key }: Mounted, path: string) {
  const answer = await fetch(url + path, { headers: { 'x-service-partner-key': key } })
  const body = await answer.json()
  if (!answer.ok) throw new Error(JSON.stringify(body))
  return body
}

/** The first profile by name. */
export async function readFirst(mounted: Mounted): Promise<{ readonly slug: string; readonly name: string }> {
  return (await read(mounted, `${list}?partner=demo&limit=1`)).data[0]
}

/** Checks that both have the same profiles, in the same order, for every kind of query. */
export async function sameDirectories(t: Test, own: Mounted, stored: Mounted): Promise<void> {
  const fields = ['slug', 'name', 'headline', 'country', 'industry', 'logo_url', 'published_at']
  const common = (row: Record<string, unknown>) => fields.map((field) => row[field])
  const questions = [
    '',
    'q=wool',
    'q=ost%20trees',
    'q=%CE%B1%CE%BD',
    'country=de&country=FR',
    'industry=travel&industry=textiles',
  ]
    .flatMap((filter) => [`${filter}&sort=name`, `${filter}&sort=-published_at`])
  for (const question of questions) {
    for (let cursors = ['', ''], more = true; more;) {
      const pages = await Promise.all(
        [own, stored].map((base, index) =>
          read(base, `${list}?partner=demo&limit=7&${question}${cursors[index]}`)
        ),
      )
      const [ours, theirs] = pages.map(({ data }) => data.map(common))
      t.same(ours, theirs, question)
      more = pages[0].page.has_more
      t.equal(more, pages[1].page.has_more)
      cursors = pages.map(({ page }) => `&cursor=${page.next_cursor}`)
    }
  }
  for (const path of ['countries?in_use=true&partner=demo', 'industries?partner=demo']) {
    const [ours, theirs] = await Promise.all(
      [own, stored].map((base) => read(base, `/service/public/${path}`)),
    )
    const named = ({ parent_slug: _, ...rest }: Record<string, unknown>) => rest
    t.same(ours.data.map(named), theirs.data.map(named), path)
  }
  const first = await readFirst(own)
  t.equal((await read(own, `${list}/${first.slug}?partner=demo`)).data.name, first.name)
  await t.rejects(read(own, `${list}/nobody?partner=demo`), /profile_not_found/)
}
