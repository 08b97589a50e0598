/** Writes `dist/partner-api.1`, which npm links into the manual. */
import { readFileSync, writeFileSync } from 'node:fs'
import { formatManPage } from './man.ts'

const root = new URL('../../', import.meta.url)
const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
writeFileSync(
  new URL('dist/partner-api.1', root),
  await formatManPage(version, new Date().toISOString().slice(0, 10)),
)
