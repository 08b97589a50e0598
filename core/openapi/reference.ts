import type { Sha256 } from '../digest.ts'
import type { Publication } from '../routes/route.ts'
import type { DocumentSettings, OpenApiDocument } from './model.ts'
export function createReferencePage(_d: OpenApiDocument, _s: DocumentSettings, _h: Sha256): Publication {
  return { text: '' }
}
