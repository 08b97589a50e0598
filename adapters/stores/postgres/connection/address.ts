/** Parses the URL of a Postgres store, with libpq's environment variables as defaults. */
import { StoreError } from '../../store-error.ts'

export interface Host {
  /** A host name, an IP address (IPv6 without brackets) or the path of a Unix socket. */
  readonly name: string
  readonly port: number
  readonly isSocket: boolean
}

export interface Tls {
  readonly mode: 'disable' | 'prefer' | 'require' | 'verify-ca' | 'verify-full'
  /** File with the certificate authorities; undefined for those of the runtime. */
  readonly rootFile: string | undefined
  /** The client certificate. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined
}

export interface Address {
  /** One or more, in the order in which they are tried. */
  readonly hosts: readonly Host[]
  readonly user: string
  /** Empty without one. */
  readonly password: string
  readonly database: string
  readonly tls: Tls
  /** Whether to use only a server that accepts writes. */
  readonly primaryOnly: boolean
  /** Whether a pooler may run each transaction on another server connection. */
  readonly isPooled: boolean
  /** Connections for reads and transactions. */
  readonly connections: number
  /** Longest silence of the server while connecting; undefined for the caller's default. */
  readonly connectTimeoutMs: number | undefined
  /** Parameters of the startup message. */
  readonly startup: Readonly<Record<string, string>>
  /** Hosts and database, for messages. */
  readonly place: string
}

/** The parameters of the URL: the environment variable that is the default, and the values that are allowed. */
const PARAMETERS: Readonly<Record<string, { variable?: string; values?: readonly string[] }>> = {
  host: { variable: 'PGHOST' },
  port: {},
  user: { variable: 'PGUSER' },
  password: { variable: 'PGPASSWORD' },
  dbname: { variable: 'PGDATABASE' },
  ssl: { values: ['true'] },
  sslmode: { variable: 'PGSSLMODE', values: ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] },
  sslrootcert: { variable: 'PGSSLROOTCERT' },
  sslcert: { variable: 'PGSSLCERT' },
  sslkey: { variable: 'PGSSLKEY' },
  // The values that ask for nothing which this client does not do.
  sslnegotiation: { variable: 'PGSSLNEGOTIATION', values: ['postgres'] },
  gssencmode: { variable: 'PGGSSENCMODE', values: ['disable', 'prefer'] },
  channel_binding: { variable: 'PGCHANNELBINDING', values: ['disable', 'prefer'] },
  client_encoding: { values: ['utf8', 'UTF8', 'utf-8', 'UTF-8', 'auto'] },
  target_session_attrs: { values: ['read-write', 'primary', 'any'] },
  connect_timeout: { variable: 'PGCONNECT_TIMEOUT' },
  application_name: { variable: 'PGAPPNAME' },
  options: { variable: 'PGOPTIONS' },
  pooler: { values: ['transaction'] },
  connections: {},
}

const encodeHint = 'In a user or password, : / ? # @ and % are written %3A %2F %3F %23 %40 %25.'

/**
 * Parses `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?NAME=VALUE&…`. A host may be the directory of a Unix
 * socket, as `%2Fvar%2Frun%2Fpostgresql` or in the parameter `host`.
 *
 * @param defaults The environment, and the user of this process.
 * @throws {StoreError} `refused`. The message quotes nothing of the URL but names of parameters: anything else may be
 * part of a password that was not encoded.
 */
export function parseAddress(
  url: string,
  { environment, user }: { environment: NodeJS.ProcessEnv; user?: string | undefined },
): Address {
  const [, name = '', password = '', authority = '', path = '', query = ''] = split(url)
  const parameters = readParameters(query)
  const get = (parameter: string, inUrl?: string): string | undefined => {
    const { variable, values } = PARAMETERS[parameter]!
    const given = parameters.get(parameter)
    // Like libpq, takes an empty parameter or variable for an absent one.
    const value = variable === undefined ? given : given || inUrl || environment[variable] || undefined
    if (value === undefined || values === undefined || values.includes(value)) return value
    throw refused(`needs for ${parameter} one of: ${values.join(', ')}`)
  }
  for (const parameter of Object.keys(PARAMETERS)) get(parameter)

  const userName = get('user', decodeURIComponent(name) || environment['PGUSERNAME']) ?? user
  if (userName === undefined) throw refused('names no user')
  const database = get('dbname', decodeURIComponent(path)) ?? userName
  const names = authority === '' || parameters.has('host') ? get('host') ?? 'localhost' : undefined
  const hosts = readHosts(
    // A list of names is not encoded, and has no ports: its colons are those of IPv6.
    names?.split(',').map(encodeURIComponent) ?? authority.split(','),
    parameters.get('port'),
    environment['PGPORT'],
  )
  const primaryOnly = get('target_session_attrs') !== 'any'
  // The driver reads this variable itself, and cannot be told not to.
  const variable = environment['PGTARGETSESSIONATTRS']
  if (variable && !(primaryOnly && ['read-write', 'primary'].includes(variable))) {
    throw refused('does not go with PGTARGETSESSIONATTRS', 'Unset it and use target_session_attrs.')
  }
  const seconds = wholeNumber('connect_timeout', get('connect_timeout'), 1, 3600)
  return {
    hosts,
    user: userName,
    password: get('password', decodeURIComponent(password)) ?? '',
    database,
    tls: readTls(get),
    primaryOnly,
    isPooled: get('pooler') !== undefined,
    connections: wholeNumber('connections', get('connections'), 1, 100) ?? 4,
    connectTimeoutMs: seconds && seconds * 1000,
    // The driver does not send an empty one.
    startup: { application_name: get('application_name') ?? 'partner-api', options: get('options') ?? '' },
    place: `${hosts.map(nameOf).join(',')}/${database}`,
  }
}

