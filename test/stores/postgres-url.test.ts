import fc from 'fast-check'
import { test } from 'tap'
import { nameOf, parseUrl, type PostgresUrl } from '../../adapters/stores/postgres/url.ts'
import { StoreError } from '../../core/ports/store-error.ts'
import { anyText } from '../support/any-text.ts'

type Environment = Readonly<Record<string, string>>

const parse = (url: string, environment: Environment = {}) => parseUrl(url, { environment, user: 'me' })

function refusalOf(url: string, environment: Environment = {}): string {
  try {
    parse(url, environment)
  } catch (error) {
    if (error instanceof StoreError && error.code === 'refused') return error.message
    throw error
  }
  throw new Error(`was taken: ${url}`)
}

const hostsOf = ({ hosts }: PostgresUrl) => hosts.map(nameOf)

test('the URL has host, port, user, password and database', (t) => {
  t.match(parse('postgres://ann:secret@db.example:6000/shop'), {
    hosts: [{ name: 'db.example', port: 6000, isSocket: false }],
    user: 'ann',
    password: 'secret',
    database: 'shop',
    tls: { mode: 'prefer', rootFile: undefined, certificate: undefined },
    primaryOnly: true,
    isPooled: false,
    connections: 5,
    connectTimeoutMs: undefined,
    startup: { application_name: 'partner-api' },
    location: 'db.example:6000/shop',
  })
  const short = parse('postgresql://')
  t.match(short, { user: 'me', password: '', database: 'me', location: 'localhost:5432/me' })
  t.match(parse('postgres://h'), { database: 'me', location: 'h:5432/me' })
  t.match(parse('postgres://ann@h/'), { user: 'ann', database: 'ann', location: 'h:5432/ann' })
  t.match(parse('postgres://:secret@h'), { user: 'me', password: 'secret' })
  t.match(parse('postgres:///shop?host=h&user=ann&password=s%26t&port=7'), {
    user: 'ann',
    password: 's&t',
    location: 'h:7/shop',
  })
  t.match(parse('postgres://x:y@other:1/shop?host=h&port=7&user=ann&password=z'), {
    user: 'ann',
    password: 'z',
    location: 'h:7/shop',
  }, 'parameters take precedence')
  t.end()
})

test('several servers are tried in order', (t) => {
  const cases: readonly (readonly [url: string, hosts: readonly string[]])[] = [
    ['postgres://a:1,b:2/x', ['a:1', 'b:2']],
    ['postgres://a,b:2,c/x', ['a:5432', 'b:2', 'c:5432']],
    ['postgres://a,b/x?port=6', ['a:6', 'b:6']],
    ['postgres:///x?host=a,b&port=6', ['a:6', 'b:6']],
    ['postgres://[::1]:6,[fe80::1%25eth0]/x', ['[::1]:6', '[fe80::1%eth0]:5432']],
    ['postgres://127.0.0.1/x', ['127.0.0.1:5432']],
    ['postgres://%2Fvar%2Frun:7/x', ['/var/run/.s.PGSQL.7']],
    ['postgres:///x?host=/tmp', ['/tmp/.s.PGSQL.5432']],
  ]
  for (const [url, hosts] of cases) t.same(hostsOf(parse(url)), hosts, url)
  t.same(parse('postgres://a:1,b:2/x').location, 'a:1,b:2/x')
  t.equal(parse('postgres:///x?host=/tmp').hosts[0]!.isSocket, true)
  t.end()
})

