/**
 * Makes the code samples of the reference page from the route table: `npm run samples` writes
 * `core/openapi/samples.json`. The page replaces the origin `https://api.example.com`, the partner slug `demo`, the path
 * prefix `/service/` and the key header `X-Service-Partner-Key` by those of the deployment. A deployment with another
 * name also adds `serviceName` to the settings of the client.
 */
import { writeFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { createDocument } from '../../core/openapi/document.ts'
import type { Language } from '../../core/openapi/html.ts'
import type { ParameterObject, ResponseObject } from '../../core/openapi/model.ts'
import type { OperationObject } from '../../core/openapi/operation.ts'
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
  /** Without a value: the key, from the environment. */
  readonly headers: readonly { readonly name: string; readonly value: string | undefined }[]
  /** By name. */
  readonly path: Readonly<Record<string, unknown>>
  /** By name, without the partner. */
  readonly query: Readonly<Record<string, unknown>>
  readonly body: Readonly<Record<string, unknown>> | undefined
}

/** Optional parameters, and optional members of a body, that make a sample more useful. */
const usefulParameters = new Set(['q', 'limit', 'in_use'])
const usefulMembers = new Set(['company', 'country', 'consent_at'])

/** Seconds. */
const timeLimit = 10
/** The same for each repeat: with another body, it is refused. */
const idempotencyKey = 'form-1042'

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
  const shared: Readonly<Record<string, object>> = described.components.parameters
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
      ...(operation.security.length === 0 ? [] : [{ name: 'X-Service-Partner-Key', value: undefined }]),
      ...(body === undefined ? [] : [{ name: 'Content-Type', value: 'application/json' }]),
      ...parameters.filter(({ name }) => name === 'Idempotency-Key')
        .map(({ name }) => ({ name, value: idempotencyKey })),
    ],
    path: pathValues,
    query: Object.fromEntries(query.filter(([name]) => name !== 'partner')),
    body: body && Object.fromEntries(body),
  }
}

/** Every sample refuses redirects, which would send the key elsewhere, has a time limit and fails on a problem. */
function samplesOf(request: SampleRequest): Samples[string] {
  return {
    shell: shell(request),
    ...(request.operation.security.length > 0 && { client: client(request) }),
    fetch: javascript(request),
    php: php(request),
    python: python(request),
    go: go(request),
  }
}

function mediaTypeOf({ responses }: OperationObject): string {
  const [success] = Object.values(responses) as ResponseObject[]
  return Object.keys(success?.content ?? {}).join()
}

/** A literal of one entry on one line, or of several on a line each. */
function literal(open: string, entries: readonly string[], close: string): string {
  if (entries.length === 1) return `${open}${entries[0]}${close}`
  return `${open}\n${entries.map((entry) => `        ${entry},\n`).join('')}    ${close}`
}

function shell({ url, headers, body }: SampleRequest): string {
  return [
    `curl '${url}'`,
    `--fail-with-body --max-time ${timeLimit} --location --max-redirs 0`,
    ...headers.map(({ name, value }) =>
      value === undefined ? `--header "${name}: $PARTNER_API_KEY"` : `--header '${name}: ${value}'`
    ),
    ...(body === undefined ? [] : [`--data '${JSON.stringify(body, null, 2)}'`]),
  ].join(' \\\n  ')
}

function client({ operation, path, query, body, headers }: SampleRequest): string {
  const { partner: _, ...form } = body ?? {}
  const options = headers.some(({ value }) => value === idempotencyKey) ? { idempotencyKey } : {}
  const values = [
    ...Object.values(path),
    ...[query, form, options].filter((one) => Object.keys(one).length > 0),
  ]
  const isRotation = operation.operationId === 'rotateKey'
  const args = isRotation
    ? [`{\n  store: (key) => writeFile('partner.key', key, { mode: 0o600 })\n}`]
    : values.map((value) => inspect(value))
  const call = `client.${operation.operationId}(${args.join(', ')})`
  const isPaged = operation.parameters.some((one) => 'name' in one && one.name === 'cursor')
  return `${
    isRotation ? "import { writeFile } from 'node:fs/promises'\n" : ''
  }import { createPartnerClient } from 'partner-api-client'

const client = createPartnerClient({
  url: 'https://api.example.com',
  partner: 'demo',
  key: process.env.PARTNER_API_KEY,
})

${isPaged ? `for await (const row of ${call}) {\n  console.log(row)\n}` : `console.log(await ${call})`}`
}

