import type { Command } from 'commander'
import { DEFAULT_LIMITS } from '../../core/limits/policies.ts'
import { nameService } from '../../core/service-names.ts'
import { addServiceOptions, deploymentInfo, type ServiceOptions } from '../input/service-options.ts'
import { action, type Invocation } from '../invocation.ts'
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
    .action(action(print))
}

async function print(
  invocation: Invocation,
  options: ServiceOptions,
): Promise<void> {
  const { serviceName, limit, maxStaleness, allowBrowsers = false, problemBase } = options
  // Imported here because every schema of the wire comes with it.
  const [{ createDocument }, { ROUTES }] = await Promise.all([
    import('../../core/openapi/document.ts'),
    import('../../core/routes/table.ts'),
  ])
  const document = createDocument(ROUTES, {
    names: nameService(serviceName),
    limits: { ...DEFAULT_LIMITS, ...limit },
    maxStalenessMs: maxStaleness,
    allowBrowsers,
    ...(problemBase !== undefined && { problemBase }),
    ...deploymentInfo(options),
  })
  await printResult(invocation, document, `${printableJson(JSON.stringify(document, null, 2))}\n`)
}
