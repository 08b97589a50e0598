/** Checks that every store has. */
import type { MigrationStatus } from '../../adapters/stores/schema.ts'
import type { Store } from '../../core/ports/store.ts'
import { verifyAudit } from '../commands/audit.ts'
import { toCliError } from '../errors.ts'
import { type Checks, error, warning } from './check.ts'

export const SCHEMA_CHECKS: Checks<MigrationStatus> = {
  schema({ current, latest }) {
    const message = `The store has schema version ${current}, and this program needs ${latest}.`
    if (current < latest) return error(message, 'partner-api migrate')
    return current > latest && warning(message, 'npm install --global partner-api')
  },
}

interface StoreContext {
  readonly store: Store
  readonly report: (progress: string) => void
}

export const STORE_CHECKS: Checks<StoreContext> = {
  async 'audit-log'({ store, report }) {
    const listAudit: Store['listAudit'] = (after, ...rest) => {
      report(`Verifying the audit log: entry ${Math.max(0, after)}`)
      return store.listAudit(after, ...rest)
    }
    const broken = await verifyAudit({ ...store, listAudit }).then(() => undefined, toCliError)
    if (broken?.exitCode === 3) throw broken
    return broken && error(broken.message.replace(/:$/, '.'), 'partner-api audit verify')
  },
}
