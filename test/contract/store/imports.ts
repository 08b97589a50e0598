/** Keys of another system, which a store has as digests. */
import { createHash, createHmac } from 'node:crypto'
import { Buffer } from 'node:buffer'
import { verifyAuditLog } from '../../../core/audit/verify.ts'
import type { Change, DigestScheme } from '../../../core/ports/changes.ts'
import { apply, createPartners, key, partner, stamp } from './samples.ts'
import type { Check } from './suites.ts'

const secret = '0f'.repeat(32)
export const whole: DigestScheme = { id: 'whole', algorithm: 'sha256', prefix: '', secret: '' }
const short: DigestScheme = { id: 'a-short', algorithm: 'sha256', prefix: 'sk_', secret: '' }
const long: DigestScheme = { id: 'b-long', algorithm: 'sha256', prefix: 'sk_live_', secret: '' }
const mac: DigestScheme = { id: 'mac', algorithm: 'hmac-sha256', prefix: '', secret }
const macPrefix: DigestScheme = { ...mac, id: 'mac-prefix', prefix: 'tok"\\_' }

/** The digest of a text under a scheme, computed apart from the stores. */
function digest({ id, algorithm, prefix, secret }: DigestScheme, text: string): string {
  const hash = algorithm === 'sha256'
    ? createHash('sha256')
    : createHmac('sha256', Buffer.from(secret, 'hex'))
  return `${id}:${hash.update(text.slice(prefix.length)).digest('hex')}`
}

export function imported(id: string, scheme: DigestScheme, text: string, owner = 'acme'): Change {
  return {
    type: 'key.issued',
    key: key({ id, partner: owner, digest: digest(scheme, text), hint: '' }),
    scheme,
  }
}

export const texts = {
  whole: 'Wz9-whole-key-of-40-characters-or-so-0001',
  short: 'sk_ab12cd34ef56ab12cd34ef56ab12cd34',
  long: 'sk_live_ab12cd34ef56ab12cd34ef56ab12cd34',
  mac: 'mac/key+with=signs~ab12cd34ef56',
  macPrefix: 'tok"\\_ab12cd34ef56ab12cd34ef56',
}

/** Digest schemes and the look-up of imported keys. */
export async function importsContract(check: Check): Promise<void> {
  await check('a store without imported keys says so', async (t, store) => {
    await createPartners(store, 'acme')
    await apply(store, { type: 'key.issued', key: key() })
    t.equal(await store.findImportedKey(texts.whole), false)
    t.strictSame(await store.findDigests([]), { schemes: [], keys: [] })
  })

  await check('an imported key is found by its text, and by nothing else', async (t, store) => {
    await createPartners(store, 'acme', 'other')
    t.equal(
      await apply(
        store,
        imported('whole', whole, texts.whole),
        imported('short', short, texts.short),
        imported('long', long, texts.long, 'other'),
      ),
      true,
    )
    // Another change, as a look-up between the two may remember the schemes.
    t.equal(await store.findImportedKey(texts.mac), undefined)
    await apply(store, imported('mac', mac, texts.mac), imported('macPrefix', macPrefix, texts.macPrefix))
    for (const [id, text] of Object.entries(texts)) {
      const found = await store.findImportedKey(text)
      t.equal(found && found.key.id, id, text)
      t.strictSame(found && found.partner, partner({ slug: id === 'long' ? 'other' : 'acme' }))
    }
    const wrong = [
      `${texts.whole}0`,
      texts.whole.slice(1),
      texts.whole.toUpperCase(),
      texts.long.slice(8),
      "'; --",
    ]
    for (const text of [...wrong, digest(whole, texts.whole), digest(whole, texts.whole).slice(6), secret]) {
      t.equal(await store.findImportedKey(text), undefined, text)
    }
  })

  await check('of two schemes for a key, that with the longer prefix counts', async (t, store) => {
    await createPartners(store, 'acme')
    await apply(store, imported('first', short, texts.long), imported('second', long, texts.long))
    const found = await store.findImportedKey(texts.long)
    t.equal(found && found.key.id, 'second')
  })

  await check('what is digested has at least 16 characters', async (t, store) => {
    await createPartners(store, 'acme')
    const short = `sk_live_${'a'.repeat(15)}`
    const enough = `sk_live_${'a'.repeat(16)}`
    await apply(store, imported('short', long, short), imported('enough', long, enough))
    t.equal(await store.findImportedKey(short), undefined)
    const found = await store.findImportedKey(enough)
    t.equal(found && found.key.id, 'enough')
  })

  await check(
    'digests are found among all keys, and an unapplied change stores no scheme',
    async (t, store) => {
      await createPartners(store, 'acme')
      const { facts } = await store.revision()
      const native = key({ id: 'native', digest: 'ab'.repeat(32) })
      await apply(store, { type: 'key.issued', key: native }, imported('whole', whole, texts.whole))
      t.equal(await store.apply([imported('mac', mac, texts.mac)], facts, stamp), false)
      const digests = [digest(whole, texts.whole), digest(mac, texts.mac)].map((each) => each.split(':')[1]!)
      const { schemes, keys } = await store.findDigests([native.digest, ...digests, 'cd'.repeat(32)])
      t.strictSame(schemes, ['whole'])
      t.strictSame(keys.map(({ id }) => id).sort(), ['native', 'whole'])
    },
  )

  await check('an imported key changes state like any other', async (t, store) => {
    await createPartners(store, 'acme')
    await apply(store, imported('whole', whole, texts.whole))
    await apply(store, { type: 'key.revoked', id: 'whole' })
    await apply(store, imported('again', whole, texts.mac))
    const found = await store.findImportedKey(texts.whole)
    t.equal(found && found.key.state, 'revoked')
    t.strictSame((await verifyAuditLog(store)).differences, [])
  })
}
