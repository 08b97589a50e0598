/** Redacts activity by an allow-list: a new member of a record stays private until it is named here. */
import { rfc3339 } from '../lib/time.ts'
import type { Activity, ActivityType } from '../ports/reports.ts'
import type { Signup } from '../ports/signups.ts'
import type { ActivitySubject, KeySubject, SignupSubject } from '../wire.ts'

/** An activity as partners see it: names and e-mail addresses of signups are masked. */
export function maskActivity(activity: Activity) {
  const { id, type, at } = activity
  return { id, type, occurred_at: rfc3339(at), subject: maskedSubject(activity) }
}

function maskedSubject(activity: Activity): ActivitySubject<ActivityType> {
  switch (activity.type) {
    case 'signup.created':
      return signupSubject(activity.signup)
    case 'scope.granted':
    case 'scope.removed':
      return { ...keySubject(activity), scope: activity.scope }
    case 'module.activated':
    case 'module.deactivated':
      return { module: activity.module }
    default:
      return keySubject(activity)
  }
}

function signupSubject(signup: Signup): SignupSubject {
  const { id, email, name, country = null, plan = null } = signup
  return { signup_id: id, email: maskEmail(email), name: initials(name), country, plan }
}

function keySubject({ keyId, hint }: { readonly keyId: string; readonly hint: string }): KeySubject {
  return { key_id: keyId, hint: `…${hint}` }
}

/** `jane@example.com` becomes `j***@e***.com`; a domain of one label has no last label: `j***@l***`. */
function maskEmail(email: string): string {
  const at = email.lastIndexOf('@')
  const domain = at < 0 ? '' : email.slice(at + 1)
  const [lastLabel = ''] = /\.[0-9a-z-]+$/i.exec(domain) ?? []
  return `${firstCodePoint(at < 0 ? email : email.slice(0, at))}***@${firstCodePoint(domain)}***${lastLabel}`
}

/** The first code point, unless it would change how the text around it is displayed. */
function firstCodePoint(text: string): string {
  return /^[^\p{C}\p{M}]/u.exec(text)?.[0] ?? ''
}

/** `Jane van der Doe` becomes `J. v. d.`: the first letter or digit of up to three words that have one. */
function initials(name: string): string {
  return name.split(/\s+/u)
    .flatMap((word) => /[\p{L}\p{N}]/u.exec(word)?.[0] ?? [])
    .slice(0, 3)
    .map((initial) => `${initial}.`)
    .join(' ')
}
