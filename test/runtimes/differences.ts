/** What the parsers of Bun and Deno do differently from Node's: the table of docs/deploy.md. */
import type { Outcome } from '../contract/http/framing.ts'

/** A row: what is sent, the responses of Node, Deno and Bun, why, and what changes behind nginx or Caddy. */
export type Row = readonly [
  request: string,
  node: string,
  deno: string,
  bun: string,
  reason: string,
  behind: string,
]

interface Difference {
  readonly row: Row
  /** The cases that show it, with the outcomes that are not Node's. An error status is one without a body. */
  readonly cases: Readonly<Record<string, { readonly Deno?: Outcome; readonly Bun?: Outcome }>>
}

export const DIFFERENCES: readonly Difference[] = [
  {
    row: [
      'Malformed framing or header fields',
      '400 with a problem',
      '400 with a problem',
      '400 without a body',
      'Bun answers by itself what its parser rejects',
      'refused or repaired by the proxy',
    ],
    cases: {
      'two lengths': { Bun: [[400], 'closed'] },
      'a name that is no token': { Bun: [[400], 'closed'] },
      'no Host': { Bun: [[400], 'closed'] },
    },
  },
  {
    row: [
      'Another version of HTTP, or lines that end with a bare LF',
      '400 with a problem',
      '400 with a problem',
      '505 without a body',
      'Bun looks for `HTTP/1.1` or `HTTP/1.0` and CRLF',
      'repaired by the proxy',
    ],
    cases: {
      'HTTP/1.2': { Bun: [[505], 'closed'] },
      'bare LF': { Bun: [[505], 'closed'] },
    },
  },
  {
    row: [
      'A method that HTTP does not have',
      '400 with a problem',
      '400 with a problem',
      'connection closed',
      "Bun's list of methods is fixed",
      'passed on; for a closed connection, 502 of the proxy',
    ],
    cases: { 'no method that HTTP has': { Bun: [[], 'closed'] } },
  },
  {
    row: [
      'Empty lines before a request',
      'skipped',
      'skipped',
      '400 without a body',
      'RFC 9112 §2.2 only recommends to skip them',
      'skipped by nginx, refused by Caddy',
    ],
    cases: { 'empty lines before a request (RFC 9112 §2.2)': { Bun: [[400], 'closed'] } },
  },
  {
    row: [
      'Header fields of more than 16 KiB, or more than about 200',
      '431 with a problem over 32 KiB',
      '431 with a problem over 32 KiB',
      '431 without a body',
      "Bun's limits; `bun --max-http-header-size` raises the first",
      'nginx refuses fields of 8 KiB; both pass on the rest, and the 431',
    ],
    cases: {
      'headers of 17 KB': { Bun: [[431], 'closed'] },
      'headers at the limit': { Bun: [[431], 'closed'] },
      'a thousand headers': { Bun: [[431], 'closed'] },
    },
  },
  {
    row: [
      '`OPTIONS *`',
      '204 with `Allow`',
      '204 with `Allow`',
      '400 without a body',
      'Bun expects a path or a URL',
      'answered or refused by the proxy',
    ],
    cases: { 'asterisk form': { Bun: [[400], 'closed'] } },
  },
  {
    row: [
      'A byte over 7F in a target',
      '400 with a problem',
      '400 with a problem',
      '404 with a problem',
      'Bun percent-encodes it',
      'passed on by nginx; percent-encoded and refused by Caddy',
    ],
    cases: { 'a target with a high byte': { Bun: [['route_not_found'], 'kept'] } },
  },
  {
    row: [
      'Dot segments and backslashes in a target',
      '404 with a problem',
      '404 with a problem',
      'resolved: 200',
      'Bun parses the target as a URL',
      'passed on by nginx; Caddy resolves dot segments itself',
    ],
    cases: {
      'dot segments': { Bun: [[200], 'kept'] },
      'encoded dot segments': { Bun: [[200], 'kept'] },
      'a backslash in a target': { Bun: [[200], 'kept'] },
    },
  },
  {
    row: [
      'Trailers',
      'ignored; 431 with a problem over 128 KiB',
      'ignored: 200; 431 with a problem if one has 128 KiB',
      '200, then 400 without a body',
      'Deno limits each of them, Bun knows none',
      'removed by nginx; limited by Caddy',
    ],
    cases: {
      'chunks with a trailer': { Bun: [[200, 400], 'closed'] },
      'twenty thousand trailers': { Deno: [[200], 'kept'], Bun: [[200, 400], 'closed'] },
      'a trailer of 140 KB': { Bun: [[200, 400], 'closed'] },
    },
  },
  {
    row: [
      'A chunk extension of 1 MB',
      '413 with a problem',
      'ignored: 200',
      '413 without a body',
      'Deno has no limit for extensions',
      'removed by nginx, 502 of Caddy',
    ],
    cases: { 'a chunk extension of 1 MB': { Deno: [[200], 'kept'], Bun: [[413], 'closed'] } },
  },
  {
    row: [
      'A bare `Idempotency-Key` with `, ` in it',
      'accepted if sent once',
      'accepted if sent once',
      '400 with a problem: quote it',
      '`Headers` joins repeated fields in this way',
      'passed on',
    ],
    cases: { 'a bare Idempotency-Key with a comma': { Bun: [['invalid_parameter'], 'kept'] } },
  },
  {
    row: [
      '`Connection: Upgrade`',
      'answered, then closed',
      'answered, then closed',
      'answered: 200',
      'What follows may be of another protocol (RFC 9110 §7.8); Bun reads it as HTTP',
      'removed by the proxy',
    ],
    cases: { 'an upgrade': { Bun: [[200], 'kept'] } },
  },
]
