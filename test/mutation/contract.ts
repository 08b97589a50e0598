/** The HTTP contract in this process, a test for each suite. */
import process from 'node:process'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { PartnerApi } from '../../core/api.ts'
import type { HttpRequest } from '../../core/http/message.ts'
import { Problem } from '../../core/http/problem.ts'
import { deployTo, type Mounted } from '../contract/http/deploy.ts'
import type { TestContext } from '../contract/http/service.ts'
import { memory } from '../contract/http/stores.ts'
import { httpContract, type SuiteName, SUITES } from '../contract/http/suites.ts'
import { toTestResponse } from '../contract/http/wires.ts'

/** Calls the service with plain values, targets and repeated fields as they are. */
function directly(api: PartnerApi): Promise<Mounted> {
  return Promise.resolve({
    async send({ method = 'GET', target, headers = {}, body, chunked = false }) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body
      const fields: Readonly<Record<string, string | readonly string[] | undefined>> = {
        ...bytes === undefined || chunked ? {} : { 'content-length': String(bytes.length) },
        ...headers,
      }
      const request: HttpRequest = {
        method,
        target,
        header: (name) => {
          const value = fields[name]
          return typeof value === 'object' ? value.join(', ') : value
        },
        isRepeated: (name) => typeof fields[name] === 'object',
        body: (maxBytes) => {
          if ((bytes?.length ?? 0) > maxBytes) throw new Problem('body_too_large')
          return bytes ?? new Uint8Array()
        },
        address: '127.0.0.1',
      }
      const response = await api.handle(request)
      const pairs = response.headers.flatMap((name, index): [string, string][] =>
        index % 2 === 0 ? [[name.toLowerCase(), response.headers[index + 1]!]] : []
      )
      return toTestResponse(response.status, pairs, Buffer.from(response.body ?? ''))
    },
    quirks: new Set(),
    close: () => Promise.resolve(),
  })
}

/** Throws at the first failed check: tap would take seconds to report thousands. */
const strict: TestContext = {
  test: (_, body) => body(strict),
  ok(value, message) {
    if (!value) throw new Error(message)
  },
  equal: (found, expected, message = 'equal') => strict.ok(Object.is(found, expected), message),
  strictSame: (found, expected, message = 'same') => strict.ok(isDeepStrictEqual(found, expected), message),
}

const suites = process.env['SUITES']?.split(',') ?? Object.keys(SUITES)
for (const suite of suites as SuiteName[]) {
  t.test(suite, async (t) => {
    t.ok(await httpContract(strict, deployTo(memory, directly), [suite]))
  })
}
