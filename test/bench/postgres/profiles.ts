import type { Store } from '../../../core/ports/store.ts'
import { INDUSTRIES, profiles } from '../data/profiles.ts'

/** As many as are held at once: all of a million would fill the memory of a small machine. */
const chunk = 50_000

/** Imports industries and the first `count` profiles. A million take two or three minutes. */
export async function addProfiles(store: Store, count: number): Promise<void> {
  const stamp = { now: Date.now(), actor: 'bench' }
  await store.importContent('industries', INDUSTRIES, stamp)
  for (let start = 0; start < count; start += chunk) {
    await store.importContent('profiles', [...profiles(Math.min(chunk, count - start), start)], stamp)
  }
}
