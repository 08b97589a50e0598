import type { ImportOptions, ImportReport, Store } from '../ports.ts'
import type { LineErrors } from './lines.ts'
import type { ContentKind } from './records.ts'

/** What an import did, or everything that kept it from being done. */
export type ImportOutcome = ImportReport | LineErrors

export function importContent(
  store: Pick<Store, 'importContent' | 'listIndustries' | 'listPartners'>,
  kind: ContentKind,
  lines: Iterable<string> | AsyncIterable<string>,
  options: ImportOptions,
): Promise<ImportOutcome> {
  throw new Error(`not yet ${store} ${kind} ${lines} ${options.now}`)
}
