import { resolveSettings } from '../../core/settings.ts'
import type { Action, CliCommand } from '../command.ts'
import { printableJson } from '../output/text.ts'
import { addServiceOptions, type ServiceOptions, toSettings } from '../serve/service-options.ts'

export function define(openapi: CliCommand): void {
  addServiceOptions(openapi)
    .act(printOpenApi)
    .details(
      'Prints the document that a service with these options serves at /service/openapi.json. No store is needed.',
    )
    .examples(
      'partner-api openapi > openapi.json',
      'partner-api openapi --service-name acme --problem-base https://api.acme.example/problems',
    )
}

const printOpenApi: Action<[ServiceOptions]> = async (_invocation, options) => {
  // Loaded here, with the schemas of all endpoints.
  const [{ createDocument }, { ROUTES }] = await Promise.all([
    import('../../core/openapi/document.ts'),
    import('../../core/routes/router.ts'),
  ])
  const document = await createDocument(ROUTES, resolveSettings(toSettings(options)))
  return { data: document, text: `${printableJson(JSON.stringify(document, null, 2))}\n` }
}
