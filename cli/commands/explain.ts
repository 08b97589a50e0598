import { METHODS } from 'node:http'
import { posix } from 'node:path'
import { findKey } from '../../core/admin/apply.ts'
import { type Problem, PROBLEMS } from '../../core/http/problem.ts'
import { isPercentEncoded } from '../../core/http/query.ts'
import { preparePrincipal } from '../../core/keys/principal.ts'
import { type IpAddress, parseIpAddress } from '../../core/lib/ip-address.ts'
import { DEFAULT_LIMITS, policiesFor } from '../../core/limits/policies.ts'
import { type Denial, explain, problemForDenial } from '../../core/policy/decide.ts'
import { allowedMethods, type Route } from '../../core/routes/route.ts'
import { type Action, type CliCommand, printFromStore } from '../command.ts'
import { CliError, usageError } from '../errors.ts'
import { optionParser, serviceNameOption } from '../options.ts'
import { formatTable, joinList, printable } from '../output/text.ts'
import { type Endpoints, readEndpoints, timeOf, withStore } from '../store/open.ts'
import { suggest } from '../suggest.ts'
import { explainProblem } from './problems.ts'

interface ExplainOptions {
  readonly keyId?: string
  readonly partner?: string
  readonly request?: string
  readonly address?: IpAddress
  readonly serviceName: string
}

const addressOption = optionParser('It must be an IPv4 or IPv6 address.', parseIpAddress)

export function define(explain: CliCommand): void {
  explain
    .argument('[method]', 'Method of the request')
    .argument('[path]', 'Path of the request, without a query')
    .option('--key-id <id>', 'Id of the key in the request, see keys list')
    .option('--partner <slug>', 'The partner in the request')
    .option('--request <id>', 'Id of a refused request, see problems: explains that instead')
    .option('--address <address>', 'Client IP address of the request (default: unknown)', addressOption)
    .option('--service-name <name>', 'Name of the service in paths', serviceNameOption, 'service')
    .act(explainRequest)
    .details(`
Evaluates the service's policy with the current data of the store, and prints the result of each rule. Exits 1 if the
service would refuse the request. Does not check rate limits, parameters and bodies.

With --request, prints why the service refused a request in the last 7 days, and what helps. Takes nothing else then.`)
    .examples(
      'partner-api explain --key-id Zt81mQv04KsD --partner acme GET /service/public/plans',
      'partner-api explain --request req_0M4X2K7C9PQ1RS5TVWXY',
      'partner-api explain --key-id Zt81mQv04KsD --partner acme --address 192.0.2.7 --json GET /service/public/banner',
    )
}

const explainRequest: Action<[string | undefined, string | undefined, ExplainOptions]> = async (
  invocation,
  method,
  path,
  options,
) => {
  const { output } = invocation
  const { keyId, partner: requestedPartner, address, serviceName, request } = options
  const given = [method, path, keyId, requestedPartner, address]
  if (request !== undefined) {
    if (given.some((value) => value !== undefined)) {
      throw usageError('--request takes the place of all others.')
    }
    return await printFromStore(invocation, (store) => explainProblem(store, request))
  }
  if (method === undefined || path === undefined || keyId === undefined || requestedPartner === undefined) {
    throw usageError('METHOD, PATH, --key-id and --partner are required, or --request.')
  }
  requireRequest(method, path)
  const explanation = await withStore(invocation, {}, async (store) => {
    const endpoints = await readEndpoints(store, serviceName)
    const route = findRoute(method, path, endpoints)
    if (route.access === 'open') return undefined
    const facts = await findKey(store, keyId)
    const principal = preparePrincipal(facts, policiesFor(DEFAULT_LIMITS, facts), endpoints.modules)
    const { scope, selfService } = route
    return explain({ principal, address, requestedPartner, scope, selfService, now: timeOf(store) })
  })
  if (explanation === undefined) {
    await output.print({ data: { decision: decisionJson(undefined), rules: [] }, text: 'allowed\n' })
    output.note(`${path} requires no key, so no rule of the policy applies.`)
    return 0
  }
  const decision = decisionJson(explanation.denial)
  const { allowed, code, status, detail } = decision
  const rows = explanation.rules.map(({ rule, outcome }) => [rule, outcomeLabels[outcome]])
  const sentence = allowed ? 'allowed' : `refused: ${status} ${code}. ${detail}`
  const text = `${sentence}\n\n${formatTable(['rule', 'holds'], rows, output)}`
  await output.print({ data: { decision, rules: explanation.rules }, text })
  if (allowed) return 0
  if (code === 'address_not_allowed' && address === undefined) {
    output.note('The key has an allow-list: pass the address of the client with --address.')
  }
  return 1
}

function requireRequest(method: string, path: string): void {
  if (/[?#]/.test(path)) throw usageError('PATH must not have a query: pass the partner as --partner.')
  // Methods are case-sensitive (RFC 9110 §9.1), and CONNECT has no path.
  if (!METHODS.includes(method) || method === 'CONNECT') {
    const name = printable(method.slice(0, 40))
    const detail = `${name} is not a method such as GET: the service responds with 400.`
    throw new CliError(1, 'malformed_request', detail)
  }
  if (!isPercentEncoded(path)) {
    const detail = 'PATH has a % without two hexadecimal digits: the service responds with 400.'
    throw new CliError(1, 'malformed_request', detail)
  }
}

function findRoute(method: string, path: string, { match: matchPath, endpoints }: Endpoints): Route {
  const match = matchPath(path)
  if (match === undefined) {
    // That of verify-key, without its last two segments.
    const start = `${posix.resolve(endpoints[0]!.path, '../..')}/`
    const hint = path.startsWith(start) ? '' : ` Paths of this service start with ${start}.`
    const meant = suggest(path.slice(0, 200), [...new Set(endpoints.map((endpoint) => endpoint.path))])
    const detail = `The service has no endpoint ${printable(path.slice(0, 200))}.${hint}${meant}`
    const lines = endpoints.map((endpoint) => `${endpoint.method} ${endpoint.path}`)
    throw new CliError(1, 'route_not_found', detail, { lines })
  }
  const route = match.routes.find((route) => route.method === (method === 'HEAD' ? 'GET' : method))
  if (route !== undefined) return route
  const detail = method === 'OPTIONS'
    ? 'The service allows every OPTIONS request: the policy does not apply.'
    : `${path} only allows ${joinList(allowedMethods(match.routes))}.`
  throw new CliError(1, 'method_not_allowed', detail)
}

/** A decision with the problem that a client would receive. */
function decisionJson(denial: Denial | undefined) {
  const problem: Partial<Problem> = denial ? problemForDenial(denial) : {}
  const { code = null, message: detail = null, members = {} } = problem
  const { required_scope = null, required_module = null } = members
  const status = code && PROBLEMS[code].status
  return { allowed: denial === undefined, code, status, detail, required_scope, required_module }
}

const outcomeLabels = { passed: 'yes', refused: 'NO', not_reached: 'not reached' } as const
