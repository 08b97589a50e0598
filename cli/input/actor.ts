import { InvalidArgumentError } from 'commander'
import { userInfo } from 'node:os'
import process from 'node:process'
import { ACTOR_RULE, isActor } from '../../core/audit/actor.ts'

/** A name for the audit trail. @throws {InvalidArgumentError} */
export function actor(text: string): string {
  if (isActor(text)) return text
  throw new InvalidArgumentError(ACTOR_RULE)
}

/** Who runs this command: the operating system's user, or who the environment says it is where there is none. */
export function currentUser(): string {
  return [systemUser(), process.env.USER].find((name) => name !== undefined && isActor(name)) ?? 'unknown'
}

/** A container may run under a number that no user has. */
function systemUser(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
