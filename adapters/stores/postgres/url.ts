/** The URL of a Postgres store: libpq's format, with its common parameters and environment variables. */
import { StoreError } from '../../../core/ports/store-error.ts'

export interface Host {
  /** A host name, an IP address (IPv6 without brackets) or the path of a Unix socket. */
  readonly name: string
  readonly port: number
  readonly isSocket: boolean
}

/** How the connection is encrypted. Files are in PEM; without `rootFile`, the authorities of the runtime count. */
export interface TlsSettings {
  /** The mode of encryption: `disable`, `prefer`, `require`, `verify-ca` or `verify-full`, as in libpq. */
  readonly mode: string
  readonly rootFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
}

/** A URL with its defaults. */
export interface PostgresUrl {
  /** The hosts, in the order in which they are tried. */
  readonly hosts: readonly Host[]
  readonly user: string
  readonly password: string
  readonly database: string
  readonly tls: TlsSettings
  /** Whether only a server that accepts writes will do. */
  readonly primaryOnly: boolean
  /** Whether a pooler may run each transaction on another server connection. */
  readonly isPooled: boolean
  /** The number of connections for reads and transactions. */
  readonly connections: number
  readonly connectTimeoutMs: number | undefined
  /** Parameters of the startup message. */
  readonly startup: Readonly<Record<string, string>>
  /** Hosts and database, for messages. */
  readonly location: string
}

type Get = (parameter: string, inUrl?: string) => string | undefined

/** Every parameter, with the environment variable that is its default. */
const urlParameters: Readonly<Record<string, string | undefined>> = {
  host: 'PGHOST',
  port: 'PGPORT',
  user: 'PGUSER',
  password: 'PGPASSWORD',
  sslmode: 'PGSSLMODE',
  sslrootcert: 'PGSSLROOTCERT',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
  connect_timeout: 'PGCONNECT_TIMEOUT',
  application_name: 'PGAPPNAME',
  options: 'PGOPTIONS',
  target_session_attrs: undefined,
  pooler: undefined,
  connections: undefined,
}

const allowedValues: Readonly<Record<string, readonly string[]>> = {
  sslmode: ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'],
  target_session_attrs: ['read-write', 'primary', 'any'],
  pooler: ['transaction'],
}

const encodingHint = 'In a user or password, write : / ? # @ and % as %3A %2F %3F %23 %40 %25.'

/**
 * Parses `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?NAME=VALUE&…`. A host may be the directory of a Unix
 * socket, as `%2Fvar%2Frun%2Fpostgresql` or in the parameter `host`.
 *
 * @throws {StoreError} `refused`. The message quotes only names of parameters: anything else may be part of a password
 * that was not encoded.
 */
export function parseUrl(
  url: string,
  { environment, user: osUser }: { environment: NodeJS.ProcessEnv; user?: string | undefined },
): PostgresUrl {
  const [, userInfo = '', secret = '', authority = '', path = '', query = ''] = split(url)
  const parameters = readParameters(query)
  const get: Get = (name, inUrl) => {
    // An empty value counts as absent, as in libpq.
    const value = parameters.get(name) || inUrl || readVariable(environment, urlParameters[name] ?? '')
    if (value === undefined || (allowedValues[name] ?? [value]).includes(value)) return value
    throw refused(`needs ${name} to be one of: ${allowedValues[name]!.join(', ')}`)
  }
  // The driver reads this variable itself.
  if (environment['PGTARGETSESSIONATTRS']) {
    throw refused('does not go with PGTARGETSESSIONATTRS', 'Unset it and use target_session_attrs.')
  }
  const user = get('user', decodeURIComponent(userInfo)) ?? osUser
  if (user === undefined) throw refused('names no user')
  const database = decodeURIComponent(path) || readVariable(environment, 'PGDATABASE') || user
  // A list of hosts that is not in the authority is not encoded and has no ports: its colons are those of IPv6.
  const hosts = parameters.has('host') || authority === ''
    ? (get('host') ?? 'localhost').split(',').map(encodeURIComponent)
    : authority.split(',')
  const found = hosts.map((host) => readHost(host, get))
  const seconds = get('connect_timeout')
  return {
    hosts: found,
    user,
    password: get('password', decodeURIComponent(secret)) ?? '',
    database,
    tls: readTls(get),
    primaryOnly: get('target_session_attrs') !== 'any',
    isPooled: get('pooler') !== undefined,
    connections: integer('connections', get('connections') ?? '5', 100),
    connectTimeoutMs: seconds === undefined ? undefined : integer('connect_timeout', seconds, 3600) * 1000,
    startup: { application_name: get('application_name') ?? 'partner-api', options: get('options') ?? '' },
    location: `${found.map(nameOf).join(',')}/${database}`,
  }
}

