import type { Command } from 'commander'
import { resolveSettings } from '../../core/settings.ts'
import { action, type Invocation } from '../command.ts'
import { printResult } from '../output/print.ts'
import { printableJson } from '../output/text.ts'
import { addServiceOptions, type ServiceOptions, serviceSettings } from '../service-options.ts'

/** `openapi`. */
export function define(openapi: Command): void {
  addServiceOptions(openapi)
    .addHelpText(
      'after',
      `
Prints the document that a service with these options serves at /service/openapi.json. No store is needed.

Examples:
  $ partner-api openapi > openapi.json
  $ partner-api openapi --service-name acme --problem-base https://api.acme.example/problems`,
    )
    .action(action(printOpenApi))
}

async function printOpenApi(invocation: Invocation, options: ServiceOptions): Promise<void> {
  // Loaded here, with the schemas of all endpoints.
  const [{ createDocument }, { ROUTES }] = await Promise.all([
    import('../../core/openapi/document.ts'),
    import('../../core/routes/router.ts'),
  ])
  const document = createDocument(ROUTES, resolveSettings(serviceSettings(options)))
  await printResult(invocation, document, `${printableJson(JSON.stringify(document, null, 2))}\n`)
}
