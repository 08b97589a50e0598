/**
 * Makes the code samples of the reference page from the route table: `npm run samples` writes
 * `core/openapi/samples.json`. The page replaces the origin `https://api.example.com`, the partner slug `demo`, the path
 * prefix `/service/` and the key header `X-Service-Partner-Key` by those of the deployment. A deployment with another
 * name also adds `serviceName` to the settings of the client.
 */
import { writeFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { goNative } from '@scalar/snippetz/plugins/go/native'
import { jsFetch } from '@scalar/snippetz/plugins/js/fetch'
import { phpCurl } from '@scalar/snippetz/plugins/php/curl'
import { pythonRequests } from '@scalar/snippetz/plugins/python/requests'
import { shellCurl } from '@scalar/snippetz/plugins/shell/curl'
import { createDocument } from '../../core/openapi/document.ts'
import type { Language } from '../../core/openapi/html.ts'
import type { OperationObject, ParameterObject, ResponseObject } from '../../core/openapi/model.ts'
import { ROUTES } from '../../core/routes/router.ts'
import { resolveSettings } from '../../core/settings.ts'

/** Samples by operation and language. Endpoints that need no key have no method in the client. */
export type Samples = Readonly<Record<string, Readonly<Partial<Record<Language, string>>>>>

export const SAMPLES_FILE: URL = new URL('../../core/openapi/samples.json', import.meta.url)

/** What a sample sends. */
interface SampleRequest {
  readonly operation: OperationObject
  readonly method: string
  readonly url: string
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  /** By name. */
  readonly path: Readonly<Record<string, unknown>>
  /** By name, without the partner. */
  readonly query: Readonly<Record<string, unknown>>
  readonly body: Readonly<Record<string, unknown>> | undefined
}

type HarRequest = Parameters<typeof shellCurl.generate>[0] & object

/** Optional parameters, and optional members of a body, that make a sample more useful. */
const usefulParameters = new Set(['q', 'limit', 'in_use'])
const usefulMembers = new Set(['company', 'country', 'consent_at'])

// The library knows only literals. These become expressions that read or make the value.
const KEY = 'PARTNER_API_KEY'
const IDEMPOTENCY_KEY = 'IDEMPOTENCY_KEY'

const described = createDocument(ROUTES, resolveSettings({}))

/** Makes all samples, in the order of the route table. */
export function createSamples(): Samples {
  const operations = Object.entries(described.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => requestOf(path, method.toUpperCase(), operation))
  )
  return Object.fromEntries(operations.map((request) => [request.operation.operationId, samplesOf(request)]))
}

/** The file, formatted as `deno fmt` does. */
export function formatSamples(samples: Samples): string {
  return `${JSON.stringify(samples, null, 2)}\n`
}

function requestOf(path: string, method: string, operation: OperationObject): SampleRequest {
  const shared = described.components.parameters
  const parameters = operation.parameters
    .map((one) => '$ref' in one ? shared[one.$ref.split('/').at(-1) ?? ''] as ParameterObject : one)
  const valuesIn = (place: ParameterObject['in']) =>
    parameters.filter((one) => one.in === place && (one.required || usefulParameters.has(one.name)))
      .map(({ name, example }) => [name, example] as const)
  const pathValues = Object.fromEntries(valuesIn('path'))
  const query = valuesIn('query')
  const { schema, example } = operation.requestBody?.content['application/json'] ?? {}
  const body = example === undefined
    ? undefined
    : Object.entries(example as object).filter(([name]) =>
      schema?.required?.includes(name) || usefulMembers.has(name)
    )
  const target = path.replace(/\{(\w+)\}/g, (_, name) => String(pathValues[name])) +
    (query.length === 0 ? '' : `?${new URLSearchParams(query.map(([name, value]) => [name, String(value)]))}`)
  return {
    operation,
    method,
    url: `https://api.example.com${target}`,
    headers: [
      ...(operation.security.length === 0 ? [] : [{ name: 'X-Service-Partner-Key', value: KEY }]),
      ...(body === undefined ? [] : [{ name: 'Content-Type', value: 'application/json' }]),
      ...parameters.filter(({ name }) => name === 'Idempotency-Key')
        .map(({ name }) => ({ name, value: IDEMPOTENCY_KEY })),
    ],
    path: pathValues,
    query: Object.fromEntries(query.filter(([name]) => name !== 'partner')),
    body: body && Object.fromEntries(body),
  }
}

function samplesOf(request: SampleRequest): Samples[string] {
  const { method, url, headers, body } = request
  const har: HarRequest = {
    method,
    url,
    httpVersion: 'HTTP/1.1',
    headers: [...headers],
    cookies: [],
    queryString: [],
    headersSize: -1,
    bodySize: -1,
    ...(body && { postData: { mimeType: 'application/json', text: JSON.stringify(body) } }),
  }
  return {
    shell: shell(shellCurl.generate(har)),
    ...(request.operation.security.length > 0 && { client: client(request) }),
    fetch: javascript(jsFetch.generate(har), mediaTypeOf(request.operation)),
    php: php(phpCurl.generate(har)),
    python: python(pythonRequests.generate(har)),
    go: go(goNative.generate(har)),
  }
}

