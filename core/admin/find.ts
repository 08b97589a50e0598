import { SLUG_PATTERN } from '../content/slug.ts'
import { holdsKey, KEY_ID_PATTERN } from '../keys/format.ts'
import type { KeyFacts, Partner } from '../model.ts'
import type { Administration, FactSource } from '../ports.ts'
import { echo } from './echo.ts'
import { Refusal } from './refusal.ts'

/** The partner with this slug, removed or not. @throws {Refusal} `partner_not_found` */
export async function findPartner(
  store: Pick<Administration, 'findPartner'>,
  slug: string,
): Promise<Partner> {
  // A store is never asked for what it could not even keep: some refuse text with NUL in it.
  const partner = SLUG_PATTERN.test(slug) ? await store.findPartner(slug) : undefined
  if (partner !== undefined) return partner
  throw new Refusal('partner_not_found', `There is no partner ${echo(slug)}.`)
}

/** The key with this public id, whatever its state, and its partner. @throws {Refusal} `key_not_found` */
export async function findKey(store: Pick<FactSource, 'findKey'>, id: string): Promise<KeyFacts> {
  const facts = KEY_ID_PATTERN.test(id) ? await store.findKey(id) : undefined
  if (facts !== undefined) return facts
  throw new Refusal(
    'key_not_found',
    holdsKey(id)
      ? 'A whole key arrived where its id belongs, the 12 characters after live_ or test_. ' +
        'Treat that key as exposed: rotate or revoke it.'
      : `There is no key with the id ${echo(id)}.`,
  )
}
