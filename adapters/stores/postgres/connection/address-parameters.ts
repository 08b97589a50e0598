import { StoreError } from '../../store-error.ts'

/** What may follow the `?` of an address: ours, and those of libpq's that mean something here. */
const known = new Set([
  'pooler',
  'connections',
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'sslmode',
  'ssl',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslnegotiation',
  'channel_binding',
  'gssencmode',
  'target_session_attrs',
  'connect_timeout',
  'application_name',
  'options',
  'client_encoding',
])

/** The rest of libpq's: to pass over one would be to promise what is not kept. */
const unsupported = new Set([
  'fallback_application_name',
  'gssdelegation',
  'gsslib',
  'hostaddr',
  'keepalives',
  'keepalives_count',
  'keepalives_idle',
  'keepalives_interval',
  'krbsrvname',
  'load_balance_hosts',
  'max_protocol_version',
  'min_protocol_version',
  'oauth_client_id',
  'oauth_client_secret',
  'oauth_issuer',
  'oauth_scope',
  'passfile',
  'replication',
  'require_auth',
  'requirepeer',
  'requiressl',
  'scram_client_key',
  'scram_server_key',
  'service',
  'servicefile',
  'ssl_max_protocol_version',
  'ssl_min_protocol_version',
  'sslcertmode',
  'sslcompression',
  'sslcrl',
  'sslcrldir',
  'sslkeylogfile',
  'sslpassword',
  'sslsni',
  'tcp_user_timeout',
])

/**
 * The error for an address that cannot be used. What it quotes of the address are names of parameters: anything else
 * may be a piece of a password that was not encoded.
 */
export function refused(reason: string, hint?: string): StoreError {
  return new StoreError(
    'refused',
    `The address of the store ${reason}.${hint === undefined ? '' : ` ${hint}`}`,
  )
}

/** @throws {StoreError} `refused` when text holds what no address can mean. */
export function decode(text: string, what: string): string {
  let decoded: string
  try {
    decoded = decodeURIComponent(text)
  } catch {
    throw refused(`has ${what} whose percent-encoding is malformed`, 'A % by itself is written %25.')
  }
  // It would end a text in what is sent when connecting, and the rest would be taken for a setting.
  if (decoded.includes('\0')) throw refused(`has ${what} that holds a NUL`)
  return decoded
}

/**
 * Reads what follows the `?`.
 *
 * @throws {StoreError} `refused`, naming the parameter, when one is unknown, not supported or there twice.
 */
export function readParameters(query: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  for (const part of query.split('&')) {
    if (part === '') continue
    const [key = '', ...rest] = part.split('=')
    const name = /^[A-Za-z_]{1,40}$/.test(key) ? key : undefined
    if (name === undefined || rest.length === 0) {
      throw refused('has something after its ? that is not NAME=VALUE')
    }
    if (unsupported.has(name)) throw refused(`has the parameter ${name}, which is not supported`)
    if (!known.has(name)) throw refused(`has a parameter ${name}, and there is none of this name`)
    if (parameters.has(name)) throw refused(`has the parameter ${name} twice`)
    parameters.set(name, decode(rest.join('='), `a ${name}`))
  }
  return parameters
}

/** @throws {StoreError} `refused`, naming the values that there are, for any other. */
export function oneOf<const T extends string>(
  name: string,
  value: string | undefined,
  choices: readonly T[],
): T | undefined {
  if (value === undefined) return undefined
  const found = choices.find((choice) => choice === value)
  if (found === undefined) throw refused(`needs for ${name} one of: ${choices.join(', ')}`)
  return found
}

/** @throws {StoreError} `refused`, naming the range, for anything else than a whole number in it. */
export function wholeNumber(
  name: string,
  value: string | undefined,
  least: number,
  most: number,
): number | undefined {
  if (value === undefined) return undefined
  const number = /^\d{1,9}$/.test(value) ? Number(value) : NaN
  if (!(number >= least && number <= most)) {
    throw refused(`needs for ${name} a whole number from ${least} to ${most}`)
  }
  return number
}
