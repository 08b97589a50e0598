import { findPartner } from '../../core/admin/apply.ts'
import { type ClaimRequest, issuedScopes } from '../../core/admin/claim-request.ts'
import { createClaim, findClaim, revokeClaim } from '../../core/admin/claims.ts'
import { claimJson } from '../../core/admin/record-json.ts'
import type { Claim } from '../../core/ports/changes.ts'
import type { Store } from '../../core/ports/store.ts'
import type { CliCommand, Invocation } from '../command.ts'
import { usageError } from '../errors.ts'
import { type PageOptions, serviceNameOption, withPages } from '../options.ts'
import type { CommandResult } from '../output/print.ts'
import type { NewSecret } from '../output/secrets.ts'
import { formatDetails, formatRelative, formatTime } from '../output/text.ts'
import { httpUrlOption } from '../serve/service-options.ts'
import { timeOf } from '../store/open.ts'

type ListOptions = PageOptions<string> & { readonly open?: true }

export function define(claims: CliCommand): void {
  const command = claims.subcommand('list [partner]', 'List links, oldest first, of one partner or of all')
    .option('--open', 'Only links that can be used now')
  withPages(command, 'claim')
    .read(list)
    .examples('partner-api claims list acme', 'partner-api claims list --open --json')

  claims.subcommand('revoke <claim>', 'End a link that was not used')
    .change(async (store, { operator }, id: string) =>
      toResult(await revokeClaim(store, { ...operator, clock: () => timeOf(store) }, id), timeOf(store))
    )
    .examples('partner-api claims revoke clm_0123456789abcdef01234567')
}

/** The values of the options that `withClaim` adds. */
export type LinkOptions = Readonly<{ claim?: number; publicUrl?: string; serviceName?: string }>

/** Adds the options that make a link to a key instead of the key. */
export function withClaim(command: CliCommand): CliCommand {
  return command
    .option('--claim <duration>', 'Print a one-time link that makes the key, valid for 1s to 30d')
    .option(
      '--public-url <url>',
      'Address of the deployment, with the base path, for --claim',
      httpUrlOption,
    )
    .option('--service-name <name>', 'Name of the service in the link', serviceNameOption, 'service')
    .hook('preAction', () => {
      const { claim, publicUrl, dryRun } = command.opts<LinkOptions & { readonly dryRun?: true }>()
      const isGiven = (name: string) => command.getOptionValueSource(name) === 'cli'
      if (claim === undefined) {
        if (!isGiven('publicUrl') && !isGiven('serviceName')) return
        throw usageError('--public-url and --service-name need --claim.')
      }
      if (dryRun) throw usageError('--claim takes no --dry-run.')
      if (publicUrl === undefined) {
        throw usageError(
          '--claim needs --public-url, the address of the deployment, such as https://api.example.',
        )
      }
    })
}

/** Creates a claim. @param note For a new key without scopes. */
export async function newLink(
  store: Store,
  { operator }: Invocation,
  key: ClaimRequest,
  { claim: ms, publicUrl, serviceName }: LinkOptions,
  note = '',
): Promise<NewSecret> {
  const now = timeOf(store)
  const { claim, token } = await createClaim(store, { ...operator, clock: () => now }, key, ms!)
  const { id, ...rest } = claimJson(claim, now)
  const remedy = { purpose: 'To revoke it', command: 'claims revoke', args: [claim.id] }
  return {
    kind: 'link',
    secret: `${publicUrl}/${serviceName}/claim/${token}`,
    lost: { detail: `The link of claim ${claim.id} is lost.`, remedy },
    toResult: (name, value) => ({
      data: { id, [name]: value, ...rest },
      text: formatDetails([[name, value], ...claimDetails(claim, now)]),
      notes: () => issuedScopes(claim)?.length === 0 ? [note] : [],
    }),
  }
}

async function list(store: Store, { output }: Invocation, partner: string | undefined, options: ListOptions) {
  const { open, after, limit } = options
  if (partner !== undefined) await findPartner(store, partner)
  const start = after === undefined ? undefined : await findClaim(store, after)
  const now = timeOf(store)
  await output.page<Claim>({
    read: (last, rows) => store.listClaims({ partner, openAt: open && now }, last ?? start, rows),
    toJson: (claim) => claimJson(claim, now),
    headings: ['id', 'partner', 'name', 'rotates', 'state', 'ends', 'key'],
    toCells(claim) {
      const { rotates, state } = claimJson(claim, now)
      const { id, partner, name, expiresAt, keyId = '–' } = claim
      const ends = claim.state === 'open' ? formatRelative(expiresAt, now) : '–'
      return [id, partner, name, String(rotates ?? '–'), String(state), ends, keyId]
    },
    rows: 'links',
    after: ({ id }) => id,
    none: 'There are no such links.',
  }, limit)
}

function toResult(claim: Claim, now: number): CommandResult {
  return { data: claimJson(claim, now), text: formatDetails(claimDetails(claim, now)) }
}

function claimDetails(claim: Claim, now: number): (readonly [name: string, value: string | undefined])[] {
  const { rotates, state } = claimJson(claim, now)
  return [
    ['id', claim.id],
    ['partner', claim.partner],
    ['name', claim.name],
    ['rotates', rotates === null ? undefined : String(rotates)],
    ['state', String(state)],
    ['created', formatTime(claim.createdAt)],
    ['ends', formatTime(claim.expiresAt)],
    ['key', claim.keyId],
  ]
}
