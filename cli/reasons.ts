import { Failure } from './failure.ts'

/** What a thrown value means for the person who gave the command. */
export async function failureOf(error: unknown): Promise<Failure> {
  if (error instanceof Failure) return error
  // Imported here because only a command that failed needs to tell them apart.
  const [{ Refusal }, { StoreError }] = await Promise.all([
    import('../core/admin/refusal.ts'),
    import('../adapters/stores/store-error.ts'),
  ])
  if (error instanceof Refusal) return new Failure(1, error.code, error.message)
  if (error instanceof StoreError) {
    if (error.code === 'refused') return new Failure(1, 'refused', error.message)
    return new Failure(3, error.code === 'unreachable' ? 'store_unavailable' : error.code, error.message)
  }
  const message = error instanceof Error ? error.message : String(error)
  const [sentence = ''] = message.split('\n')
  return new Failure(
    1,
    'internal',
    `This should not have happened: ${sentence} (PARTNER_API_DEBUG=1 shows where.)`,
  )
}
