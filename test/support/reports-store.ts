/** A store with the counts of a year, for reports. */
import { DatabaseSync } from 'node:sqlite'
import { openSqliteStore } from '../../adapters/stores/sqlite/store.ts'
import { createPartnerAdministration } from '../../core/admin/partners.ts'
import { daysIn } from '../../core/reports/period.ts'

export const YEAR = { from: '2026-01-01', to: '2026-12-31' } as const

/** The arguments for reports on it. */
export const PERIOD: readonly string[] = ['--from', YEAR.from, '--to', YEAR.to]

/** A name of a partner and of a plan. */
export const EVIL = `<script>alert("1")</script>'&\u0007\u001b[2J\u202e旅行 שלום`

/** Creates the store in a new file. */
export async function createReportsStore(file: string): Promise<void> {
  const store = await openSqliteStore(file)
  const partners = createPartnerAdministration(store, { actor: 'test' })
  for (const slug of ['acme', 'quiet', 'removed', 'wide', 'zeta']) {
    await partners.create({ slug, name: `Name of ${slug}`, modules: ['profiles'] })
  }
  await partners.remove('removed')
  const counts = daysIn(YEAR).flatMap((day, index) =>
    ['acme', 'wide', 'zeta'].flatMap((partner, place) => [
      { partner, day, endpoint: 'profiles', requests: 1_000 + index * 10 + place, errors: index % 7 },
      { partner, day, endpoint: 'sign-up-of-another-release', requests: 1, errors: 1 },
    ])
  )
  await store.recordUsage(
    counts.map((count) => ({ ...count, keyId: undefined, environment: 'live' as const })),
    'use_1',
  )
  await store.close()

  const database = new DatabaseSync(file)
  database.prepare(`UPDATE partner SET name = ? WHERE slug = 'wide'`).run(EVIL)
  // No command accepts this slug.
  for (const table of ['partner', 'usage']) {
    const column = table === 'partner' ? 'slug' : 'partner'
    database.prepare(`UPDATE ${table} SET ${column} = '=1+"2"' WHERE ${column} = 'zeta'`).run()
  }
  const addSignups = database.prepare('INSERT INTO signup_tally VALUES (?, ?, ?, ?, ?)')
  for (const day of ['2026-02-01', '2026-11-30']) {
    for (const [plan, count] of [['team', 3], [EVIL, 1], ['', 2]] as const) {
      addSignups.run('acme', 'plan', day, plan, count)
    }
    for (const [country, count] of [['DE', 4], ['XK', 2]] as const) {
      addSignups.run('acme', 'country', day, country, count)
    }
  }
  database.close()
}