function mediaTypeOf({ responses }: OperationObject): string {
  const [success] = Object.values(responses) as ResponseObject[]
  return Object.keys(success?.content ?? {}).join()
}

/** A list with one entry, which fits on a line. */
const shortList = /[{[]\n +(.*)\n *[}\]]/g

function shell(code: string): string {
  return code
    // Data implies it.
    .replace(/ \\\n +--request POST/, '')
    .replace(/'(.*)PARTNER_API_KEY'/, '"$1$PARTNER_API_KEY"')
    .replace(/'(.*)IDEMPOTENCY_KEY'/, '"$1signup-$(date +%s)"')
    .replace(/^(?= *["}])/gm, '  ')
    .replace(shortList, '{ $1 }')
}

function client({ operation, path, query, body }: SampleRequest): string {
  const { partner: _, ...form } = body ?? {}
  const values = [...Object.values(path), ...[query, form].filter((one) => Object.keys(one).length > 0)]
  const call = `client.${operation.operationId}(${values.map((value) => inspect(value)).join(', ')})`
  const isPaged = operation.parameters.some((one) => 'name' in one && one.name === 'cursor')
  return `import { createPartnerClient } from 'partner-api-client'

const client = createPartnerClient({
  url: 'https://api.example.com',
  partner: 'demo',
  key: process.env.PARTNER_API_KEY,
})

${isPaged ? `for await (const row of ${call}) {\n  console.log(row)\n}` : `console.log(await ${call})`}`
}

function javascript(code: string, mediaType: string): string {
  const read = mediaType.endsWith('json') ? 'json' : 'text'
  return `const response = await ${code}\n\nconsole.log(await response.${read}())`
    .replace(shortList, '{ $1 }')
    .replace(`'${KEY}'`, 'process.env.PARTNER_API_KEY')
    .replace(`'${IDEMPOTENCY_KEY}'`, 'crypto.randomUUID()')
}

function php(code: string): string {
  const request = code
    .slice(0, code.indexOf('curl_exec')).trimEnd()
    // In double quotes, PHP would replace variables.
    .replace(/curl_init\("(.*)"\)/, `curl_init('$1')`)
    .replace(/;\n*/, ';\ncurl_setopt($ch, CURLOPT_RETURNTRANSFER, true);\n').trimEnd()
    .replace(shortList, '[$1]')
    .replace(
      /HTTPHEADER, \[(.*, .*)\]/,
      (_, list) => `HTTPHEADER, [\n  ${list.replaceAll(', ', ',\n  ')},\n]`,
    )
    .replace(KEY + "'", "' . getenv('PARTNER_API_KEY')")
    .replace(IDEMPOTENCY_KEY + "'", "' . bin2hex(random_bytes(16))")
    .replace(/^ +/gm, '$&$&')
  return `<?php

${request}

$response = curl_exec($ch);
if ($response === false) {
    throw new RuntimeException(curl_error($ch));
}
echo $response;`
}

/** The arguments of `requests` are those of the standard library's `Request`, but for the body. */
function python(code: string): string {
  const request = code
    .replace(/^requests\.\w+/, 'request = Request')
    .replace(/\bjson=(\{.*\})/s, 'data=json.dumps($1).encode()')
    .replace(/(?<=^ {4}) +/gm, '$&$&')
    .replace(shortList, '{$1}')
    .replace(`"${KEY}"`, 'os.environ["PARTNER_API_KEY"]')
    .replace(`"${IDEMPOTENCY_KEY}"`, 'str(uuid.uuid4())')
  const modules = ['json', 'os', 'uuid'].filter((name) => request.includes(`${name}.`))
  // A problem is a response, too.
  return `${modules.map((name) => `import ${name}\n`).join('')}from urllib.error import HTTPError
from urllib.request import Request, urlopen

${request}

try:
    response = urlopen(request)
except HTTPError as error:
    response = error
print(response.read().decode())`
}

function go(code: string): string {
  const request = code
    .slice(code.indexOf('func main'), code.indexOf('\tbody, _')).trimEnd()
    .replaceAll('requestUrl', 'url')
    .replace(/(url := .*\n)\n/, '$1')
    .replace(/(payload := .*?\)\n)\n/s, '$1')
    .replace(/(\w+), _ := (.*)\n\n/g, '$1, err := $2\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n')
    .replace(/\n+(?=\tres,)/, '\n\n')
    .replace(shortList, '{$1}')
    .replaceAll('Header.Add', 'Header.Set')
    .replace(`"${KEY}"`, 'os.Getenv("PARTNER_API_KEY")')
    .replace(`"${IDEMPOTENCY_KEY}"`, 'fmt.Sprintf("signup-%d", time.Now().UnixNano())')
  const packages = ['fmt', 'io', 'log', 'net/http', 'os', 'strings', 'time']
    .filter((name) => ['io', 'os'].includes(name) || request.includes(`${name.replace('net/', '')}.`))
  return `package main

import (
${packages.map((name) => `\t"${name}"\n`).join('')})

${request}

	io.Copy(os.Stdout, res.Body)
}`
}

if (import.meta.main) writeFileSync(SAMPLES_FILE, formatSamples(createSamples()))
