import { containsKey } from '../http/redact.ts'
import type { Remedy } from '../lib/remedy.ts'

/** Why an administrative change was refused. Codes are stable. */
export type AdminErrorCode =
  | 'partner_not_found'
  | 'partner_removed'
  | 'key_not_found'
  | 'key_revoked'
  | 'key_expired'
  /** The slug belongs to another partner, which may be removed. */
  | 'partner_exists'
  | 'invalid_slug'
  | 'invalid_name'
  /** A contact address, a tag, a note or the like. */
  | 'invalid_details'
  | 'invalid_limit'
  | 'invalid_address_range'
  | 'invalid_duration'
  | 'invalid_expiry'
  | 'unknown_module'
  | 'module_not_found'
  | 'invalid_module'
  /** A module has this name or this scope. */
  | 'module_exists'
  /** The store has as many modules as it may have. */
  | 'too_many_modules'
  /** The module is active for a partner, or a key in force holds its scope. */
  | 'module_in_use'
  | 'unknown_scope'
  /** No active module of the partner needs the scope. */
  | 'module_inactive'
  /** A disabled key is not rotated. */
  | 'key_disabled'
  /** A key is rotated once. */
  | 'key_rotated'
  /** The chain has as many keys in force as a partner may have by rotating them itself. */
  | 'chain_full'
  /** The keys that a successor would replace have no address in common. */
  | 'addresses_disjoint'
  /** The keys that a successor would replace have limits with different windows. */
  | 'limits_differ'
  | 'claim_not_found'
  | 'claim_spent'
  | 'webhook_not_found'
  /** The URL of a webhook that none may have. */
  | 'invalid_url'
  | 'invalid_event'
  /** The webhook has as many overlapping secrets as it may have. */
  | 'too_many_secrets'
  /** Other changes interrupted every attempt. */
  | 'concurrent_change'
  /** A store's data contradicts the change, or does not keep it. */
  | 'refused'

/**
 * An administrative change was refused, and nothing was changed. The message says what could not be done, why, and
 * which value was passed. It never contains a key.
 */
export class AdminError extends Error {
  /** Always `AdminError`. */
  override readonly name = 'AdminError'
  /** Why it was refused. */
  readonly code: AdminErrorCode
  /** A command that helps, if there is one. */
  readonly remedy: Remedy | undefined
  /** The name or id that nothing has; `undefined` for other codes, and for text that may be a key. */
  readonly subject: string | undefined

  /** The message is one or more sentences without a key in them. */
  constructor(code: AdminErrorCode, message: string, remedy?: Remedy, subject?: string) {
    super(message)
    this.code = code
    this.remedy = remedy
    this.subject = subject
  }
}

/** @param subject The name or id that nothing has. */
export function notFoundError(code: AdminErrorCode, message: string, subject: string): AdminError {
  // Programs without types pass other values.
  const isText = typeof subject === 'string' && !containsKey(subject)
  return new AdminError(code, message, undefined, isText ? subject : undefined)
}
