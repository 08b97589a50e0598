/** What endpoints of the host's own and its protected routes have in common. */
import { Problem } from '../http/problem.ts'
import { formatValue } from '../http/redact.ts'
import type { WebAbortSignal } from '../lib/web-globals.ts'
import { type MaybePromise, timeout, toPromise } from '../lib/promise.ts'
import { KEY_POLICY_NAMES } from '../limits/policies.ts'
import { type EndpointMethod, type Key, type Modules, type Partner, SCOPE_PATTERN } from '../model.ts'
import type { Grant } from '../policy/decide.ts'
import type { HandlerContext, KeyedRoute } from './route.ts'

/** What a request may do: its partner, its key, and what handlers need to know of the request itself. */
export interface EndpointGrant {
  /** The partner that the request names, to which the key belongs; without what operators note about it. */
  readonly partner: Omit<Partner, 'contact' | 'note'>
  /** The key, without its digest. */
  readonly key: Omit<Key, 'digest'>
  /** The instant at which the request was checked, milliseconds since the epoch. */
  readonly now: number
  /** `X-Request-Id` of the response. */
  readonly requestId: string
  /**
   * Aborted when the client has gone before its response, or the handler has taken longer than `handlerTimeoutMs`:
   * pass it on to queries and to `fetch`.
   */
  readonly signal: WebAbortSignal
}

/** The grant that host code gets, and how its signal is aborted. */
export interface HostGrant {
  readonly grant: EndpointGrant
  abort(): void
}

/** The grant for host code. Its signal is created when it is first read: most handlers never do. */
export function toHostGrant({ partner, key, now, requestId, request }: Grant): HostGrant {
  const { contact: _contact, note: _note, ...publicPartner } = partner
  const { digest: _digest, ...publicKey } = key
  let controller: AbortController | undefined
  let isLate = false

  function createController(): AbortController {
    const created = new AbortController()
    request.onAbort?.(() => created.abort())
    if (isLate) created.abort()
    return created
  }

  return {
    grant: {
      partner: publicPartner,
      key: publicKey,
      now,
      requestId,
      get signal() {
        controller ??= createController()
        return controller.signal
      },
    },
    abort() {
      isLate = true
      controller?.abort()
    },
  }
}

const pathPattern = /^(?:\/(?!\.{1,2}(?:\/|$))(?:[A-Za-z0-9._~-]+|:[A-Za-z_]\w*))+$/

/**
 * @param methods Those that it may have.
 * @throws {RangeError} for what cannot be served; the message names the endpoint and a command that helps.
 */
export function assertUsable(
  { name, scope, method, path, summary, limits }: KeyedRoute,
  routes: readonly { readonly name: string }[],
  modules: Modules,
  methods: readonly EndpointMethod[] = ['GET', 'POST'],
): void {
  const params = `${path}`.match(/:\w+/g)?.map((each) => each.slice(1)) ?? []
  const isPath = pathPattern.test(path) && new Set(params).size === params.length &&
    !params.some((each) => each in {})
  const areLimits = Array.isArray(limits) && limits.every((each) => KEY_POLICY_NAMES.includes(each))
  const rules: readonly (readonly [holds: boolean, sentence: string])[] = [
    [typeof name === 'string' && /^[a-z0-9-]{1,40}$/.test(name), 'its name must be 1–40 of a-z, 0-9 and -.'],
    [!routes.some((route) => route.name === name), 'its name is taken.'],
    [methods.includes(method), `its method must be ${methods.join(' or ')}.`],
    [
      isPath,
      'its path must be of segments of A-Za-z0-9._~- and of different parameters, such as /orders/:id.',
    ],
    [typeof summary === 'string' && summary.trim() !== '', 'its summary must be a text.'],
    [areLimits, `its limits must be a list of ${KEY_POLICY_NAMES.join(', ')}.`],
    [
      SCOPE_PATTERN.test(`${scope}`),
      `its scope must be read, create, update or delete, a colon and a name, such as read:orders, not ${
        formatValue(scope)
      }.`,
    ],
    [modules.moduleFor(scope!) !== undefined, explainMissingModule(`${scope}`, modules)],
  ]
  const broken = rules.find(([holds]) => !holds)
  if (broken !== undefined) throw new RangeError(`The endpoint ${name}: ${broken[1]}`)
}

/** How to define the module of a scope, for a store on which commands work, and for one of this process alone. */
function explainMissingModule(scope: string, modules: Modules): string {
  const [verb, subject = ''] = scope.split(':')
  const name = modules.names.includes(subject) ? `${subject}-${verb}` : subject
  const definition = `{ name: '${name}', scope: '${scope}', feature: '${name}' }`
  return `the store has no module with the scope ${scope}. To define one before the service is created: ` +
    `await createModuleAdministration(store, { actor: 'setup' }).define(${definition}), or ` +
    `partner-api modules define ${name} --scope ${scope} --feature ${name}`
}

/**
 * Calls the host's code.
 *
 * @param abort Called when it has taken too long.
 * @throws {Problem} `overloaded` after a time.
 * @throws {Error} what the code throws, as an `Error` if it is another value.
 */
export function runWithTimeout<T>(
  work: () => MaybePromise<T>,
  name: string,
  { handlerTimeoutMs, handlerFailed }: Pick<HandlerContext, 'handlerTimeoutMs' | 'handlerFailed'>,
  abort?: () => void,
): MaybePromise<T> {
  try {
    const pending = toPromise(work()) as MaybePromise<T>
    if (!(pending instanceof Promise)) return pending
    const inTime = timeout(pending, handlerTimeoutMs, () => {
      abort?.()
      pending.catch((error: unknown) => handlerFailed(name, error))
      throw new Problem('overloaded', { retryAfterSeconds: 1 })
    })
    return inTime.catch((error: unknown) => {
      throw toError(error)
    })
  } catch (error) {
    throw toError(error)
  }
}

function toError(error: unknown): Error {
  return error instanceof Error
    ? error
    : new TypeError(`The host's code threw a value of type ${typeof error}.`)
}
