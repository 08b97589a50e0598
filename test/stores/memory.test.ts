import t from 'tap'
import { createMemoryStore } from '../../adapters/stores/memory/store.ts'
import { storeContract } from '../contract/store/suites.ts'

await t.test('the memory store satisfies the store contract', (t) =>
  storeContract(t, () => Promise.resolve(createMemoryStore())))

await t.test('the key prefix is an option', (t) => {
  t.equal(createMemoryStore({ keyPrefix: 'acme2' }).settings.keyPrefix, 'acme2')
  for (const keyPrefix of ['', 'a', '2a', 'Acme', 'a-b', 'a'.repeat(11)]) {
    t.throws(() => createMemoryStore({ keyPrefix }), { code: 'refused', message: /2 to 10 lower-case/ })
  }
  t.end()
})

await t.test('each store has its own secret and revisions', async (t) => {
  const [a, b] = [createMemoryStore(), createMemoryStore()]
  t.not(a.settings.cursorSecret, b.settings.cursorSecret)
  t.notSame(await a.revision(), await b.revision())
})
