/** What the address of a Postgres store says. Nothing here asks the world. */
import { decode, oneOf, readParameters, refused, wholeNumber } from './address-parameters.ts'

/** Where a server listens. */
export interface Host {
  /** A name or an address, IPv6 without brackets; or the path of a Unix socket, which has no port of its own. */
  readonly name: string
  readonly port: number
  readonly isSocket: boolean
}

/** How far the way to the server is protected, in libpq's words. */
export interface Tls {
  /** `prefer`, `require`: encrypted, whoever it is; `verify-ca`: whom an authority knows; `verify-full`: under this name. */
  readonly mode: 'disable' | 'prefer' | 'require' | 'verify-ca' | 'verify-full'
  /** File with the authorities; the runtime's own without one. */
  readonly rootFile: string | undefined
  /** Files with our certificate and its key. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined
}

/** A store's address, taken apart. */
export interface Address {
  /** One or more, in the order in which they are tried. */
  readonly hosts: readonly Host[]
  readonly user: string
  /** Empty without one. */
  readonly password: string
  readonly database: string
  readonly tls: Tls
  /** Whether only a server that takes writes is asked. */
  readonly primaryOnly: boolean
  /** Whether a pooler may give each transaction to another connection of the server's. */
  readonly isPooled: boolean
  /** Connections for reads and transactions, 1–100. */
  readonly connections: number
  /** Milliseconds for which the server may be silent while a connection is made; undefined is for the caller to say. */
  readonly connectTimeoutMs: number | undefined
  /** What the server is told when a connection is made. */
  readonly startup: Readonly<Record<string, string>>
  /** Hosts and database, for messages. */
  readonly place: string
}

/** What is taken where the address says nothing. */
export interface Surroundings {
  /** Environment variables as libpq knows them: PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE, …. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Who runs this process. */
  readonly user?: string | undefined
}

const defaultConnections = 4
const encodeHint = 'In a user or password, : / ? # @ and % are written %3A %2F %3F %23 %40 %25.'

/**
 * Takes an address apart: `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?NAME=VALUE&…`. A host may be the folder
 * of a Unix socket, as `%2Fvar%2Frun%2Fpostgresql` or as the parameter `host`.
 *
 * @throws {StoreError} `refused` when it cannot be used as it is. The message quotes nothing but names of parameters.
 */
export function parseAddress(url: string, { environment, user }: Surroundings): Address {
  const { userInfo, authority, path, query } = takeApart(url)
  const parameters = readParameters(query)
  const [name, password] = readUserInfo(userInfo)
  /** Empty means absent, as in libpq. */
  const say = (parameter: string, inUrl: string | undefined, ...variables: readonly string[]) =>
    [parameters.get(parameter), inUrl, ...variables.map((variable) => environment[variable])]
      .find((value) => value !== undefined && value !== '')

  const userName = say('user', name, 'PGUSERNAME', 'PGUSER') ?? user
  if (userName === undefined) throw refused('names no user')
  const database = say('dbname', decode(path, 'a database'), 'PGDATABASE') ?? userName
  const hosts = readHosts(
    parameters.has('host') ? '' : authority,
    say('host', undefined, 'PGHOST'),
    parameters.get('port'),
    environment['PGPORT'],
  )
  const seconds = wholeNumber(
    'connect_timeout',
    say('connect_timeout', undefined, 'PGCONNECT_TIMEOUT'),
    1,
    3600,
  )
  const options = say('options', undefined, 'PGOPTIONS')
  oneOf('client_encoding', parameters.get('client_encoding')?.toLowerCase(), ['utf8', 'utf-8', 'auto'])
  return {
    hosts,
    user: userName,
    password: say('password', password, 'PGPASSWORD') ?? '',
    database,
    tls: readTls(say, parameters),
    primaryOnly: readAttributes(parameters, environment),
    isPooled: oneOf('pooler', parameters.get('pooler'), ['transaction']) !== undefined,
    connections: wholeNumber('connections', parameters.get('connections'), 1, 100) ?? defaultConnections,
    connectTimeoutMs: seconds === undefined ? undefined : seconds * 1000,
    startup: {
      application_name: say('application_name', undefined, 'PGAPPNAME') ?? 'partner-api',
      ...(options === undefined ? {} : { options }),
    },
    place: `${hosts.map(nameOf).join(',')}/${database}`,
  }
}

/** @returns `HOST:PORT`, or the path of the socket. */
export function nameOf({ name, port, isSocket }: Host): string {
  if (isSocket) return name
  return `${name.includes(':') ? `[${name}]` : name}:${port}`
}

/** Its parts, still encoded. */
function takeApart(
  url: string,
): { userInfo: string | undefined; authority: string; path: string; query: string } {
  const found = /^postgres(?:ql)?:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(url)
  // deno-lint-ignore no-control-regex
  if (/[\s\x00-\x1f\x7f]/.test(url)) throw refused('holds a space or a control character', encodeHint)
  if (!/^postgres(?:ql)?:\/\//.test(url)) throw refused('does not begin with postgres:// or postgresql://')
  const [, front = '', path = '', query = ''] = found ?? []
  // A password that was not encoded ends the part before the first slash too early, and what follows holds the rest.
  if (found === null || path.includes('@') || query.includes('@')) throw refused('is malformed', encodeHint)
  const at = front.lastIndexOf('@')
  return {
    userInfo: at < 0 ? undefined : front.slice(0, at),
    authority: front.slice(at + 1),
    path,
    query,
  }
}

function readUserInfo(text: string | undefined): [user: string | undefined, password: string | undefined] {
  if (text === undefined) return [undefined, undefined]
  const colon = text.indexOf(':')
  if (colon < 0) return [decode(text, 'a user'), undefined]
  return [decode(text.slice(0, colon), 'a user'), decode(text.slice(colon + 1), 'a password')]
}

/** Of the authority, or else of a list of names. One port serves for all hosts, or each has its own. */
function readHosts(
  authority: string,
  names: string | undefined,
  ports: string | undefined,
  defaultPorts: string | undefined,
): readonly Host[] {
  const entries = authority !== ''
    ? authority.split(',').map(splitHost)
    : (names ?? 'localhost').split(',').map((name) => ({ name, port: undefined }))
  return entries.map(({ name, port }, index) => {
    const text = portFor(index, entries.length, ports) || port ||
      portFor(index, entries.length, defaultPorts) ||
      '5432'
    return readHost(name, wholeNumber('the port', text, 1, 65_535)!)
  })
}

function portFor(index: number, hosts: number, list: string | undefined): string | undefined {
  const ports = list?.split(',') ?? []
  if (ports.length > 1 && ports.length !== hosts) throw refused('has another number of ports than of hosts')
  return ports.length === 1 ? ports[0] : ports[index]
}

function splitHost(entry: string): { name: string; port: string | undefined } {
  const found = /^(?:\[([0-9A-Fa-f:.]+(?:%25\w+)?)\]|([^:[\]]*))(?::(\d*))?$/.exec(entry)
  if (found === null) throw refused('has a host that is not HOST or HOST:PORT', encodeHint)
  const [, v6, name = '', port] = found
  return { name: decode(v6 ?? name, 'a host'), port }
}

function readHost(name: string, port: number): Host {
  if (name.startsWith('/')) return { name: `${name}/.s.PGSQL.${port}`, port, isSocket: true }
  if (!/^[A-Za-z0-9._:%-]+$/.test(name)) throw refused('has a host that is no name of one', encodeHint)
  return { name, port, isSocket: false }
}

const tlsModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const

function readTls(
  say: (parameter: string, inUrl: undefined, ...variables: readonly string[]) => string | undefined,
  parameters: ReadonlyMap<string, string>,
): Tls {
  const ssl = oneOf('ssl', parameters.get('ssl'), ['true'])
  const named = oneOf('sslmode', say('sslmode', undefined, 'PGSSLMODE'), tlsModes)
  const root = say('sslrootcert', undefined, 'PGSSLROOTCERT')
  const certFile = say('sslcert', undefined, 'PGSSLCERT')
  const keyFile = say('sslkey', undefined, 'PGSSLKEY')
  oneOf('sslnegotiation', say('sslnegotiation', undefined, 'PGSSLNEGOTIATION'), ['postgres'])
  oneOf('gssencmode', say('gssencmode', undefined, 'PGGSSENCMODE'), ['disable', 'prefer'])
  oneOf('channel_binding', say('channel_binding', undefined, 'PGCHANNELBINDING'), ['disable', 'prefer'])
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw refused('needs both sslcert and sslkey, or neither')
  }
  const isSystem = root === 'system'
  const mode = named ?? (ssl ? 'require' : isSystem ? 'verify-full' : 'prefer')
  // Anybody can have a certificate of a public authority, under another name.
  if (mode === 'verify-ca' && (root === undefined || isSystem)) {
    throw refused('needs for sslmode=verify-ca a file as sslrootcert')
  }
  if (isSystem && mode !== 'verify-full') throw refused('needs for sslrootcert=system sslmode=verify-full')
  return {
    // As libpq has it: whoever names an authority wants to be sure.
    mode: mode === 'require' && root !== undefined ? 'verify-ca' : mode,
    rootFile: isSystem ? undefined : root,
    certificate: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
  }
}

/** Whether the server must take writes: what a standby says may be old, and a store is written to. */
function readAttributes(
  parameters: ReadonlyMap<string, string>,
  environment: Surroundings['environment'],
): boolean {
  const name = 'target_session_attrs'
  const asked = oneOf(name, parameters.get(name), ['read-write', 'primary', 'any'])
  // The driver looks at this one by itself, and cannot be told not to.
  const variable = environment['PGTARGETSESSIONATTRS'] || undefined
  const isFine = variable === undefined || ['read-write', 'primary'].includes(variable) && asked !== 'any'
  if (!isFine) {
    throw refused('does not go with PGTARGETSESSIONATTRS', `Unset it, and say ${name} in the address.`)
  }
  return asked !== 'any'
}
