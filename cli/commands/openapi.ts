import type { Command } from 'commander'
import { createServiceNames } from '../../core/http/headers.ts'
import { DEFAULT_LIMITS } from '../../core/limits/policies.ts'
import { action } from '../command.ts'
import type { Invocation } from '../invocation.ts'
import { addServiceOptions, deploymentInfo, type ServiceOptions } from '../options.ts'
import { printResult } from '../output/print.ts'
import { printableJson } from '../output/text.ts'

/** `openapi`. */
export function define(openapi: Command): void {
  addServiceOptions(openapi)
    .addHelpText(
      'after',
      `
It is the document that a service with these settings serves as /service/openapi.json. No store is needed.

Examples:
  $ partner-api openapi > openapi.json
  $ partner-api openapi --service-name acme --problem-base https://api.acme.example/problems`,
    )
    .action(action(printOpenApi))
}

async function printOpenApi(
  invocation: Invocation,
  options: ServiceOptions,
): Promise<void> {
  const { serviceName, limit, maxStaleness, allowBrowsers = false, problemBase } = options
  // Imported here because every schema of the wire comes with it.
  const [{ createDocument }, { ROUTES }] = await Promise.all([
    import('../../core/openapi/document.ts'),
    import('../../core/routes/router.ts'),
  ])
  const document = createDocument(ROUTES, {
    names: createServiceNames(serviceName),
    limits: { ...DEFAULT_LIMITS, ...limit },
    maxStalenessMs: maxStaleness,
    allowBrowsers,
    ...(problemBase !== undefined && { problemBase }),
    ...deploymentInfo(options),
  })
  await printResult(invocation, document, `${printableJson(JSON.stringify(document, null, 2))}\n`)
}
