/** Masked activity contains only the listed members, for any personal data. */
import fc from 'fast-check'
import t from 'tap'
import type { Activity } from '../../core/ports/reports.ts'
import type { Signup } from '../../core/ports/signups.ts'
import { maskActivity } from '../../core/reports/masking.ts'
import { anyText } from '../support/any-text.ts'

const base: Signup = {
  id: 'sgn_00000000000000000000',
  partner: 'demo',
  keyId: 'Key000000000',
  environment: 'live',
  createdAt: 0,
  email: 'jane@example.com',
  name: 'Jane Doe',
  company: undefined,
  country: 'DE',
  plan: 'starter',
  profile: undefined,
  locale: undefined,
  message: undefined,
  consentAt: undefined,
  metadata: {},
}

function maskedActivity(signup: Partial<Signup>) {
  const row = maskActivity({ id: 'act_1', at: 0, type: 'signup.created', signup: { ...base, ...signup } })
  return { row, subject: row.subject as { readonly email: string; readonly name: string } }
}

t.test('an e-mail address shows the first letters and the last label', (t) => {
  const cases = {
    'jane@example.com': 'j***@e***.com',
    'J@example.co.uk': 'J***@e***.uk',
    'a@b.c': 'a***@b***.c',
    'first.last+tag@sub.domain.example.org': 'f***@s***.org',
    '.a@1.2.3.4': '.***@1***.4',
    '!#$@xn--80ak6aa92e.xn--p1ai': '!***@x***.xn--p1ai',
    'jane@localhost': 'j***@l***',
    // The service accepts none of these, but a custom store may hold them.
    '"a@b"@example.com': '"***@e***.com',
    'jane': 'j***@***',
    '@': '***@***',
    '': '***@***',
    'jane@example.': 'j***@e***',
    'jane@example.our company': 'j***@e***',
    'jane@example.müller': 'j***@e***',
    '😀x@😀.com': '😀***@😀***.com',
    '\u202ejane@\u202eexample.com': '***@***.com',
    '\u0301jane@\u0301x.com': '***@***.com',
    '\ud83djane@x.com': '***@x***.com',
  }
  for (const [email, masked] of Object.entries(cases)) {
    t.equal(maskedActivity({ email }).subject.email, masked, email)
  }
  t.end()
})

t.test('a name shows its initials', (t) => {
  const cases = {
    'Jane Doe': 'J. D.',
    'jane van der Doe': 'j. v. d.',
    'Jane': 'J.',
    ' \tJane\u00a0Doe\u3000 ': 'J. D.',
    '"Jane" (Doe)': 'J. D.',
    'Élodie Ünal': 'É. Ü.',
    'E\u0301lodie': 'E.',
    '\u0301\u0302x': 'x.',
    '山田 太郎': '山. 太.',
    'דוד כהן': 'ד. כ.',
    '\u202eJane \u200fDoe': 'J. D.',
    '😀 Jane 👩‍💻': 'J.',
    '𝒥ane': '𝒥.',
    '3M Company': '3. C.',
    '😀': '',
    '***': '',
    ' ': '',
  }
  for (const [name, initials] of Object.entries(cases)) {
    t.equal(maskedActivity({ name }).subject.name, initials, name)
  }
  t.end()
})

t.test('the subject of each type has only its members', (t) => {
  const key = { keyId: 'Key000000000', hint: '9xQ2', environment: 'live' } as const
  const more = { actor: 'canary', digest: 'canary', address: 'canary', allow: ['canary'], name: 'canary' }
  const cases: readonly (readonly [Activity, object])[] = [
    [{ id: 'a', at: 0, type: 'key.issued', ...key }, { key_id: 'Key000000000', hint: '…9xQ2' }],
    [{ id: 'a', at: 0, type: 'key.expired', ...key }, { key_id: 'Key000000000', hint: '…9xQ2' }],
    [
      { id: 'a', at: 0, type: 'scope.removed', ...key, scope: 'read:plans' },
      { key_id: 'Key000000000', hint: '…9xQ2', scope: 'read:plans' },
    ],
    [{ id: 'a', at: 0, type: 'module.activated', module: 'pricing' }, { module: 'pricing' }],
  ]
  for (const [activity, subject] of cases) {
    t.strictSame(maskActivity({ ...activity, ...more }), {
      id: 'a',
      type: activity.type,
      occurred_at: '1970-01-01T00:00:00.000Z',
      subject,
    }, activity.type)
  }
  t.strictSame(maskedActivity({ plan: undefined, country: undefined }).row.subject, {
    signup_id: base.id,
    email: 'j***@e***.com',
    name: 'J. D.',
    country: null,
    plan: null,
  })
  t.end()
})

const secret = fc.string({
  unit: fc.constantFrom(...'qzQZ7_-\'"’.😀é\u0301\u202eקהابじ𝒬\ud83d \t'),
  maxLength: 30,
})
/** All personal data but e-mail address and name. */
const signups = fc.record({
  company: secret,
  message: secret,
  profile: secret,
  locale: secret,
  metadata: fc.dictionary(secret, secret),
  consentAt: fc.integer(),
  address: secret,
})

t.test('masked activity depends only on what a mask may show', (t) => {
  const initial = (word: string) => /[\p{L}\p{N}]/u.exec(word)?.[0] ?? ''
  const words = fc.array(
    anyText({ minLength: 1 }).filter((word) => /[\p{L}\p{N}]/u.test(word) && !/\s/u.test(word)),
    { minLength: 1, maxLength: 4 },
  )
  const plain = fc.string({ unit: fc.constantFrom(...'abcxyz0189.-+_'), maxLength: 40 })
  fc.assert(
    fc.property(signups, signups, words, words, plain, plain, (one, other, names, others, local, domain) => {
      // The other one shares only the initials, first letters and last label.
      const paired = names.map((word, index) => initial(word) + (others[index] ?? ''))
      const a = maskedActivity({ ...one, name: names.join(' '), email: `j${local}@e${domain}.com` })
      const b = maskedActivity({ ...other, name: paired.join('  '), email: `j${domain}@e${local}.com` })
      return JSON.stringify(a.row) === JSON.stringify(b.row)
    }),
    { numRuns: 500 },
  )
  t.end()
})

t.test('masked text is well-formed and short', (t) => {
  fc.assert(
    fc.property(anyText(), anyText(), (name, email) => {
      const { subject } = maskedActivity({ name, email })
      const lastLabel = /\.([0-9a-z-]+)$/i.exec(email.slice(email.lastIndexOf('@') + 1))?.[0] ?? ''
      return subject.name.isWellFormed() && subject.email.isWellFormed() &&
        Array.from(subject.name).length <= 8 && Array.from(subject.email).length <= 9 + lastLabel.length
    }),
    { numRuns: 500 },
  )
  t.end()
})
