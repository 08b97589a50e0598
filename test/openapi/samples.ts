/**
 * Makes the code samples of the reference page from the route table: `npm run samples` writes
 * `core/openapi/samples.json`. The page replaces the origin `https://api.example.com`, the partner slug `demo`, the path
 * prefix `/service/` and the key header `X-Service-Partner-Key` by those of the deployment. A deployment with another
 * name also adds `serviceName` to the settings of the client.
 */
import { writeFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { createDocument } from '../../core/openapi/document.ts'
import type { Language } from '../../core/openapi/samples.ts'
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
  /** Whether the sample reads all pages. */
  readonly isPaged: boolean
  /** Whether it may send the request again: it has an idempotency key. */
  readonly isRepeatable: boolean
}

/** Optional parameters, and optional members of a body, that make a sample more useful. */
const usefulParameters = new Set(['q', 'limit', 'in_use'])
const usefulMembers = new Set(['company', 'country', 'consent_at'])

/** Seconds. */
const timeLimit = 10
/** The same for each repeat: with another body, it is refused. */
const idempotencyKey = 'form-1042'

const described = await createDocument(ROUTES, resolveSettings({}))

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
      // One-time links respond with a page by default.
      ...(mediaTypesOf(operation).join() === 'application/json,text/html'
        ? [{ name: 'Accept', value: 'application/json' }]
        : []),
      ...parameters.filter(({ name }) => name === 'Idempotency-Key')
        .map(({ name }) => ({ name, value: idempotencyKey })),
    ],
    path: pathValues,
    query: Object.fromEntries(query.filter(([name]) => name !== 'partner')),
    body: body && Object.fromEntries(body),
    isPaged: parameters.some(({ name }) => name === 'cursor'),
    isRepeatable: parameters.some(({ name }) => name === 'Idempotency-Key'),
  }
}

/** Every sample refuses redirects, which would send the key elsewhere, has a time limit and fails on a problem. */
function samplesOf(request: SampleRequest): Samples[string] {
  const isOpen = request.operation.security.length === 0
  if (isOpen && request.operation.operationId !== 'health') return { shell: shell(request) }
  return {
    shell: shell(request),
    ...(!isOpen && { client: client(request) }),
    php: php(request),
    python: python(request),
  }
}

function mediaTypesOf({ responses }: OperationObject): readonly string[] {
  const [success] = Object.values(responses) as ResponseObject[]
  return Object.keys(success?.content ?? {})
}

/** A literal of one entry on one line, or of several on a line each. */
function literal(open: string, entries: readonly string[], close: string): string {
  if (entries.length === 1) return `${open}${entries[0]}${close}`
  return `${open}\n${entries.map((entry) => `        ${entry},\n`).join('')}    ${close}`
}

const indent = (text: string, margin: string): string => text.replace(/^(?=.)/gm, margin)

/** Attempts. */
const maxAttempts = 4

