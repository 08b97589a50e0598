/** Every reason for which an administrative change is refused. Codes are for programs and never change. */
export type RefusalCode =
  | 'partner_exists'
  | 'partner_not_found'
  | 'partner_removed'
  | 'invalid_slug'
  | 'invalid_name'
  | 'invalid_limit'
  | 'unknown_module'
  | 'unknown_scope'
  | 'module_inactive'
  | 'key_not_found'
  | 'key_revoked'
  | 'key_expired'
  | 'key_disabled'
  | 'key_rotated'
  | 'invalid_address_range'
  | 'invalid_duration'
  | 'invalid_expiry'
  | 'concurrent_change'

/**
 * Why an administrative change was refused. The message is for people: what could not be done, why, and
 * what arrived, but never anything in the shape of a key. Nothing was changed.
 */
export class Refusal extends Error {
  /** Always `Refusal`. */
  override readonly name = 'Refusal'
  /** Why it was refused. */
  readonly code: RefusalCode

  /** The message is a sentence for people, with nothing in it in the shape of a key. */
  constructor(code: RefusalCode, message: string) {
    super(message)
    this.code = code
  }
}
