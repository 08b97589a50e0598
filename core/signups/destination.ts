import type { Signup, SignupDestination, SignupStore } from '../ports/signups.ts'

/**
 * Keeps signups in a destination, and in the store what reports need. The reservation comes first, so that all
 * attempts with one idempotency key have one id; the store has the signup itself, without personal data, once the
 * destination has it. An attempt that fails or dies in between is completed by the next one.
 */
export function createDestinationSignups(
  store: Pick<SignupStore, 'reserveSignup' | 'createSignup' | 'isReserved' | 'findSignup'>,
  destination: SignupDestination,
): Pick<SignupStore, 'createSignup' | 'isReserved'> {
  /** Stores a signup. The second of two attempts at once finds what the first has stored. */
  async function complete(signup: Signup): Promise<void> {
    try {
      await store.createSignup(withoutPersonalData(signup), undefined)
    } catch (error) {
      if (await store.findSignup(signup.id) === undefined) throw error
    }
  }

  return {
    isReserved: store.isReserved,

    async createSignup(sent, reservation) {
      const reserved = reservation === undefined
        ? created
        : await store.reserveSignup(withoutPersonalData(sent), reservation)
      const isReplayed = reserved.outcome === 'replayed'
      if (!isReplayed && reserved.outcome !== 'created') return reserved
      const signup = isReplayed ? { ...sent, id: reserved.id, createdAt: reserved.createdAt } : sent
      if (isReplayed && await store.findSignup(signup.id) !== undefined) return reserved
      // Only the copy can be changed.
      await destination.createSignup({ ...signup, metadata: { ...signup.metadata } })
      await complete(signup)
      return reserved
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
