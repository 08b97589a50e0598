/** Proves the policy, as test/core/policy.test.ts does. */
import t from 'tap'

// Imported in the tests, because StrykerJS counts a failed test but not a file that fails to load.
t.test('a denial names the missing scope or module', async (t) => {
  const { problemForDenial } = await import('../../core/policy/decide.ts')
  const denied = { allowed: false } as const
  t.match(problemForDenial({ ...denied, reason: 'key_revoked' }), { code: 'key_revoked', members: {} })
  t.match(problemForDenial({ ...denied, reason: 'scope_missing', requiredScope: 'read:banner' }), {
    code: 'scope_missing',
    members: { detail: /read:banner/, required_scope: 'read:banner' },
  })
  t.match(problemForDenial({ ...denied, reason: 'module_inactive', requiredModule: 'banner' }), {
    code: 'module_inactive',
    members: { detail: /banner/, required_module: 'banner' },
  })
})

t.test('decide and explain equal the oracle', async (t) => {
  const { provePolicy } = await import('../core/policy/policy.ts')
  t.ok(provePolicy() > 900_000)
})
