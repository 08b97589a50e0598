import type { Sha256 } from '../lib/digest.ts'
import type { Documents } from '../routes/route.ts'
import type { Route } from '../routes/route.ts'
import type { OpenApiDocument } from './document.ts'
import type { DocumentSettings } from './model.ts'

/**
 * The code that makes documents is loaded with the first of them: a service that is asked for none spends neither
 * memory nor time of its start on it.
 */
export function createDocuments(
  routes: readonly Route[],
  settings: DocumentSettings,
  sha256: Sha256,
): Documents {
  const describe = async (): Promise<OpenApiDocument> => {
    const { createDocument } = await import('./document.ts')
    return createDocument(routes, settings)
  }
  return {
    openapi: async () => ({ text: JSON.stringify(await describe()) }),
    async reference() {
      const { createReferencePage } = await import('./reference.ts')
      return createReferencePage(await describe(), settings, sha256)
    },
    async catalog() {
      const { createCatalog } = await import('./document.ts')
      return createCatalog(settings.names.name)
    },
  }
}
