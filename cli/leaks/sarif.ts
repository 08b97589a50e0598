/** The report of `leaks scan --format sarif`, for code scanning (OASIS SARIF 2.1.0). */
import { sep } from 'node:path'
import { printable } from '../output/text.ts'
import type { Leak, Scan } from './scan.ts'

const rule = {
  id: 'partner-api-key',
  name: 'PartnerApiKey',
  shortDescription: { text: 'A key of a partner API' },
  fullDescription: {
    text: 'The file contains a key of a partner API. Anyone who can read it can use the API as the partner.',
  },
  help: {
    text:
      'Have the operator revoke or rotate the key (partner-api keys revoke ID), then remove it from the file. The ' +
      'history of the repository still has it.',
  },
  defaultConfiguration: { level: 'error' },
  properties: { 'security-severity': '9.0', tags: ['security'] },
} as const

/** @param describe What is known about a key, for people. @param mayWork Whether it works, as far as is known. */
export function toSarif(
  { leaks, unreadable }: Scan,
  describe: (leak: Leak) => string,
  mayWork: (leak: Leak) => boolean,
): object {
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{
      tool: { driver: { name: 'partner-api leaks scan', rules: [rule] } },
      columnKind: 'unicodeCodePoints',
      invocations: [{
        executionSuccessful: unreadable.length === 0,
        toolExecutionNotifications: unreadable.map(({ path, reason }) => ({
          level: 'error',
          message: { text: printable(`${path} was not searched: ${reason}.`) },
        })),
      }],
      results: leaks.map((leak) => ({
        ruleId: rule.id,
        ruleIndex: 0,
        level: mayWork(leak) ? 'error' : 'note',
        message: { text: printable(describe(leak)) },
        locations: [{
          physicalLocation: {
            artifactLocation: { uri: toUri(leak) },
            region: {
              startLine: leak.line,
              startColumn: leak.column,
              endColumn: leak.column + leak.text.length,
            },
          },
        }],
        // Without the secret: the id is public.
        partialFingerprints: { 'partnerApiKeyId/v1': leak.id },
      })),
    }],
  }
}

/** A relative reference (RFC 3986 §4.2), as code scanning needs it, or the address of an absolute path. */
function toUri({ path, file }: Leak): string {
  const name = path === '-' ? file ?? 'standard-input' : path.replaceAll(sep, '/').replace(/^(?:\.\/)+/, '')
  const encoded = name.split('/').map(encodeURIComponent).join('/')
  return name.startsWith('/') ? `file://${encoded}` : encoded
}
