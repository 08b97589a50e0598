/** Code samples: every operation in every language, with the names and the address of this service. */
import { EXAMPLE_ORIGIN, type Language, LANGUAGES } from './html.ts'
import type { DocumentSettings } from './model.ts'
import samples from './samples.json' with { type: 'json' }

const known = new Map<string, Readonly<Partial<Record<Language, string>>>>(Object.entries(samples))

/** The address of the service; the page's script replaces the example. */
export function baseUrl({ servers }: DocumentSettings): string {
  return servers?.find(({ url }) => URL.canParse(url))?.url.replace(/\/+$/, '') ?? EXAMPLE_ORIGIN
}

/** @returns `undefined` for an operation without samples. */
export function sampleOf(
  operationId: string,
  settings: DocumentSettings,
): ReadonlyMap<Language, string> | undefined {
  const { names: { name, keyHeader } } = settings
  const clientOptions = name === 'service' ? '' : `\n  serviceName: '${name}',`
  const programs = known.get(operationId)
  return programs && new Map((Object.keys(LANGUAGES) as Language[]).flatMap((language) => {
    const text = programs[language]
      ?.replaceAll('/service/', `/${name}/`)
      .replaceAll('X-Service-Partner-Key', keyHeader)
      .replaceAll(EXAMPLE_ORIGIN, () => baseUrl(settings))
      .replace("partner: 'demo',\n  key", `partner: 'demo',${clientOptions}\n  key`)
    return text === undefined ? [] : [[language, text] as const]
  }))
}