/** Reads a variable without white space around it, the password without the line end of a file or a Secret. */
function readVariable(environment: NodeJS.ProcessEnv, name: string): string | undefined {
  const text = environment[name]
  return (name === 'PGPASSWORD' ? text?.replace(/\r?\n?$/, '') : text?.trim()) || undefined
}

/** @returns `HOST:PORT`, or the path of the socket. */
export function nameOf({ name, port, isSocket }: Host): string {
  if (isSocket) return name
  const host = name.includes(':') ? `[${name}]` : name
  return `${host}:${port}`
}

/** @returns The whole URL, user, password, hosts, database and parameters, all of which can be decoded. */
function split(url: string): RegExpExecArray {
  if (!/^postgres(?:ql)?:\/\//.test(url)) throw refused('does not begin with postgres:// or postgresql://')
  // A NUL ends a string of the startup message: the rest would be read as a parameter.
  if (/[\s\p{Cc}]|%00/u.test(url)) throw refused('has a space or a control character', encodingHint)
  // An @ in path or query belongs to a password with a slash or question mark that was not encoded.
  const parts = /^\w+:\/\/(?:([^/?#:]*)(?::([^/?#]*))?@)?([^/?#@]*)(?:\/([^?#@]*))?(?:\?([^#@]*))?$/.exec(url)
  if (parts === null) throw refused('is malformed', encodingHint)
  try {
    decodeURIComponent(url)
  } catch {
    throw refused('has a malformed percent-encoding', 'Write a literal % as %25.')
  }
  return parts
}

function readParameters(query: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  for (const part of query.split('&').filter((part) => part !== '')) {
    const [, name = '', value] = /^([A-Za-z_]{1,40})=(.*)$/.exec(part) ?? []
    if (value === undefined) throw refused('has a parameter that is not NAME=VALUE')
    if (!Object.hasOwn(urlParameters, name)) throw refused(`has the unsupported parameter ${name}`)
    if (parameters.has(name)) throw refused(`has the parameter ${name} twice`)
    parameters.set(name, decodeURIComponent(value))
  }
  return parameters
}

function readHost(text: string, get: Get): Host {
  // Not `URL`, which rejects the zone of an IPv6 address.
  const [, v6, name = '', ownPort] =
    /^(?:\[([0-9A-Fa-f:.]+(?:%25\w+)?)\]|([^:[\]]*))(?::(\d*))?$/.exec(text) ??
      []
  const host = decodeURIComponent(v6 ?? name)
  const isSocket = host.startsWith('/')
  if (!isSocket && !/^[\w.:%-]+$/.test(host)) throw refused('has a malformed host', encodingHint)
  const port = integer('the port', get('port', ownPort) ?? '5432', 65_535)
  return { name: isSocket ? `${host}/.s.PGSQL.${port}` : host, port, isSocket }
}

function readTls(get: Get): TlsSettings {
  const root = get('sslrootcert')
  const certFile = get('sslcert')
  const keyFile = get('sslkey')
  const isSystem = root === 'system'
  const mode = get('sslmode') ?? (isSystem ? 'verify-full' : 'prefer')
  if (!certFile !== !keyFile) throw refused('needs both sslcert and sslkey, or neither')
  if (isSystem && mode !== 'verify-full') throw refused('needs sslmode=verify-full for sslrootcert=system')
  // Without a name to check, a certificate of any public authority would do.
  if (mode === 'verify-ca' && !root) throw refused('needs a file as sslrootcert for sslmode=verify-ca')
  // As in libpq, `require` with an authority verifies it.
  const isVerified = mode === 'require' && root
  return { mode: isVerified ? 'verify-ca' : mode, rootFile: isSystem ? undefined : root, certFile, keyFile }
}

function integer(name: string, text: string, most: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw refused(`needs ${name} to be an integer from 1 to ${most}`)
}

function refused(reason: string, hint = ''): StoreError {
  return new StoreError('refused', `The URL of the store ${reason}.${hint && ` ${hint}`}`)
}
