/** Code samples. Those of operations that are not built in are made from those that are. */
import type { DocumentSettings, ParameterObject } from './model.ts'
import type { OperationObject } from './operation.ts'
import samples from './samples.json' with { type: 'json' }

/** The languages of samples, with what the page calls them. */
export const LANGUAGES = {
  shell: 'Shell',
  client: 'JavaScript',
  php: 'PHP',
  python: 'Python',
} as const

export type Language = keyof typeof LANGUAGES

/** The languages of samples in their order. */
export const LANGUAGE_NAMES = Object.keys(LANGUAGES) as readonly Language[]

/** The origin in samples, where the service does not know its own. */
const exampleOrigin = 'https://api.example.com'

/** The URL of the service that its settings have. */
export function configuredUrl({ servers }: DocumentSettings): string | undefined {
  return servers?.find(({ url }) => URL.canParse(url))?.url.replace(/\/+$/, '')
}

/** The URL of the service in samples. */
export function baseUrl(settings: DocumentSettings): string {
  return configuredUrl(settings) ?? exampleOrigin + settings.basePath
}

/** An operation without references. */
export interface EndpointEntry {
  readonly path: string
  readonly method: string
  readonly operation: OperationObject
}

const known = new Map<string, Readonly<Partial<Record<Language, string>>>>(Object.entries(samples))

type Samples = ReadonlyMap<Language, string>

/** @returns `undefined` for an operation that is not built in. */
export function sampleOf(operationId: string, settings: DocumentSettings): Samples | undefined {
  const { names: { name, keyHeader } } = settings
  const clientOptions = name === 'service' ? '' : `\n  serviceName: '${name}',`
  const programs = known.get(operationId)
  return programs && new Map(LANGUAGE_NAMES.flatMap((language) => {
    const text = programs[language]
      ?.replaceAll('/service/', `/${name}/`)
      .replaceAll('X-Service-Partner-Key', keyHeader)
      .replaceAll(exampleOrigin, () => baseUrl(settings))
      .replace("partner: 'demo',\n  key", `partner: 'demo',${clientOptions}\n  key`)
    return text === undefined ? [] : [[language, text] as const]
  }))
}

/** Samples of an endpoint of the host's own, with the parameters and members that are required. */
export function ownSamples({ path, method, operation }: EndpointEntry, settings: DocumentSettings): Samples {
  const { names: { name } } = settings
  const [template, target] = method === 'GET'
    ? ['widget', 'partner-widget?partner=demo'] as const
    : ['verifyKey', 'developer/verify-key'] as const
  const parameters = operation.parameters as readonly ParameterObject[]
  const valuesIn = (place: ParameterObject['in']): Readonly<Record<string, unknown>> =>
    Object.fromEntries(
      parameters.filter((one) => one.in === place && one.required).map((one) => [one.name, one.example]),
    )
  const params = valuesIn('path')
  const query = valuesIn('query')
  const { schema, example = {} } = operation.requestBody?.content['application/json'] ?? {}
  const body = Object.fromEntries(
    Object.entries(example as object).filter(([name]) => schema?.required?.includes(name)),
  )
  // The client adds the partner.
  const options = Object.entries({ params, query, body })
    .map(([name, values]) => [name, { ...values, partner: undefined }] as const)
    .filter(([, values]) => JSON.stringify(values).length > 2)
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, values]) => [values].flat().map((one) => [name, String(one)])),
  )
  const url = path.replace(/\{(\w+)\}/g, (_, name) => String(params[name])) +
    (search.size > 0 ? `?${search}` : '')
  const args = `'${method} ${path.slice(name.length + 1)}'` +
    (options.length > 0 ? `, ${literal(Object.fromEntries(options), 'client')}` : '')
  const call = parameters.some((one) => one.name === 'cursor')
    ? `for await (const row of client.paginate(${args})) {\n  console.log(row)\n}`
    : `console.log(await client.request(${args}))`
  return new Map(
    Array.from(sampleOf(template, settings)!, ([language, text]) => [
      language,
      text.replace(`/${name}/${target}`, () => url)
        .replace(/\{\s*"?partner"?: ["']demo["']\s*\}|\['partner' => 'demo'\]/, () => literal(body, language))
        .replace(/console\.log\(await client.*/, () => call),
    ]),
  )
}

/** How languages write what JSON writes otherwise. */
const words: Readonly<Partial<Record<Language, Readonly<Record<string, string>>>>> = {
  php: { '{}': '(object) []', '{': '[', '}': ']', ':': ' =>' },
  python: { true: 'True', false: 'False', null: 'None' },
}

/** A JSON value in the syntax of a language. In Shell it is the text in a string. */
function literal(value: unknown, language: Language): string {
  const margin = { php: '    ', python: '    ', shell: '', client: '' }[language]
  const json = JSON.stringify(value, null, margin || 2).replaceAll('\n', `\n${margin}`)
  if (language === 'shell') return json.replaceAll("'", '\\u0027')
  return json.replace(/("(?:[^"\\]|\\.)*")|\{\}|[{}:]|true|false|null/g, (token, text?: string) => {
    if (text === undefined) return words[language]?.[token] ?? token
    if (language === 'python') return text
    if (language === 'php') return `'${JSON.parse(text).replace(/[\\']/g, '\\$&')}'`
    return /['\\]/.test(text) ? text : `'${text.slice(1, -1)}'`
  }).replace(/^( *)'([a-z_]\w*)':/gim, language === 'php' ? '$&' : '$1$2:')
}
