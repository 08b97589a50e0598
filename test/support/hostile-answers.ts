/** What a server that is not the service, or is broken, may answer to a program of a partner. */
import type { ServerResponse } from 'node:http'

type Answer = (response: ServerResponse, elsewhere: string) => void

const sendText = (
  status: number,
  body: string,
  headers: Record<string, string> = {},
): Answer =>
(response) => {
  response.writeHead(status, {
    'content-type': 'application/json',
    ...headers,
  }).end(body)
}

/** Answers without a success: every program has to fail. */
export const FAILURES = {
  redirect: (response, elsewhere) => void response.writeHead(302, { location: elsewhere }).end(),
  page: sendText(502, '<html><title>Bad gateway</title>', {
    'content-type': 'text/html',
  }),
  unmodified: sendText(304, ''),
  later: sendText(503, '{"data":{"valid":true}}', { 'retry-after': '²' }),
  problem: sendText(
    400,
    '{"code":{"a":1},"detail":["x"],"request_id":null,"errors":"many"}',
  ),
  errors: sendText(
    422,
    '{"code":"invalid_body","detail":"No.","request_id":"x","errors":[7,"x",{"pointer":["x"],"detail":1}]}',
  ),
  drip(response) {
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  },
} satisfies Readonly<Record<string, Answer>>

/** Successes of another shape: every program that reads members has to fail. */
export const SHAPES = {
  site: sendText(200, '<!doctype html><title>A site</title>', {
    'content-type': 'text/html',
  }),
  nothing: sendText(200, ''),
  scalar: sendText(200, '"ok"'),
  list: sendText(200, '[{"data":[]}]'),
  nested: sendText(200, '['.repeat(100_000)),
  members: sendText(200, '{"status":"ok"}'),
  text: sendText(200, '{"data":"text","page":"two"}'),
  rows: sendText(
    200,
    '{"data":[null,{"name":7}],"page":{"has_more":true,"next_cursor":7}}',
    {
      etag: '"x"',
      link: '<http://[>; rel="next"',
    },
  ),
} satisfies Readonly<Record<string, Answer>>