/** @returns `HOST:PORT`, or the path of the socket. */
export function nameOf({ name, port, isSocket }: Host): string {
  if (isSocket) return name
  return `${name.includes(':') ? `[${name}]` : name}:${port}`
}

/** @returns After the whole URL: user, password, hosts, database and parameters, all of them decodable. */
function split(url: string): RegExpExecArray {
  if (!/^postgres(?:ql)?:\/\//.test(url)) throw refused('does not begin with postgres:// or postgresql://')
  // A NUL ends a string in the startup message: the rest would be read as a parameter.
  if (/[\s\p{Cc}]|%00/u.test(url)) throw refused('holds a space or a control character', encodeHint)
  // An @ in path or query belongs to a password with a slash or question mark that was not encoded.
  const parts = /^\w+:\/\/(?:([^/?#:]*)(?::([^/?#]*))?@)?([^/?#@]*)(?:\/([^?#@]*))?(?:\?([^#@]*))?$/.exec(url)
  if (parts === null) throw refused('is malformed', encodeHint)
  try {
    decodeURIComponent(url)
  } catch {
    throw refused('has a malformed percent-encoding', 'A % by itself is written %25.')
  }
  return parts
}

function readParameters(query: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>()
  for (const part of query.split('&')) {
    if (part === '') continue
    const [, name, value] = /^([A-Za-z_]{1,40})=(.*)$/.exec(part) ?? []
    if (name === undefined || value === undefined) {
      throw refused('has something after its ? that is not NAME=VALUE')
    }
    if (!Object.hasOwn(PARAMETERS, name)) throw refused(`has the parameter ${name}, which is not supported`)
    if (parameters.has(name)) throw refused(`has the parameter ${name} twice`)
    parameters.set(name, decodeURIComponent(value))
  }
  return parameters
}

/** One port serves for all hosts, or each has its own. */
function readHosts(entries: readonly string[], ports = '', defaultPorts = ''): readonly Host[] {
  const portOf = (index: number, list: string): string | undefined => {
    const all = list.split(',')
    if (all.length === 1) return list
    if (all.length !== entries.length) throw refused('has another number of ports than of hosts')
    return all[index]
  }
  return entries.map((entry, index) => {
    // Not `URL`, which rejects the zone of an IPv6 address.
    const [, v6, name = '', own] =
      /^(?:\[([0-9A-Fa-f:.]+(?:%25\w+)?)\]|([^:[\]]*))(?::(\d*))?$/.exec(entry) ?? []
    const host = decodeURIComponent(v6 ?? name)
    const isSocket = host.startsWith('/')
    if (!isSocket && !/^[A-Za-z0-9._:%-]+$/.test(host)) {
      throw refused('has a host that is not HOST or HOST:PORT', encodeHint)
    }
    const text = portOf(index, ports) || own || portOf(index, defaultPorts) || '5432'
    const port = wholeNumber('the port', text, 1, 65_535)!
    return { name: isSocket ? `${host}/.s.PGSQL.${port}` : host, port, isSocket }
  })
}

function readTls(get: (parameter: string) => string | undefined): Tls {
  const root = get('sslrootcert')
  const certFile = get('sslcert')
  const keyFile = get('sslkey')
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw refused('needs both sslcert and sslkey, or neither')
  }
  const isSystem = root === 'system'
  const fallback = get('ssl') ? 'require' : isSystem ? 'verify-full' : 'prefer'
  const mode = (get('sslmode') ?? fallback) as Tls['mode']
  // Anybody can get a certificate from a public authority, for another name.
  if (mode === 'verify-ca' && (root === undefined || isSystem)) {
    throw refused('needs for sslmode=verify-ca a file as sslrootcert')
  }
  if (isSystem && mode !== 'verify-full') throw refused('needs for sslrootcert=system sslmode=verify-full')
  return {
    // As in libpq: a named authority is checked.
    mode: mode === 'require' && root !== undefined ? 'verify-ca' : mode,
    rootFile: isSystem ? undefined : root,
    certificate: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
  }
}

function refused(reason: string, hint?: string): StoreError {
  return new StoreError('refused', `The address of the store ${reason}.${hint ? ` ${hint}` : ''}`)
}

function wholeNumber(
  name: string,
  text: string | undefined,
  least: number,
  most: number,
): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN
  if (number >= least && number <= most) return number
  throw refused(`needs for ${name} a whole number from ${least} to ${most}`)
}
