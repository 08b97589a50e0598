import type { Store } from '../../../core/ports/store.ts'
import { storeContract, type Tester } from './suites.ts'

/**
 * Runs the suite and sees to it that none of its cases is left out: it is the same for all stores.
 *
 * @see storeContract
 */
export async function wholeStoreContract(
  t: Tester,
  open: () => Promise<Store>,
  openMany: () => Promise<Store> = open,
): Promise<void> {
  const ran: string[] = []
  const noting: Tester = {
    test: (name, body) =>
      t.test(name, async (t) => {
        await body(t)
        ran.push(name)
      }),
    ok: t.ok.bind(t),
    equal: t.equal.bind(t),
    strictSame: t.strictSame.bind(t),
  }
  await storeContract(noting, open, openMany)
  const cases = await casesOf()
  t.strictSame(ran, cases, `all ${cases.length} cases were run`)
}

/** The names of the cases, none of which is run. */
async function casesOf(): Promise<readonly string[]> {
  const names: string[] = []
  const never = () => Promise.reject(new Error('a case was run'))
  const reading: Tester = {
    test: (name) => Promise.resolve(names.push(name)),
    ok: never,
    equal: never,
    strictSame: never,
  }
  await storeContract(reading, never)
  return names
}
