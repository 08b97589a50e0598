import { isDeepStrictEqual } from 'node:util'
import type { TestContext } from '../store/suites.ts'

/** Runs a test as one TAP assertion, plus one for each failed check. Reporting to TAP costs more than most checks. */
export async function asOneAssertion(
  t: TestContext,
  title: string,
  body: (t: TestContext) => Promise<void>,
): Promise<number> {
  let checks = 0
  await t.test(title, async (t) => {
    const check = (passes: boolean, report: () => unknown): unknown => {
      checks++
      return passes || report()
    }
    await body({
      test: t.test.bind(t),
      ok: (value, message) => check(Boolean(value), () => t.ok(value, message)),
      equal: (found, wanted, ...message) =>
        check(Object.is(found, wanted), () => t.equal(found, wanted, ...message)),
      strictSame: (found, wanted, ...message) =>
        check(isDeepStrictEqual(found, wanted), () => t.strictSame(found, wanted, ...message)),
    })
    t.ok(checks > 0, `${checks} checks`)
  })
  return checks
}
