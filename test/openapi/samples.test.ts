/** The code samples of the reference page are those of the route table. */
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { createSamples, formatSamples, SAMPLES_FILE } from './samples.ts'

const samples = createSamples()

t.test('core/openapi/samples.json is up to date', async (t) => {
  const committed = await readFile(SAMPLES_FILE, 'utf8')
  t.ok(committed === formatSamples(samples), 'otherwise, run: npm run samples')
})
