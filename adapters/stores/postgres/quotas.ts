import type { QuotaStore } from '../../../core/ports/quotas.ts'
import { leaseParameters, quotaStatements, toLease, type WindowRow } from '../quotas.ts'
import type { Database } from './database.ts'
import { createPruner, SERVER_NOW } from './sql.ts'

/** Expired windows deleted for each one that is opened: more than one, so that they get fewer. */
const windowsPruned = 2

const statements = quotaStatements({
  table: 'partner_api.quota_window',
  parameter: (number) => `$${number}`,
  least: 'least',
  greatest: 'greatest',
  now: SERVER_NOW,
  returned:
    'json_to_recordset($1::json) AS returned (policy text, subject text, term bigint, used bigint, unused bigint)',
})

/** Each lease is an upsert of one row, so that concurrent ones see each other's. */
export function createQuotaStore(database: Database): QuotaStore {
  const pruneWindows = createPruner(database, {
    table: 'quota_window',
    key: ['policy', 'subject'],
    expiry: 'ends_at',
    batchSize: windowsPruned,
  })

  return {
    async leaseQuota(request) {
      const parameters = leaseParameters(request)
      if (request.wanted <= 0) {
        const [row] = await database.lookUp<WindowRow>(statements.peek, parameters)
        return toLease(row, request)
      }
      const [row] = await database.asyncCommit<WindowRow>(statements.take, parameters)
      const [now, , taken, granted] = row!
      if (granted === taken) pruneWindows(now)
      return toLease(row, request)
    },

    async returnQuotas(returns) {
      await database.asyncCommit(statements.returnLeases, [JSON.stringify(returns)])
    },
  }
}
