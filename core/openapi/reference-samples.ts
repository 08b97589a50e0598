/** Code samples: every operation in every language, for the names of this service. */
import { type Language, LANGUAGES } from './html.ts'
import type { DocumentSettings } from './model.ts'
import samples from './samples.json' with { type: 'json' }

const known = new Map<string, Readonly<Partial<Record<Language, string>>>>(Object.entries(samples))

/** @returns `undefined` for an operation without samples. */
export function sampleOf(
  operationId: string,
  { names: { name, keyHeader } }: DocumentSettings,
): ReadonlyMap<Language, string> | undefined {
  const programs = known.get(operationId)
  if (programs === undefined) return undefined
  const clientOptions = name === 'service' ? '' : `\n  serviceName: '${name}',`
  return new Map((Object.keys(LANGUAGES) as Language[]).flatMap((language) => {
    const text = programs[language]
      ?.replaceAll('/service/', `/${name}/`)
      .replaceAll('X-Service-Partner-Key', keyHeader)
      .replace("partner: 'demo',\n  key", `partner: 'demo',${clientOptions}\n  key`)
    return text === undefined ? [] : [[language, text] as const]
  }))
}