function shell({ method, url, headers, body, isPaged, isRepeatable }: SampleRequest): string {
  const command = [
    isPaged ? 'curl "$url${cursor:+&cursor=$cursor}"' : `curl '${url}'`,
    // The bodies of failed attempts would be printed, too.
    `${isRepeatable ? '--fail' : '--fail-with-body'} --max-time ${timeLimit} --location --max-redirs 0`,
    // It waits as long as Retry-After says.
    ...(isRepeatable ? [`--retry ${maxAttempts - 1} --retry-connrefused`] : []),
    // Without a body, curl sends a GET.
    ...(method === 'POST' && body === undefined ? ['--request POST'] : []),
    ...headers.map(({ name, value }) =>
      value === undefined ? `--header "${name}: $PARTNER_API_KEY"` : `--header '${name}: ${value}'`
    ),
    ...(body === undefined ? [] : [`--data '${JSON.stringify(body, null, 2)}'`]),
  ].join(' \\\n  ')
  if (!isPaged) return command
  return `url='${url}'
cursor=''
while [ "$cursor" != null ]; do
  page=$(${indent(command, '  ').trimStart()}) || { printf '%s\\n' "$page" >&2; exit 1; }
  printf '%s\\n' "$page" | jq --compact-output '.data[]'
  cursor=$(printf '%s\\n' "$page" | jq --raw-output .page.next_cursor)
done`
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

function php({ url, headers, body, isPaged, isRepeatable }: SampleRequest): string {
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
  const address = isPaged ? '$url . ($cursor === null ? \'\' : "&cursor=$cursor")' : `'${url}'`
  const call = `$ch = curl_init(${address});
curl_setopt_array($ch, [
${options.map((option) => `    CURLOPT_${option},\n`).join('')}]);
$response = curl_exec($ch);
$status = curl_getinfo($ch, CURLINFO_RESPONSE_CODE);
`
  const failure = `if ($response === false || $status < 200 || $status > 299) {
    throw new RuntimeException("$status: " . ($response ?: curl_error($ch)));
}
`
  if (isPaged) {
    return `<?php

$url = '${url}';
$cursor = null;
do {
${indent(call + failure, '    ')}    ['data' => $data, 'page' => $page] = json_decode($response, true);
    foreach ($data as $row) {
        echo json_encode($row), "\\n";
    }
    $cursor = $page['next_cursor'];
} while ($cursor !== null);`
  }
  if (isRepeatable) {
    return `<?php

for ($attempt = 1;; $attempt++) {
${indent(call, '    ')}    if ($response !== false && $status >= 200 && $status <= 299) {
        break;
    }
    $mayRepeat = $response === false || in_array($status, [409, 429]) || $status >= 500;
    if (!$mayRepeat || $attempt === ${maxAttempts}) {
        throw new RuntimeException("$status: " . ($response ?: curl_error($ch)));
    }
    // With the same Idempotency-Key, a repeat creates nothing.
    sleep(curl_getinfo($ch, CURLINFO_RETRY_AFTER) ?: 2 ** $attempt);
}
echo $response;`
  }
  return `<?php

${call}if ($response === false || $status < 200 || $status > 299) {
    throw new RuntimeException("$status: " . ($response ?: curl_error($ch)));
}
echo $response;`
}

function python({ url, headers, body, isPaged, isRepeatable }: SampleRequest): string {
  const fields = headers.map(({ name, value }) =>
    `"${name}": ${value === undefined ? 'os.environ["PARTNER_API_KEY"]' : `"${value}"`}`
  )
  const members = Object.entries(body ?? {}).map(([name, value]) => `"${name}": ${JSON.stringify(value)}`)
  const values = [
    isPaged ? 'url + cursor' : `"${url}"`,
    ...(fields.length === 0 ? [] : [`headers=${literal('{', fields, '}')}`]),
    ...(body === undefined ? [] : [`data=json.dumps(${literal('{', members, '}')}).encode()`]),
  ]
  const modules = [
    ...(body || isPaged ? ['json'] : []),
    ...(fields.length === 0 ? [] : ['os']),
    'sys',
    ...(isRepeatable ? ['time'] : []),
  ]
  const head = `${modules.map((name) => `import ${name}\n`).join('')}from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener


class NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


`
  const request = `request = Request(
${values.map((value) => `    ${value},\n`).join('')})
`
  if (isPaged) {
    return `${head}url = "${url}"
cursor = ""
while cursor is not None:
${indent(request, '    ')}    try:
        with build_opener(NoRedirects).open(request, timeout=${timeLimit}) as response:
            answer = json.load(response)
    except HTTPError as error:
        sys.exit(f"{error.code}: {error.read().decode()}")
    for row in answer["data"]:
        print(json.dumps(row))
    following = answer["page"]["next_cursor"]
    cursor = following and f"&cursor={following}"`
  }
  if (isRepeatable) {
    return `${head}${request}for attempt in range(1, ${maxAttempts + 1}):
    try:
        with build_opener(NoRedirects).open(request, timeout=${timeLimit}) as response:
            print(response.read().decode())
            break
    except OSError as error:
        status = getattr(error, "code", 503)
        if attempt == ${maxAttempts} or (status < 500 and status not in (409, 429)):
            sys.exit(f"{status}: {error.read().decode() if hasattr(error, 'code') else error}")
        # With the same Idempotency-Key, a repeat creates nothing.
        headers = getattr(error, "headers", None) or {}
        seconds = headers.get("Retry-After", "")
        time.sleep(int(seconds) if seconds.isdecimal() else 2**attempt)`
  }
  return `${head}${request}try:
    with build_opener(NoRedirects).open(request, timeout=${timeLimit}) as response:
        print(response.read().decode())
except HTTPError as error:
    sys.exit(f"{error.code}: {error.read().decode()}")`
}

if (import.meta.main) writeFileSync(SAMPLES_FILE, formatSamples(createSamples()))
