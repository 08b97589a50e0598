/** What the service says about itself, made when somebody asks. */
import type { StaticDocument } from '../http/message.ts'
import type { Sha256 } from '../lib/digest.ts'
import type { Documents } from '../routes/context.ts'
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
    catalog: () => catalogOf(settings.names.name),
  }
}

/** References are relative to the catalog's own address: only the client knows the host name that it used. */
function catalogOf(name: string): StaticDocument {
  const catalog = '/.well-known/api-catalog'
  const linkset = [
    { anchor: catalog, item: [{ href: `/${name}` }] },
    {
      anchor: `/${name}`,
      'service-desc': [{ href: `/${name}/openapi.json`, type: 'application/json' }],
      'service-doc': [{ href: `/${name}/docs`, type: 'text/html', hreflang: ['en'] }],
      status: [{ href: `/${name}/health`, type: 'application/json' }],
    },
  ]
  return {
    text: JSON.stringify({ linkset }),
    // RFC 9727 §2: a HEAD has the relations of §3.
    headers: ['Link', `<${catalog}>; rel="api-catalog", </${name}>; rel="item"`],
  }
}