test('environment variables are defaults', (t) => {
  const environment = {
    PGHOST: 'a,b',
    PGPORT: '6',
    PGUSER: 'ann',
    PGPASSWORD: 'secret',
    PGDATABASE: 'shop',
    PGSSLMODE: 'require',
    PGAPPNAME: 'till',
    PGOPTIONS: '-c lock_timeout=5s',
    PGCONNECT_TIMEOUT: '3',
  }
  t.match(parse('postgres://', environment), {
    user: 'ann',
    password: 'secret',
    tls: { mode: 'require' },
    connectTimeoutMs: 3000,
    startup: { application_name: 'till', options: '-c lock_timeout=5s' },
    location: 'a:6,b:6/shop',
  })
  const url = 'postgres://bob:own@h:5/x?sslmode=disable&application_name=y&options=z&connect_timeout=9'
  t.match(parse(url, environment), {
    user: 'bob',
    password: 'own',
    tls: { mode: 'disable' },
    connectTimeoutMs: 9000,
    startup: { application_name: 'y', options: 'z' },
    location: 'h:5/x',
  }, 'and no more than that')
  t.match(parse('postgres://h', { PGUSER: '', PGSSLMODE: '' }), { user: 'me', tls: { mode: 'prefer' } })
  t.match(parse('postgres://a,b', { PGPORT: '6' }), { location: 'a:6,b:6/me' })
  t.end()
})

test('sslmode and certificates are those of libpq', (t) => {
  const tlsOf = (query: string) => parse(`postgres://h/x?${query}`).tls
  for (const mode of ['disable', 'prefer', 'require', 'verify-full'] as const) {
    t.equal(tlsOf(`sslmode=${mode}`).mode, mode)
  }
  t.match(tlsOf('sslmode=verify-ca&sslrootcert=ca.pem'), { mode: 'verify-ca', rootFile: 'ca.pem' })
  t.match(tlsOf('sslmode=require&sslrootcert=ca.pem'), { mode: 'verify-ca' }, 'as in libpq')
  t.match(tlsOf('sslrootcert=system'), { mode: 'verify-full', rootFile: undefined })
  t.match(tlsOf('sslcert=c.pem&sslkey=k.pem'), { certFile: 'c.pem', keyFile: 'k.pem' })
  t.match(refusalOf('postgres://h?sslmode=verify-ca'), /a file as sslrootcert for sslmode=verify-ca/)
  t.match(refusalOf('postgres://h?sslmode=verify-ca&sslrootcert=system'), /sslmode=verify-full/)
  t.match(refusalOf('postgres://h?sslmode=require&sslrootcert=system'), /sslmode=verify-full/)
  t.match(refusalOf('postgres://h?sslmode=allow'), /sslmode to be one of: disable, prefer, require/)
  t.match(refusalOf('postgres://h?sslcert=c.pem'), /both sslcert and sslkey/)
  for (const name of ['ssl', 'channel_binding', 'sslnegotiation', 'gssencmode']) {
    t.match(refusalOf(`postgres://h?${name}=require`), `unsupported parameter ${name}`)
  }
  t.end()
})

test('parameters of the store', (t) => {
  t.match(parse('postgres://h?pooler=transaction&connections=9'), { isPooled: true, connections: 9 })
  t.match(refusalOf('postgres://h?pooler=session'), /pooler to be one of: transaction/)
  for (const connections of ['0', '101', '4x', '-1', '1.5']) {
    t.match(
      refusalOf(`postgres://h?connections=${connections}`),
      /connections to be an integer from 1 to 100/,
    )
  }
  t.match(refusalOf('postgres://h?connect_timeout=0'), /connect_timeout to be an integer from 1/)
  t.equal(parse('postgres://h?connections=').connections, 5, 'an empty value counts as absent')
  t.end()
})

test('only a server that accepts writes is used, unless the URL allows any', (t) => {
  const name = 'target_session_attrs'
  t.equal(parse(`postgres://h?${name}=any`).primaryOnly, false)
  for (const value of ['read-write', 'primary']) {
    t.equal(parse(`postgres://h?${name}=${value}`).primaryOnly, true)
  }
  for (const value of ['standby', 'read-only', 'prefer-standby']) {
    t.match(refusalOf(`postgres://h?${name}=${value}`), /one of: read-write, primary, any/)
  }
  t.match(refusalOf('postgres://h', { PGTARGETSESSIONATTRS: 'primary' }), /Unset it/, 'the driver reads it')
  t.end()
})