function javascript({ operation, method, url, headers, body }: SampleRequest): string {
  const read = mediaTypeOf(operation).endsWith('json') ? 'json' : 'text'
  const fields = headers.map(({ name, value }) =>
    `'${name}': ${value === undefined ? 'process.env.PARTNER_API_KEY' : `'${value}'`}`
  )
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    ...(fields.length === 0 ? [] : [`headers: {\n    ${fields.join(',\n    ')}\n  }`]),
    ...(body === undefined
      ? []
      : [`body: JSON.stringify(${inspect(body, { compact: false }).replaceAll('\n', '\n  ')})`]),
    `redirect: 'error'`,
    `signal: AbortSignal.timeout(${timeLimit}_000)`,
  ]
  return `const response = await fetch('${url}', {
  ${options.join(',\n  ')}
})

if (!response.ok) throw new Error(\`\${response.status}: \${await response.text()}\`)
console.log(await response.${read}())`
}

function php({ url, headers, body }: SampleRequest): string {
  const fields = headers.map(({ name, value }) =>
    value === undefined ? `'${name}: ' . getenv('PARTNER_API_KEY')` : `'${name}: ${value}'`
  )
  const members = Object.entries(body ?? {}).map(([name, value]) => `'${name}' => '${value}'`)
  const options = [
    'RETURNTRANSFER => true',
    `TIMEOUT => ${timeLimit}`,
    'FOLLOWLOCATION => false',
    ...(fields.length === 0 ? [] : [`HTTPHEADER => ${literal('[', fields, ']')}`]),
    ...(body === undefined ? [] : [`POSTFIELDS => json_encode(${literal('[', members, ']')})`]),
  ]
  return `<?php

$ch = curl_init('${url}');
curl_setopt_array($ch, [
${options.map((option) => `    CURLOPT_${option},\n`).join('')}]);
$response = curl_exec($ch);
$status = curl_getinfo($ch, CURLINFO_RESPONSE_CODE);
if ($response === false || $status < 200 || $status > 299) {
    throw new RuntimeException("$status: " . ($response ?: curl_error($ch)));
}
echo $response;`
}

function python({ url, headers, body }: SampleRequest): string {
  const fields = headers.map(({ name, value }) =>
    `"${name}": ${value === undefined ? 'os.environ["PARTNER_API_KEY"]' : `"${value}"`}`
  )
  const members = Object.entries(body ?? {}).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`)
  const values = [
    `"${url}"`,
    ...(fields.length === 0 ? [] : [`headers=${literal('{', fields, '}')}`]),
    ...(body === undefined ? [] : [`data=json.dumps(${literal('{', members, '}')}).encode()`]),
  ]
  const modules = [...(body ? ['json'] : []), ...(fields.length === 0 ? [] : ['os']), 'sys']
  return `${modules.map((name) => `import ${name}\n`).join('')}from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener


class NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


request = Request(
${values.map((value) => `    ${value},\n`).join('')})
try:
    with build_opener(NoRedirects).open(request, timeout=${timeLimit}) as response:
        print(response.read().decode())
except HTTPError as error:
    sys.exit(f"{error.code}: {error.read().decode()}")`
}

function go({ method, url, headers, body }: SampleRequest): string {
  const packages = [
    'fmt',
    'io',
    'log',
    'net/http',
    ...(headers.length > 0 ? ['os'] : []),
    ...(body ? ['strings'] : []),
    'time',
  ]
  const failure = '\tif err != nil {\n\t\tlog.Fatal(err)\n\t}'
  const payload = body && `\tpayload := strings.NewReader(\`${JSON.stringify(body, null, 2)}\`)\n`
  return `package main

import (
${packages.map((name) => `\t"${name}"\n`).join('')})

func main() {
	client := http.Client{Timeout: ${timeLimit} * time.Second}
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	url := "${url}"
${payload ?? ''}	req, err := http.NewRequest("${method}", url, ${body ? 'payload' : 'nil'})
${failure}
${
    headers.map(({ name, value }) =>
      `\treq.Header.Set("${name}", ${value === undefined ? 'os.Getenv("PARTNER_API_KEY")' : `"${value}"`})\n`
    ).join('')
  }
	res, err := client.Do(req)
${failure}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
${failure}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		log.Fatalf("%s: %s", res.Status, body)
	}
	fmt.Println(string(body))
}`
}

if (import.meta.main) writeFileSync(SAMPLES_FILE, formatSamples(createSamples()))
