/** What a server that is not the service, or is broken, may answer to a program of a partner. */
import type { ServerResponse } from 'node:http'

type Answer = (response: ServerResponse, elsewhere: string) => void

const json = { 'content-type': 'application/json' }
const html = { 'content-type': 'text/html' }
const send = (status: number, body: string, headers: Record<string, string> = json): Answer => {
  return (response) => void response.writeHead(status, headers).end(body)
}

/** Answers without a success: every program has to fail. */
export const FAILURES = {
  redirect: (response, elsewhere) => void response.writeHead(302, { location: elsewhere }).end(),
  page: send(502, '<html><title>Bad gateway</title>', html),
  unmodified: send(304, ''),
  later: send(503, '{"data":{"valid":true}}', { ...json, 'retry-after': '²' }),
  problem: send(400, '{"code":{"a":1},"detail":["x"],"request_id":null,"errors":"many"}'),
  errors: send(
    422,
    '{"code":"invalid_body","detail":"No.","request_id":"x","errors":[7,"x",{"pointer":["x"],"detail":1}]}',
  ),
  drip(response) {
    response.writeHead(200, json)
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  },
} satisfies Readonly<Record<string, Answer>>

/** Successes of another shape: every program that reads members has to fail. */
export const SHAPES = {
  site: send(200, '<!doctype html><title>A site</title>', html),
  nothing: send(200, ''),
  scalar: send(200, '"ok"'),
  list: send(200, '[{"data":[]}]'),
  nested: send(200, '['.repeat(100_000)),
  members: send(200, '{"status":"ok"}'),
  text: send(200, '{"data":"text","page":"two"}'),
  rows: send(200, '{"data":[null,{"name":7}],"page":{"has_more":true,"next_cursor":7}}', {
    ...json,
    etag: '"x"',
    link: '<http://[>; rel="next"',
  }),
} satisfies Readonly<Record<string, Answer>>
