import { Option } from 'commander'
import { findKey, findPartner } from '../../core/admin/apply.ts'
import { formatValue } from '../../core/http/redact.ts'
import type { Environment } from '../../core/model.ts'
import { PROBLEM_RETENTION_MS, type RecordedProblem } from '../../core/ports/reports.ts'
import type { Store } from '../../core/ports/store.ts'
import type { ProblemRecord } from '../../core/wire.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { CliError } from '../errors.ts'
import { type PageOptions, withPages } from '../options.ts'
import type { CommandResult } from '../output/print.ts'
import { formatDetails, formatTime } from '../output/text.ts'
import { timeOf } from '../store/open.ts'

interface Options extends PageOptions<string> {
  readonly key?: string
  readonly environment?: Environment
}

export function define(problems: CliCommand): void {
  withPages(problems.argument('[partner]'), 'request')
    .option('--key <key>', 'Only problems of this key')
    .addOption(
      new Option('--environment <kind>', 'Only problems of keys of this kind').choices(['live', 'test']),
    )
    .read(list)
    .details(`
Newest first, of the last 7 days, at most 100 an hour and key. Requests without a key of the store are in the log only.
explain --request prints what to do about one.`)
    .examples(
      'partner-api problems acme',
      `partner-api problems --json | jq '.data[] | select(.code == "scope_missing")'`,
    )
}

async function list(store: Store, { output }: Invocation, partner: string | undefined, options: Options) {
  const { key: keyId, environment, after, limit } = options
  if (partner !== undefined) await findPartner(store, partner)
  if (keyId !== undefined) await findKey(store, keyId)
  const start = after === undefined ? undefined : await findProblem(store, after)
  const filter = { partner, keyId, environment, since: timeOf(store) - PROBLEM_RETENTION_MS }
  await output.page<RecordedProblem>({
    read: (last, rows) => store.listProblems(filter, last ?? start, rows),
    toJson: problemJson,
    headings: ['id', 'when', 'partner', 'key', 'kind', 'status', 'code', 'method', 'path'],
    toCells(problem) {
      const { status, code, method, path } = problemJson(problem)
      const { id, at, partner, keyId, environment } = problem
      return [id, formatTime(at), partner, keyId, environment, String(status), code, method, path]
    },
    rows: 'problems',
    after: ({ id }) => id,
    none: 'There are no such problems in the last 7 days.',
  }, limit)
}

function problemJson({ partner, environment, record }: RecordedProblem) {
  return { partner, environment, ...JSON.parse(record) as ProblemRecord }
}

/** @throws {CliError} `problem_not_found` */
async function findProblem(store: Store, id: string): Promise<RecordedProblem> {
  const filter = { id, since: timeOf(store) - PROBLEM_RETENTION_MS }
  const [problem] = await store.listProblems(filter, undefined, 1)
  if (problem !== undefined) return problem
  const detail = `No problem of the last 7 days is recorded for the request ${formatValue(id)}.`
  throw new CliError(1, 'problem_not_found', detail)
}

/** The problem of a request, and what to do about it. */
export async function explainProblem(store: Store, requestId: string): Promise<CommandResult> {
  // Loaded here, with the schemas of responses.
  const { nextStep } = await import('../verify/response.ts')
  const problem = await findProblem(store, requestId)
  const data = problemJson(problem)
  const { partner, key_id: keyId, method, path, status, code, detail } = data
  const { required_scope: scope = null, required_module: module = '' } = data
  const step = nextStep(code, { keyId, partner, scope, module })
  const text = formatDetails([
    ['request', `${method} ${path}`],
    ['when', formatTime(problem.at)],
    ['partner', partner],
    ['key', keyId],
    ['refused', `${status} ${code}. ${detail}`],
  ])
  return { data: { ...data, next_step: step }, text: `${text}\n${step}\n` }
}
