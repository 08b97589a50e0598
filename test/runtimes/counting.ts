import type { Tester } from '../contract/store/suites.ts'

/** How many points a test has made. */
export interface Count {
  points: number
}

/** The same test object, which counts. */
export function counting(t: Tester, count: Count): Tester {
  function counted<W extends readonly unknown[]>(check: (...words: W) => unknown): (...words: W) => unknown {
    return (...words) => {
      count.points++
      return check(...words)
    }
  }
  return {
    test: (name, body) => t.test(name, (t) => body(counting(t, count))),
    ok: counted(t.ok.bind(t)),
    equal: counted(t.equal.bind(t)),
    strictSame: counted(t.strictSame.bind(t)),
  }
}
