import type { Signup, SignupDestination, SignupStore } from '../ports/signups.ts'

/**
 * Keeps signups in a destination, and in the store what reports need. The claim comes first, so that all attempts with
 * one idempotency key have one id; the store has the signup itself, without personal data, once the destination has it.
 * An attempt that fails or dies in between is completed by the next one.
 */
export function createDestinationSignups(
  store: Pick<SignupStore, 'claimSignup' | 'createSignup' | 'isClaimed' | 'findSignup'>,
  destination: SignupDestination,
): Pick<SignupStore, 'createSignup' | 'isClaimed'> {
  /** Stores a signup. The second of two attempts at once finds what the first has stored. */
  async function complete(signup: Signup): Promise<void> {
    try {
      await store.createSignup(withoutPersonalData(signup), undefined)
    } catch (error) {
      if (await store.findSignup(signup.id) === undefined) throw error
    }
  }

  return {
    isClaimed: store.isClaimed,

    async createSignup(sent, claim) {
      const claimed = claim === undefined
        ? created
        : await store.claimSignup(withoutPersonalData(sent), claim)
      const isReplayed = claimed.outcome === 'replayed'
      if (!isReplayed && claimed.outcome !== 'created') return claimed
      const signup = isReplayed ? { ...sent, id: claimed.id, createdAt: claimed.createdAt } : sent
      if (isReplayed && await store.findSignup(signup.id) !== undefined) return claimed
      // Only the copy can be changed.
      await destination.createSignup({ ...signup, metadata: { ...signup.metadata } })
      await complete(signup)
      return claimed
    },
  }
}

const created = { outcome: 'created' } as const

/** Country and plan are counted. A new member of a signup is private until it is named here. */
function withoutPersonalData(signup: Signup): Signup {
  const { id, partner, keyId, environment, createdAt, country, plan } = signup
  const counted = { id, partner, keyId, environment, createdAt, country, plan }
  const rest = { company: undefined, profile: undefined, locale: undefined, message: undefined }
  return { ...counted, ...rest, email: '', name: '', consentAt: undefined, metadata: {} }
}
