import type { KeyState } from '../../core/model.ts'
import type { KeyFilter } from '../../core/ports/changes.ts'
import { scopeSet, type Value } from './row-format.ts'

const hasNotEnded = '(expires_at IS NULL OR expires_at > :now) AND (retires_at IS NULL OR retires_at > :now)'
const inForce = `state = 'active' AND ${hasNotEnded}`

const stateConditions: Readonly<Record<KeyState, string>> = {
  active: `${inForce} AND retires_at IS NULL`,
  retiring: `${inForce} AND retires_at IS NOT NULL`,
  disabled: `state = 'disabled' AND ${hasNotEnded}`,
  expired: `state <> 'revoked' AND (state = 'retired' OR expires_at <= :now OR retires_at <= :now)`,
  revoked: `state = 'revoked'`,
}

/**
 * The conditions of a filter in the SQL of both SQL stores, each after an AND.
 *
 * @param parameter Adds a parameter to the statement and returns its placeholder.
 */
export function keyConditions(filter: KeyFilter, parameter: (value: Value) => string): string {
  const { partner, environment, scope, states, endsBefore, unusedSince, now = Date.now() } = filter
  const conditions: string[] = []
  if (partner !== undefined) conditions.push(`partner = ${parameter(partner)}`)
  if (environment !== undefined) conditions.push(`environment = ${parameter(environment)}`)
  if (scope !== undefined) conditions.push(`scopes & ${parameter(scopeSet.encode([scope]))} <> 0`)
  if (states !== undefined) {
    conditions.push(states.map((state) => stateConditions[state]).join(' OR ') || 'FALSE')
  }
  if (endsBefore !== undefined) {
    const end = parameter(endsBefore)
    conditions.push(`${inForce} AND (expires_at < ${end} OR retires_at < ${end})`)
  }
  if (unusedSince !== undefined) {
    const since = parameter(unusedSince)
    conditions.push(
      `${inForce} AND created_at < ${since} AND (last_used_at IS NULL OR last_used_at < ${since})`,
    )
  }
  const sql = conditions.map((condition) => ` AND (${condition})`).join('')
  return sql.includes(':now') ? sql.replaceAll(':now', parameter(now)) : sql
}
