/** Compares the tables of the docs with the code. A failure prints the row that is needed. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { parseUrl } from '../../adapters/stores/postgres/url.ts'
import { CliCommand } from '../../cli/command.ts'
import { define as defineServe } from '../../cli/serve/command.ts'
import { CHECKS } from '../../cli/doctor/check.ts'
import { variableOf } from '../../cli/environment.ts'
import { createLog } from '../../cli/serve/log.ts'
import { createLineReader, formatContentLine } from '../../core/content/lines.ts'
import { PROBLEM_ACTIONS } from '../../core/http/problem-actions.ts'
import { Problem, type ProblemCode, PROBLEMS } from '../../core/http/problem.ts'
import { DEFAULT_LIMITS } from '../../core/limits/policies.ts'
import { mintKey } from '../../core/keys/format.ts'
import { createRequestLogger, type LogEvent } from '../../core/log.ts'
import { MODULES } from '../../core/model.ts'
import { CONTENT_KINDS, type ContentKind } from '../../core/ports/content.ts'
import { compileRoutes, ROUTES } from '../../core/routes/router.ts'
import { INTEGERS } from '../../core/settings.ts'
import { runProgram } from '../support/cli-program.ts'
import { cellsOf, proseOf, quotedIn, readPage, ROOT, tableRows } from './docs.ts'

const generated: Readonly<Record<string, readonly [page: string, rows: readonly string[]]>> = {
  endpoints: [
    'docs/partners.md',
    compileRoutes(ROUTES, 'service').endpoints.map(({ method, path, scope, access, summary }) =>
      `| ${method} | \`${path}\` | ${
        scope === undefined ? access === 'open' ? 'no key' : 'any key' : `\`${scope}\``
      } | ${summary} |`
    ),
  ],
  limits: [
    'docs/partners.md',
    Object.entries(DEFAULT_LIMITS).map(([name, { quota, windowSeconds }]) =>
      `| \`${name}\` | ${quota} | ${windowSeconds} s |`
    ),
  ],
  problems: [
    'docs/partners.md',
    Object.entries(PROBLEMS).map(([code, { status, detail }]) =>
      `| \`${code}\` | ${status} | ${detail} | ${PROBLEM_ACTIONS[code as ProblemCode]} |`
    ),
  ],
  modules: [
    'docs/operate.md',
    Object.entries(MODULES).map(([module, { scope, feature }]) =>
      `| \`${module}\` | \`${scope}\` | ${feature} |`
    ),
  ],
}

for (const [name, [page, rows]] of Object.entries(generated)) {
  t.test(`the table of ${name} matches the code`, (t) => {
    t.same(tableRows(page, name), rows)
    t.end()
  })
}

t.test('partners read how to rotate where they look for it, and nowhere else', (t) => {
  const sections = readPage('docs/partners.md').split(/^## /m)
  const about = sections.filter((text) =>
    /developer\/(?:rotate|revoke)-key`? with|developer\/rotate-key\n/.test(text)
  )
  t.same(about.map((text) => text.split('\n')[0]), ['Rotate your key'])
  t.end()
})

/** The names of the members of an interface. */
function membersOf(path: string, name: string): string[] {
  const source = readPage(path).replace(/\/\*\*.*?\*\//gs, '')
  const [, body = ''] = new RegExp(`interface ${name}\\b[^{]*\\{(.*?)^\\}`, 'ms').exec(source) ?? []
  return Array.from(body.matchAll(/^ {2}readonly (\w+)\??:/gm), ([, member = '']) => member)
}

/** A column of a table: the first name in backticks of each cell that has one. */
function column(page: string, table: string, index: number): string[] {
  return tableRows(page, table).flatMap((row) => quotedIn(cellsOf(row)[index]!).slice(0, 1))
}

function sameNames(t: Test, documented: readonly string[], actual: readonly string[], what: string): void {
  t.ok(actual.length > 0, what)
  t.same([...documented].sort(), [...actual].sort(), what)
}

t.test('the table of doctor matches its checks', (t) => {
  const documented = tableRows('docs/doctor.md', 'doctor').map(cellsOf)
    .map(([name = '', severity]) => [quotedIn(name)[0], severity])
  t.same(Object.fromEntries(documented), CHECKS)
  t.end()
})

t.test('the members of an endpoint match the code', (t) => {
  const documented = tableRows('docs/own-endpoints.md', 'endpoint').flatMap((row) =>
    quotedIn(cellsOf(row)[0]!)
  )
  const members = [...membersOf('core/routes/host-endpoints.ts', 'EndpointDefinition'), 'handle']
  sameNames(t, documented, members, 'members of an endpoint')
  t.end()
})

t.test('the table of errors of a store matches the code', (t) => {
  const [, body = ''] =
    /export type StoreErrorCode =(.*?)\n\n/s.exec(readPage('core/ports/store-error.ts')) ?? []
  const codes = Array.from(
    body.matchAll(/\/\*\* (.*)\. \*\/\n {2}\| '(\w+)'/g),
    ([, why, code]) => [code, why],
  )
  t.equal(codes.length, body.match(/\| '/g)?.length, 'each has a comment')
  const rows = tableRows('docs/embed-reference.md', 'store-errors').map(cellsOf)
  t.same(rows.map(([code, why]) => [quotedIn(code!)[0], why]), codes)
  for (const [code, , action] of rows) t.match(action, /\w/, `${code}`)
  t.end()
})

const settings = 'docs/settings.md'

t.test('the settings match the code', async (t) => {
  const service = membersOf('core/settings.ts', 'PartnerApiOptions').filter((name) => name !== 'deployment')
  const deployment = membersOf('core/openapi/model.ts', 'DeploymentInfo').map((name) => `deployment.${name}`)
  sameNames(t, column(settings, 'service', 0), [...service, ...deployment], 'settings of the service')
  const server = ['server.ts', 'node.ts', 'bun.ts'].flatMap((file) =>
    membersOf(`adapters/runtimes/${file}`, file === 'server.ts' ? 'ListenOptions' : 'ServeOptions')
  )
  sameNames(t, column(settings, 'server', 0), [...new Set(server)], 'settings of the server')
  const store = [
    ...membersOf('adapters/stores/sqlite/store.ts', 'SqliteStoreOptions'),
    ...membersOf('adapters/stores/postgres/store.ts', 'PostgresStoreOptions'),
  ]
  sameNames(t, column(settings, 'store', 0), [...new Set(store)], 'settings of the store')

  const serve = new CliCommand('serve', { variables: new Map() } as never)
  defineServe(serve)
  const shown = [
    ...column(settings, 'service', 1),
    ...column(settings, 'server', 1),
    ...column(settings, 'serve', 0),
  ]
  sameNames(t, [...new Set(shown)], serve.options.map(({ long }) => long ?? ''), 'options of serve')
  const { stdout: help } = await runProgram(['--help'])
  const common = Array.from(help.matchAll(/^ {2}(?:-\w, )?(--\w+)/gm), ([, option = '']) => option)
    .filter((option) => option !== '--help' && option !== '--version')
  sameNames(t, column(settings, 'global', 0), common, 'options of every command')
  t.match((await runProgram(['migrate', '--help'])).stdout, '--key-prefix')

  const figure = (number: number): string => number.toLocaleString('en')
  for (const [name, option, fallback, range] of tableRows(settings, 'service').map(cellsOf)) {
    const integer = INTEGERS[quotedIn(name!)[0] as keyof typeof INTEGERS]
    if (integer === undefined) continue
    const [value, min, max] = integer
    t.same([fallback, range], [figure(value), `${figure(min)}–${figure(max)}`], `${name}`)
    const own = serve.options.find(({ long }) => long === quotedIn(option!)[0])
    if (own) t.equal(own.defaultValue, value, `${option}`)
  }
  for (const [name, option, variable, fallback] of tableRows(settings, 'server').map(cellsOf)) {
    const own = serve.options.find(({ long }) => long === quotedIn(option!)[0])
    t.equal(quotedIn(variable!)[0], own && variableOf(['serve'], own).name, `${name}: variable`)
    if (own) t.equal(fallback, String(own.defaultValue), `${name}: default`)
    else if (/^\d/.test(fallback!)) {
      const constant = fallback!.replace(',', '_')
      const runtimes = globSync('adapters/runtimes/*.ts', { cwd: ROOT }).map(readPage).join('')
      t.match(runtimes, new RegExp(`${quotedIn(name!)[0]} = ${constant}\\b`), `${name}: default`)
    }
  }
})

t.test('the commands of the README are those of the program', async (t) => {
  const { stdout: help } = await runProgram(['--help'])
  const commands = Array.from(help.matchAll(/^ {2}([a-z]+) {2,}[A-Z]/gm), ([, name = '']) => name)
  sameNames(
    t,
    tableRows('README.md', 'commands').flatMap((row) => quotedIn(cellsOf(row)[0]!)),
    commands,
    'commands',
  )
})

t.test('the environment variables match the code', (t) => {
  const code = globSync('{cli,adapters}/**/*.ts', { cwd: ROOT }).map((path) =>
    readFileSync(join(ROOT, path), 'utf8')
  )
    .join('').replace(/\/\*\*.*?\*\//gs, '').replace(/^ *\/\/.*$/gm, '')
  const used = [
    ...code.matchAll(/env(?:ironment)?(?:\.|\[')(?!TERM\b)([A-Z][A-Z_]+)\b/g),
    ...code.matchAll(/(?:'|\bPARTNER_API_\w+: ')(PARTNER_API_\w+|PORT|HOST|USER)'/g),
    ...code.matchAll(/'((?:PG[A-Z_]{3,}|[A-Z]+_PROXY))'/g),
  ].map(([, name = '']) => name)
  const global = column(settings, 'global', 0).map((option) => `PARTNER_API_${option.slice(2).toUpperCase()}`)
  const documented = quotedIn(proseOf(settings) + proseOf('docs/postgres.md')).filter((name) =>
    /^(?:PARTNER_API_|PG|PORT$|HOST$|USER$)|_PROXY$/.test(name)
  )
  sameNames(t, [...new Set(documented)], [...new Set([...used, ...global])], 'variables')
  t.end()
})

t.test('the parameters of the PostgreSQL URL match the code', (t) => {
  const page = 'docs/postgres.md'
  const source = readPage('adapters/stores/postgres/url.ts')
  const [, body = ''] = /const urlParameters.*?\{(.*?)^\}/ms.exec(source) ?? []
  const actual = Array.from(
    body.matchAll(/^ {2}(\w+): (?:'(\w+)'|undefined)/gm),
    ([, name, variable = '']) => `${name} ${variable}`,
  )
  const rows = tableRows(page, 'url').map(cellsOf)
  t.ok(actual.length > 10)
  t.same(rows.map(([name, variable]) => `${quotedIn(name!)[0]} ${quotedIn(variable!)[0] ?? ''}`), actual)
  const parse = (query: string) => parseUrl(`postgres://user@host/name?${query}`, { environment: {} })
  const { tls, connections, hosts, startup } = parse('')
  t.same([tls.mode, connections, hosts[0]?.port, startup.application_name], [
    'prefer',
    5,
    5432,
    'partner-api',
  ])
  const modes = quotedIn(rows.find(([name]) => name === '`sslmode`')![2]!)
  t.equal(modes.length, 5)
  for (const mode of modes) t.ok(parse(`sslmode=${mode}&sslrootcert=x.pem`), mode)
  for (const value of ['read-write', 'primary', 'any']) t.ok(parse(`target_session_attrs=${value}`))
  const text = readPage(page) + readPage('docs/SECURITY.md') + readPage('docs/faq.md')
  for (
    const [, query = ''] of text.matchAll(
      /`\??((?:sslmode|connect_timeout|target_session_attrs|pooler|reads)=\w[\w-]*)`/g,
    )
  ) {
    t.ok(parse(query), query)
  }
  t.end()
})

/** Every event of the service, with all of its fields, and with as few as possible. */
function eventsOfService(): readonly LogEvent[] {
  const events: LogEvent[] = []
  const logger = createRequestLogger((event) => events.push(event), true, () => 0, 0)
  const principal = { partner: { slug: 'acme' }, key: { id: 'x' } }
  const route = { name: 'plans' }
  const base = { requestId: 'req_x', path: '/', client: undefined }
  const request = { method: 'GET', header: () => undefined, address: '192.0.2.7' }
  const full = { ...base, request, traceId: () => '1'.repeat(32) }
  const least = {
    ...base,
    request: { ...request, method: 'BREW', address: undefined },
    traceId: () => undefined,
  }
  const problem = new Problem('store_unavailable', {}, new Error('x'))
  for (
    const [message, rest] of [
      [full, { route, principal, error: problem, isCredentialRejected: false }],
      [least, { route: undefined, principal: undefined, error: undefined, isCredentialRejected: false }],
      [least, {
        route: undefined,
        principal: undefined,
        error: new Problem('key_invalid'),
        isCredentialRejected: true,
      }],
    ] as const
  ) {
    const { error } = rest
    const status = error instanceof Problem ? PROBLEMS[error.code].status : 200
    logger.requestCompleted({ ...message, ...rest, startedAt: 0 } as never, status)
    logger.browserAllowed(message as never)
  }
  logger.requestRejected('malformed_request', 'req_x', undefined)
  const entry = { type: 'key.revoked', actor: 'x', at: 0 }
  logger.auditLogged({ ...entry, partner: 'acme', keyId: 'x', subject: 'x' } as never)
  logger.auditLogged(entry as never)
  logger.writeFailed(new Error('x'))
  logger.handlerFailed('orders', new Error('x'))
  logger.storeUnavailable(new Error('x'))
  logger.storeRecovered()
  logger.clockSkewed(1)
  logger.connectionsRefused(1)
  logger.directoryInvalid('x')
  return events
}

/** What `serve` writes when a first attempt fails: the line that reports what was lost. */
function droppedEvent(): Record<string, unknown> {
  let text = ''
  let isFull = true
  const log = createLog('all', (bytes, start) => {
    if (isFull) throw new Error('EAGAIN')
    text += Buffer.from(bytes.subarray(start)).toString()
    return bytes.length - start
  })
  const write = () => log.write({ time: '', level: 'info', event: 'stopped' })
  write()
  log.flush()
  isFull = false
  write()
  log.flush()
  return text.trim().split('\n').map((line) => JSON.parse(line)).find(({ event }) => event === 'log_dropped')
}

t.test('the log events match the code', (t) => {
  const page = 'docs/log-events.md'
  const seen = new Map<string, { levels: Set<string>; always: Set<string>; all: Set<string> }>()
  for (const { time: _, level, event, ...fields } of [...eventsOfService(), droppedEvent()] as LogEvent[]) {
    const names = new Set(Object.keys(fields))
    const known = seen.get(event) ?? { levels: new Set(), always: names, all: names }
    seen.set(event, {
      levels: known.levels.add(level),
      always: known.always.intersection(names),
      all: known.all.union(names),
    })
  }
  const deliverer = ['deliverer', 'attempts'].map((name) => readPage(`adapters/webhooks/${name}.ts`)).join('')
  for (
    const [, level = '', event = '', text = ''] of deliverer.matchAll(
      / log\('(\w+)', '(webhook\w+)', \{ (.*?) \}/g,
    )
  ) {
    const fields = Array.from(
      text.matchAll(/(\.\.\.)?(\w+)[^,]*/g),
      ([, optional, name = '']) => ({ optional, name }),
    )
    const always = new Set(fields.filter(({ optional }) => !optional).map(({ name }) => name))
    seen.set(event, { levels: new Set([level]), always, all: new Set(fields.map(({ name }) => name)) })
  }
  const rows = new Map(
    tableRows(page, 'events').map(cellsOf).map((cells) => [quotedIn(cells[0]!)[0]!, cells]),
  )
  const [, declared = ''] = /readonly event: (.*)/.exec(readPage('cli/serve/log.ts')) ?? []
  const ofServe = Array.from(declared.matchAll(/'(\w+)'/g), ([, name = '']) => name)
  sameNames(t, [...rows.keys()], [...seen.keys(), ...ofServe], 'events')
  for (const [event, { levels, always, all }] of seen) {
    const [, level = '', fields = ''] = rows.get(event) ?? []
    sameNames(t, level.split(', '), [...levels], `levels of ${event}`)
    const optional = Array.from(fields.matchAll(/\(`(\w+)`\)/g), ([, name = '']) => name)
    t.same(quotedIn(fields).toSorted(), [...all].sort(), `fields of ${event}`)
    t.same(optional.sort(), [...all.difference(always)].sort(), `fields of ${event} in parentheses`)
  }
  const members = [
    ...membersOf('core/log.ts', 'LogEvent'),
    ...membersOf('cli/serve/log.ts', 'ServeEvent'),
    'count',
  ]
  sameNames(t, column(page, 'fields', 0), [...new Set(members)], 'fields')
  t.end()
})

const samples: Readonly<Record<string, readonly [valid: readonly unknown[], invalid: readonly unknown[]]>> = {
  slug: [['a', '0-a', 'x'.repeat(80)], ['', '-a', 'A', 'x'.repeat(81), 1]],
  URL: [['https://a.example', `http://${'x'.repeat(2_041)}`], ['//a.example', `http://${'x'.repeat(2_042)}`]],
  'e-mail': [['a@b.example'], ['a@', 'a b@c.example', `${'x'.repeat(251)}@b.c`]],
  instant: [['2026-01-31T09:30:00Z', '2026-01-31T09:30:00+02:00'], ['2026-01-31', '2026-01-31T09:30:00', 0]],
  country: [['PT', 'XK'], ['pt', 'ZZ']],
  currency: [['EUR', 'JPY'], ['eur', 'XXX', 'DEM']],
  boolean: [[true, false], ['true', 0]],
  object: [[], ['x', 1, []]],
}

/** Values that a type of the docs accepts and rejects. */
function samplesOf(type: string): readonly [valid: readonly unknown[], invalid: readonly unknown[]] {
  const known = samples[type]
  if (known) return known
  const [, list, item] = /^list(?: 0–(\d+))? of (.+)$/.exec(type) ?? []
  if (item !== undefined) {
    const [valid, invalid] = item === 'object'
      ? [[{ rel: 'x', url: 'https://a.example' }], ['x']]
      : samplesOf(item)
    // A list without a bound has no item twice.
    const full = list === undefined ? [...valid] : Array.from({ length: Number(list) }, () => valid[0])
    const tooMany = list === undefined ? [] : [[...full, valid[0]]]
    return [[[], full], ['x', {}, ...tooMany, ...invalid.map((value) => [value])]]
  }
  const choices = quotedIn(type)
  if (choices.length > 0) return [choices, ['other', '']]
  const [, kind, min, max] = /^(text|integer)(?: ([\d,]+)–([\d,]+)?)?$/.exec(type) ?? []
  if (kind === undefined) throw new Error(`The docs have no type ${type}`)
  const [low, high] = [min, max].map((text) =>
    text === undefined ? undefined : Number(text.replaceAll(',', ''))
  )
  if (kind === 'text') {
    const texts = (...lengths: number[]) => lengths.map((length) => '😀'.repeat(length))
    return [texts(low!, high!), [...texts(low! - 1, high! + 1), 1, 'a\0b']]
  }
  return [
    [low ?? Number.MIN_SAFE_INTEGER, high ?? Number.MAX_SAFE_INTEGER],
    [low === undefined ? -1.5 : low - 1, high === undefined ? 2 ** 53 : high + 1, '1'],
  ]
}

/** A line with every field. */
const full: { readonly [K in ContentKind]: Readonly<Record<string, unknown>> } = {
  profiles: {
    slug: 'a',
    name: 'A',
    headline: 'A',
    country: 'PT',
    industry: 'b',
    published_at: '2026-01-31T09:30:00Z',
    logo_url: 'https://a.example',
    description: 'A',
    website_url: 'https://a.example',
    city: 'A',
    founded_year: 1,
    employees: { min: 0, max: Number.MAX_SAFE_INTEGER },
    tags: ['a'],
    contact: { email: 'a@b.example', phone: '1' },
    links: [{ rel: 'a', url: 'https://a.example' }],
    visible_to: ['a'],
  },
  industries: { slug: 'own', name: 'A', parent_slug: 'b' },
  plans: {
    slug: 'a',
    name: 'A',
    description: 'A',
    price: { amount_minor: 0, currency: 'EUR' },
    interval: 'month',
    features: [],
    highlighted: true,
    position: 1,
  },
  banners: {
    partner: 'a',
    title: 'A',
    body: 'A',
    image_url: 'https://a.example',
    image_alt: 'A',
    link_url: 'https://a.example',
    link_label: 'A',
    starts_at: '0001-01-01T00:00:00Z',
    ends_at: '9999-01-01T00:00:00Z',
  },
}

t.test('the rule for gitleaks finds keys of both environments', (t) => {
  const rule = readPage('examples/gitleaks.toml')
  const [, pattern = ''] = /^regex = '''(.*)'''$/m.exec(rule) ?? []
  const keywords: string[] = JSON.parse(/^keywords = (.*)$/m.exec(rule)?.[1] ?? '[]')
  for (const environment of ['live', 'test'] as const) {
    const { text } = mintKey('spk', environment)
    t.match(new RegExp(pattern).exec(`key="${text}"`)?.[0], text)
    t.ok(keywords.some((keyword) => text.startsWith(keyword)))
    t.notMatch(`key="${text}0"`, new RegExp(pattern))
  }
  t.end()
})

/** Reads a line. @returns The first error. */
function errorOf(kind: ContentKind, line: unknown): string | undefined {
  const reader = createLineReader(kind)
  reader.read(JSON.stringify(line))
  const [error] = reader.finish()?.errors ?? []
  return error && `${error.field} ${error.reason}`
}

/** A copy of a line with another value at a path such as `employees.min`, or `links.url` in a list. */
function withValue(line: Readonly<Record<string, unknown>>, path: string, value: unknown): unknown {
  const [name = '', inner] = path.split('.')
  if (inner === undefined) return { ...line, [name]: value }
  const within = line[name] as Readonly<Record<string, unknown>>
  return {
    ...line,
    [name]: Array.isArray(within) ? [{ ...within[0], [inner]: value }] : { ...within, [inner]: value },
  }
}

/** The fields of a line in its order, those of objects after their own. */
function fieldsOf(line: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(line).flatMap(([name, value]) => {
    const [first] = [value].flat()
    const isObject = typeof first === 'object' && first !== null
    return [name, ...isObject ? Object.keys(first).map((inner) => `${name}.${inner}`) : []]
  })
}

for (const kind of CONTENT_KINDS) {
  t.test(`the fields of ${kind} match the schema`, (t) => {
    const line = full[kind]
    t.equal(errorOf(kind, line), undefined)
    const reader = createLineReader(kind)
    const exported = JSON.parse(formatContentLine(kind, reader.read(JSON.stringify(line))!))
    const rows = tableRows('docs/content-format.md', kind).map(cellsOf)
    t.same(
      rows.map(([name]) => quotedIn(name!)[0]),
      fieldsOf(exported),
      'the fields in the order of an export',
    )
    for (const [cell, type = '', required] of rows) {
      const [name = ''] = quotedIn(cell!)
      const [valid, invalid] = samplesOf(type)
      for (const value of valid) {
        t.equal(errorOf(kind, withValue(line, name, value)), undefined, `${name}: ${type}`)
      }
      for (const value of invalid) {
        t.type(errorOf(kind, withValue(line, name, value)), 'string', `${name} is no ${type}: ${value}`)
      }
      const missing = errorOf(kind, withValue(line, name, undefined))
      t.equal(missing?.endsWith('is missing') ?? false, required === 'yes', `${name}: required`)
      if (required !== 'yes') t.equal(errorOf(kind, withValue(line, name, null)), undefined, `${name}: null`)
    }
    t.end()
  })
}
