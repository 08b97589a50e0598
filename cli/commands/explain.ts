import process from 'node:process'
import type { Command } from 'commander'
import { findKey } from '../../core/admin/apply.ts'
import { PROBLEMS } from '../../core/http/problem.ts'
import { isPercentEncoded } from '../../core/http/query.ts'
import { preparePrincipal } from '../../core/keys/principal.ts'
import { type IpAddress, parseIpAddress } from '../../core/lib/ip-address.ts'
import { DEFAULT_LIMITS, policiesFor } from '../../core/limits/policies.ts'
import { type Decision, explain, problemForDenial } from '../../core/policy/decide.ts'
import type { Store } from '../../core/ports/store.ts'
import { allowedMethods, type Route } from '../../core/routes/route.ts'
import { action } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import type { Invocation } from '../invocation.ts'
import { optionParser, serviceNameOption } from '../options.ts'
import { printNote, printResult } from '../output/print.ts'
import { formatTable, joinList, printable } from '../output/text.ts'
import { timeOf, withStore } from '../store.ts'

interface ExplainOptions {
  readonly keyId: string
  readonly partner: string
  readonly address?: IpAddress
  readonly serviceName: string
}

/** `explain`. */
export function define(command: Command): void {
  command
    .argument('<method>', 'Method of the request')
    .argument('<path>', 'Its path, without a query')
    .requiredOption('--key-id <id>', 'Id of the key that it carries, as keys list shows it')
    .requiredOption('--partner <slug>', 'The partner that it names')
    .option(
      '--address <address>',
      'The IP address that it comes from (default: one that is not known)',
      addressOption,
    )
    .option('--service-name <name>', "The service's name for itself", serviceNameOption, 'service')
    .addHelpText(
      'after',
      `
Asks the policy as the service does, on what the store holds now, and shows what each rule said. It exits 1 when the
request would be refused. Rate limits, parameters and bodies are not looked at.

Examples:
  $ partner-api explain --key-id Zt81mQv04KsD --partner acme GET /service/public/plans
  $ partner-api explain --key-id Zt81mQv04KsD --partner acme --address 192.0.2.7 --json GET /service/public/banner`,
    )
    .action(action(explainRequest))
}

async function explainRequest(
  invocation: Invocation,
  method: string,
  path: string,
  options: ExplainOptions,
): Promise<void> {
  const route = await findRoute(method.toUpperCase(), path, options.serviceName)
  if (route.access === 'open') {
    await printResult(invocation, { decision: decisionJson({ allowed: true }), rules: [] }, 'allowed\n')
    return printNote(`${path} is answered without a key: no rule of the policy applies.`)
  }
  const explanation = await withStore(
    invocation,
    {},
    (store) => explainForKey(store, route.scope, options),
  )
  const decision = decisionJson(explanation.decision)
  await printResult(
    invocation,
    { decision, rules: explanation.rules },
    formatExplanation(decision, explanation),
  )
  if (explanation.decision.allowed) return
  if (decision.code === 'address_not_allowed' && options.address === undefined) {
    printNote(
      'The key has an allow-list, and without --address the request comes from nowhere that is on it.',
    )
  }
  process.exitCode = 1
}

async function explainForKey(
  store: Store,
  scope: Extract<Route, { access: 'key' }>['scope'],
  { keyId, partner, address }: ExplainOptions,
): Promise<ReturnType<typeof explain>> {
  const facts = await findKey(store, keyId)
  return explain({
    principal: preparePrincipal(facts, policiesFor(DEFAULT_LIMITS, facts)),
    address,
    requestedPartner: partner,
    scope,
    now: timeOf(store),
  })
}

async function findRoute(method: string, path: string, name: string): Promise<Route> {
  if (/[?#]/.test(path)) {
    throw usageError('PATH has no query: the partner that a request names is --partner.')
  }
  if (!isPercentEncoded(path)) {
    throw new CliError(
      1,
      'malformed_request',
      'PATH has a % that no two hexadecimal digits follow: the service answers 400.',
    )
  }
  // Imported here because every schema of the wire comes with it.
  const [{ compileRoutes }, { ROUTES }] = await Promise.all([
    import('../../core/routes/router.ts'),
    import('../../core/routes/router.ts'),
  ])
  const paths = compileRoutes(ROUTES, name)
  const match = paths.match(path)
  if (match === undefined) {
    const hint = path.startsWith(`/${name}/`) ? '' : ` Paths of this service begin with /${name}/.`
    throw new CliError(
      1,
      'route_not_found',
      `The service has no endpoint ${printable(path.slice(0, 200))}.${hint}`,
      {
        lines: paths.endpoints.map((endpoint) => `${endpoint.method} ${endpoint.path}`),
      },
    )
  }
  const route = match.routes.find((route) => route.method === (method === 'HEAD' ? 'GET' : method))
  if (route !== undefined) return route
  throw new CliError(
    1,
    'method_not_allowed',
    method === 'OPTIONS'
      ? 'OPTIONS is answered whoever asks: the policy is not.'
      : `${path} is for ${joinList(allowedMethods(match.routes))} only.`,
  )
}

/** A decision in the words of the answer that a client would get. */
function decisionJson(decision: Decision | { readonly allowed: true }) {
  const problem = decision.allowed ? undefined : problemForDenial(decision)
  return {
    allowed: decision.allowed,
    code: problem?.code ?? null,
    status: problem === undefined ? null : PROBLEMS[problem.code].status,
    detail: problem?.message ?? null,
    required_scope: problem?.members.required_scope ?? null,
    required_module: problem?.members.required_module ?? null,
  }
}

const outcomeLabels = { passed: 'yes', refused: 'NO', not_reached: 'not asked' } as const

function formatExplanation(
  { allowed, code, status, detail }: ReturnType<typeof decisionJson>,
  { rules }: ReturnType<typeof explain>,
): string {
  const decision = allowed ? 'allowed' : `refused: ${status} ${code}. ${detail}`
  return `${decision}\n\n${
    formatTable(['rule', 'holds'], rules.map(({ rule, outcome }) => [rule, outcomeLabels[outcome]]))
  }`
}

const addressOption = optionParser('It has to be an IPv4 or IPv6 address.', parseIpAddress)
