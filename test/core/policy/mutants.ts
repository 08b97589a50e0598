/** One way to get the policy, or what feeds it, wrong. */
export interface Mutant {
  readonly name: string
  /** Below `core/`. */
  readonly file: string
  /** Stands exactly once in the file; white space stands for any. */
  readonly find: string
  readonly replace: string
}

const decide = 'policy/decide.ts'
const modules = 'policy/modules.ts'
const state = 'keys/state.ts'
const principal = 'keys/principal.ts'
const credential = 'keys/credential.ts'
const authenticate = 'keys/authenticate.ts'
const pipeline = 'pipeline.ts'

/** Each is a mistake that a person could make, and that tests of single cases could miss. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a revoked key passes',
    file: decide,
    find: `keyState(principal.key, now) === 'revoked' ?`,
    replace: 'false ?',
  },
  {
    name: 'an expired key passes',
    file: decide,
    find: `keyState(principal.key, now) === 'expired' ?`,
    replace: 'false ?',
  },
  {
    name: 'a disabled key passes',
    file: decide,
    find: `keyState(principal.key, now) === 'disabled' ?`,
    replace: 'false ?',
  },
  {
    name: 'an unknown address is on every list',
    file: decide,
    find: 'address !== undefined &&',
    replace: 'address === undefined ||',
  },
  {
    name: 'an address must be in all ranges',
    file: decide,
    find: 'principal.ranges.some(',
    replace: 'principal.ranges.every(',
  },
  {
    name: 'an empty allow-list allows nobody',
    file: decide,
    find: 'if (principal.ranges.length === 0) return undefined',
    replace: '',
  },
  { name: 'an empty partner is a foreign one', file: decide, find: ` || claim === ''`, replace: '' },
  {
    name: 'any partner may be named',
    file: decide,
    find: 'claim === principal.partner.slug',
    replace: 'claim !== undefined',
  },
  {
    name: 'a partner is named in any case',
    file: decide,
    find: 'claim === principal.partner.slug',
    replace: 'claim?.toLowerCase() === principal.partner.slug',
  },
  {
    name: 'the beginning of a partner is enough',
    file: decide,
    find: 'claim === principal.partner.slug',
    replace: 'principal.partner.slug.startsWith(claim ?? "")',
  },
  {
    name: 'a suspended partner passes',
    file: decide,
    find: `principal.partner.state === 'active'`,
    replace: `principal.partner.state !== 'removed'`,
  },
  {
    name: 'a scope is held when a module needs it',
    file: decide,
    find: 'principal.held.has(scope)',
    replace: 'principal.needed.has(scope)',
  },
  {
    name: 'a scope in hand needs no module',
    file: decide,
    find: 'principal.needed.has(scope)',
    replace: 'principal.held.has(scope)',
  },
  {
    name: 'any scope is enough',
    file: decide,
    find: 'principal.held.has(scope)',
    replace: 'principal.held.size > 0',
  },
  {
    name: 'any active module is enough',
    file: decide,
    find: 'principal.needed.has(scope)',
    replace: 'principal.needed.size > 0',
  },
  {
    name: 'the last rule of access is asked first',
    file: decide,
    find: 'firstDenial(ACCESS_RULES, facts)',
    replace: 'firstDenial(ACCESS_RULES.toReversed(), facts)',
  },
  {
    name: 'a decision forgets the rules about the key',
    file: decide,
    find: 'admitted ? undefined : firstDenial(ADMISSION_RULES, facts)',
    replace: 'undefined',
  },
  {
    name: 'admission forgets its last rule',
    file: decide,
    find: 'return firstDenial(ADMISSION_RULES, facts) }',
    replace: 'return firstDenial(ADMISSION_RULES.slice(0, -1), facts) }',
  },
  {
    name: 'a trace goes on after a refusal',
    file: 'policy/explain.ts',
    find: 'if (refused) return',
    replace: 'if (false) return',
  },
  {
    name: 'countries are had with the scope of industries',
    file: modules,
    find: `countries: { scope: 'read:countries'`,
    replace: `countries: { scope: 'read:industries'`,
  },
  {
    name: 'pricing needs the scope of profiles',
    file: modules,
    find: `pricing: { scope: 'read:plans'`,
    replace: `pricing: { scope: 'read:profiles'`,
  },
  {
    name: 'the first module is always the required one',
    file: modules,
    find: 'return moduleByScope[scope]',
    replace: 'return scope === undefined ? moduleByScope[scope] : MODULE_NAMES[0]!',
  },
  { name: 'revocation can be undone', file: state, find: `key.state === 'revoked'`, replace: 'false' },
  {
    name: 'a key expires an instant late',
    file: state,
    find: '(key.expiresAt ?? Infinity) <= now',
    replace: '(key.expiresAt ?? Infinity) < now',
  },
  {
    name: 'an overlap ends an instant late',
    file: state,
    find: '(key.retiresAt ?? Infinity) <= now',
    replace: '(key.retiresAt ?? Infinity) < now',
  },
  {
    name: 'a rotated key lives on',
    file: state,
    find: '(key.retiresAt ?? Infinity) <= now',
    replace: 'false',
  },
  {
    name: 'a retiring key has expired',
    file: state,
    find: '(key.retiresAt ?? Infinity) <= now',
    replace: 'key.retiresAt !== undefined',
  },
  {
    name: 'disabled comes before expired',
    file: state,
    find: `if ((key.expiresAt`,
    replace: `if (key.state === 'disabled') return 'disabled'\n  if ((key.expiresAt`,
  },
  {
    name: 'a module gives its scope',
    file: principal,
    find: 'held: new Set(facts.key.scopes)',
    replace:
      'held: new Set([...facts.key.scopes, ...facts.partner.modules.map((name) => MODULES[name].scope)])',
  },
  {
    name: 'every module counts as active',
    file: principal,
    find: 'facts.partner.modules.map((module) => MODULES[module].scope)',
    replace: 'Object.values(MODULES).map(({ scope }) => scope)',
  },
  {
    name: 'only the first range of an allow-list counts',
    file: principal,
    find: 'facts.key.allow.map(parseRange)',
    replace: 'facts.key.allow.slice(0, 1).map(parseRange)',
  },
  {
    name: 'a key that was good stays good',
    file: authenticate,
    find: 'known !== undefined && recalled?.facts === revision.facts',
    replace: 'known !== undefined',
  },
  {
    name: 'of two different keys the header counts',
    file: credential,
    find: 'if (token !== undefined && token !== keyHeader) return ambiguous',
    replace: '',
  },
  {
    name: 'two keys are ambiguous even when equal',
    file: credential,
    find: 'token !== undefined && token !== keyHeader',
    replace: 'token !== undefined',
  },
  {
    name: 'a repeated key header is a wrong key',
    file: credential,
    find: `return keyHeader.includes(',') ? ambiguous :`,
    replace: 'return',
  },
  {
    name: 'a repeated key header passes beside another scheme',
    file: credential,
    find: ` || keyHeader?.includes(',')`,
    replace: '',
  },
  {
    name: 'a repeated Authorization is not seen',
    file: credential,
    find: `if (!authorization.includes(',')) return false`,
    replace: 'if (authorization) return false',
  },
  {
    name: 'commas in another scheme count as repetition',
    file: credential,
    find: 'if (bearer.test(authorization)) return true',
    replace: 'return true',
  },
  {
    name: 'Bearer has one spelling',
    file: credential,
    find: '/^bearer(?: |$)/i',
    replace: '/^Bearer(?: |$)/',
  },
  {
    name: 'Bearer with nothing is a wrong key',
    file: credential,
    find: `return token === '' ? undefined : token`,
    replace: 'return token',
  },
  {
    name: 'another scheme hides the key header',
    file: credential,
    find: 'const token = bearerToken(authorization)',
    replace: 'const token = bearerToken(authorization)\n  if (token === undefined) return missing',
  },
  {
    name: 'the secret is not compared',
    file: authenticate,
    find: 'return equalDigests(digest, principal === undefined ? nobody : principal.key.digest) ?',
    replace: 'return principal ?',
  },
  {
    name: 'an unknown id is a fault of the service',
    file: authenticate,
    find: 'const found = holder(principal, digest)',
    replace: 'const found = holder({ ...principal!, key: principal!.key }, digest)',
  },
  {
    name: 'limits are spent before the key is judged',
    file: pipeline,
    find:
      'requireAdmission(call, by) const spending = spendQuotas(limiter, by.policies, route.limits, by.key.id, call.startedAt)',
    replace: 'const spending = spendQuotas(limiter, by.policies, route.limits, by.key.id, call.startedAt)\n' +
      '    if (!(spending instanceof Promise)) heed(call, by, spending)\n    requireAdmission(call, by)',
  },
  {
    name: 'the credential is looked at before version and media type',
    file: pipeline,
    find: 'negotiate(call, route) if',
    replace: `if (route.access === 'key') present(call)\n    negotiate(call, route)\n    if`,
  },
  {
    name: 'the key is not judged at all before access',
    file: pipeline,
    find: 'requireAdmission(call, by) const spending',
    replace: 'const spending',
  },
  {
    name: 'a reply at hand answers any method',
    file: pipeline,
    find: `wanted === 'GET' ? replies.recall(target) : undefined`,
    replace: 'replies.recall(target)',
  },
  {
    name: 'a reply at hand is given to anybody',
    file: pipeline,
    find: 'authorize(call, by, route, admitted, kept.partner)\n',
    replace: '',
  },
  {
    name: 'a reply at hand is for the partner of the key',
    file: pipeline,
    find: 'authorize(call, by, route, admitted, kept.partner)',
    replace: 'authorize(call, by, route, admitted, by.partner.slug)',
  },
  {
    name: 'the partner of the key is as good as the one named',
    file: pipeline,
    find: 'claim, scope: route.scope',
    replace: 'claim: claim && principal.partner.slug, scope: route.scope',
  },
  {
    name: 'a route without its scope',
    file: pipeline,
    find: 'scope: route.scope, now: call.now',
    replace: `scope: route.name === 'banner' ? undefined : route.scope, now: call.now`,
  },
  {
    name: 'a route with the scope of another',
    file: 'routes/lists.ts',
    find: `scope: 'read:industries'`,
    replace: `scope: 'read:countries'`,
  },
  {
    name: 'parameters are judged before permission',
    file: pipeline,
    find: 'const grant = authorize(call, by, route, admitted, readPartner(query))',
    replace: 'readParameters(query, route.parameters, "query")\n' +
      '    const grant = authorize(call, by, route, admitted, readPartner(query))',
  },
  {
    name: 'an address that is not allowed spends authfail',
    file: pipeline,
    find: `if (denial.reason === 'address_not_allowed') throw problemOf(denial)`,
    replace: '',
  },
  {
    name: 'a missing key spends authfail',
    file: pipeline,
    find: `if (credential.kind === 'missing') throw new Problem('key_missing')`,
    replace: `if (credential.kind === 'missing') fail(call, 'key_missing')`,
  },
  {
    name: 'ambiguous credentials spend nothing',
    file: pipeline,
    find: `fail(call, 'ambiguous_credentials')`,
    replace: `throw new Problem('ambiguous_credentials')`,
  },
  {
    name: 'a known key does not pass a spent authfail',
    file: pipeline,
    find: 'if (retryAfterSeconds !== undefined && !isKnown(credential, call.now))',
    replace: 'if (retryAfterSeconds !== undefined)',
  },
  {
    name: 'a refused scope has no challenge',
    file: 'http/representation.ts',
    find: `if (code === 'scope_missing') {`,
    replace: 'if (false) {',
  },
]