test('unsupported and malformed URLs are refused', (t) => {
  const cases: readonly (readonly [url: string, says: RegExp])[] = [
    ['mysql://h/x', /does not begin with postgres:/],
    ['postgres:/h/x', /does not begin with/],
    ['', /does not begin with/],
    ['postgres://h/x?connectoins=4', /unsupported parameter connectoins/],
    ['postgres://h/x?Pooler=transaction', /unsupported parameter Pooler/],
    ['postgres://h/x?statement_timeout=1', /unsupported parameter statement_timeout/],
    ['postgres://h/x?service=prod', /unsupported parameter service/],
    ['postgres://h/x?constructor=x', /unsupported parameter constructor/],
    ['postgres://h/x?load_balance_hosts=random', /unsupported parameter load_balance_hosts/],
    ['postgres://h/x?connections=4&connections=5', /connections twice/],
    ['postgres://h/x?connections', /is not NAME=VALUE/],
    ['postgres://h/x?=4', /is not NAME=VALUE/],
    ['postgres://h:0/x', /the port to be an integer from 1 to 65535/],
    ['postgres://h:65536/x', /the port to be an integer/],
    ['postgres://a,b,c/x?port=1,2', /the port to be an integer/],
    ['postgres://h:port/x', /a malformed host/],
    ['postgres://[::1/x', /a malformed host/],
    ['postgres://a,,b/x', /a malformed host/],
    ['postgres://h_%C3%A9/x', /a malformed host/],
    ['postgres://h/x y', /a space/],
    ['postgres://h/x\n', /a space or a control character/],
    ['postgres://h/x#y', /malformed/],
    ['postgres://a%zz@h/x', /a malformed percent-encoding/],
    ['postgres://a:%ff@h/x', /a malformed percent-encoding/],
    ['postgres://a:b%00c@h/x', /a control character/],
    ['postgres://h/x?application_name=a%00b', /a control character/],
  ]
  for (const [url, says] of cases) t.match(refusalOf(url), says, url)
  t.throws(() => parseUrl('postgres://h', { environment: {} }), { code: 'refused', message: /no user/ })
  t.end()
})

test('encoded parts are decoded', (t) => {
  const text = anyText({ minLength: 1 }).filter((text) => !text.includes('\0'))
  fc.assert(fc.property(text, text, text, (user, password, database) => {
    const [u, p, d] = [user, password, database].map(encodeURIComponent)
    const address = parse(`postgres://${u}:${p}@h:1/${d}`)
    return address.user === user && address.password === password && address.database === database
  }))
  t.end()
})

test('no message has a part of a password, however it was written', (t) => {
  const awkward = fc.constantFrom('@', '/', '?', '#', ':', '%', '&', '=', '[', ']', ',', ' ', 'sslmode=x')
  const word = fc.stringMatching(/^[A-Z0-9]{6,9}$/)
  const password = fc.array(fc.oneof(word, awkward), { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(password, (parts) => {
      let said: string
      try {
        said = parse(`postgres://user:${parts.join('')}@host/name?connections=2`).location
      } catch (error) {
        said = String(error instanceof StoreError ? error.message + error.cause : error)
      }
      return parts.every((part) => !/^[A-Z0-9]{6}/.test(part) || !said.includes(part))
    }),
    { numRuns: 5_000 },
  )
  t.end()
})

test('white space around a variable is dropped, and of the password one line end', (t) => {
  const environment = {
    PGHOST: 'db.example\r\n',
    PGPORT: ' 6000\n',
    PGUSER: 'ann\n',
    PGDATABASE: '\tshop\r',
    PGSSLMODE: 'require\r\n',
    PGOPTIONS: ' \n',
  }
  for (const end of ['', '\n', '\r\n', '\r']) {
    t.match(parse('postgres://', { ...environment, PGPASSWORD: ` secret ${end}` }), {
      user: 'ann',
      password: ' secret ',
      location: 'db.example:6000/shop',
      tls: { mode: 'require' },
      startup: { options: '' },
    })
  }
  t.match(parse('postgres://', { PGPASSWORD: 'a\n\n' }), { password: 'a\n' })
  t.end()
})
