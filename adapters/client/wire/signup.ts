/** Written from the route table by test/client/write-wire.ts. */

/** That a signup was received. */
export interface SignupReceipt {
  /** Names the signup. */
  readonly id: string
  /** The service has it. */
  readonly status: 'received'
  /** When it was received. */
  readonly created_at: string
}
