/** The HTTP contract on Node: all of it with SQLite files, and with PostgreSQL the suites that depend on the store. */
import t from 'tap'
import { createPartnerApi } from '../../../core/api.ts'
import { hasServer } from '../../postgres/binaries.ts'
import { databasesFor } from '../../postgres/fixtures.ts'
import { openStore } from '../../runtimes/open-store.ts'
import { makePostgresTemplate } from '../../runtimes/postgres-template.ts'
import { type Copied, makeTemplate } from '../../runtimes/template.ts'
import { resolveOptions } from '../../support/own-endpoints.ts'
import { worldOn } from '../../support/world.ts'
import { deployAt, type Site } from './deploy.ts'
import { asDescribed } from './described.ts'
import { httpContract, STORE_SUITES } from './suites.ts'
import { onNode } from './wires.ts'

/** Copies of a template, which the operator and the service open in this process. */
function siteFrom(template: Copied): () => Promise<Site> {
  return async () => {
    const address = await template.copy()
    const operator = await openStore(address)
    return {
      world: worldOn(operator, template.filling),
      async start(options) {
        const store = await openStore(address)
        const api = createPartnerApi({ store }, resolveOptions(options))
        const mounted = await onNode(api)
        return {
          ...mounted,
          async close() {
            await mounted.close()
            await store.close()
          },
        }
      },
      async close() {
        await operator.close()
        await template.discard(address)
      },
    }
  }
}

await t.test('SQLite', async (t) => {
  const template = await makeTemplate()
  t.teardown(() => template.remove())
  const kinds = new Set<string>()
  await httpContract(t, asDescribed(deployAt(siteFrom(template)), kinds))
  t.ok(kinds.size > 390, `${kinds.size} kinds of responses are as described`)
})

await t.test('PostgreSQL', { skip: hasServer() ?? false }, async (t) => {
  const template = await makePostgresTemplate(await databasesFor(t))
  await httpContract(t, deployAt(siteFrom(template)), STORE_SUITES)
})
