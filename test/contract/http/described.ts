/** Compares responses with the OpenAPI document of their service: status, media type, fields and body. */
import type { OpenApiDocument } from '../../../core/openapi/document.ts'
import type { HeaderObject, ResponseObject } from '../../../core/openapi/model.ts'
import { resolve, validatorFor } from '../../support/openapi-schemas.ts'
import type { Deploy, Service, TestResponse } from './service.ts'

type Operation = NonNullable<ReturnType<typeof operationFor>[1]>

/** Fields of any HTTP response, which OpenAPI omits. */
const ofHttp = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding']

/** Deploys services whose responses have to be as described. @param kinds Gets each kind of response that was seen. */
export function asDescribed(deploy: Deploy, kinds: Set<string>): Deploy {
  const documents = new Map<string, Promise<OpenApiDocument>>()
  return (settings, body) =>
    deploy(settings, async (service) => {
      const name = JSON.stringify(settings)
      const find = async ({ send, root }: Service) =>
        (await send({ target: `${root}/openapi.json` })).json as OpenApiDocument
      await body({
        ...service,
        async send(request) {
          const response = await service.send(request)
          const { method = 'GET', target } = request
          if (!/^(?:GET|POST|PUT|PATCH|DELETE)$/.test(method)) return response
          if (!documents.has(name)) documents.set(name, find(service))
          const described = await documents.get(name)!
          const { basePath = '' } = settings
          if (!target.startsWith(`${basePath}/`)) return response
          const [template, operation] = operationFor(described, method, target.slice(basePath.length))
          if (operation === undefined) return response
          kinds.add(
            `${method} ${template} ${
              response.status < 400 ? response.status : response.json?.code ?? 'page'
            }`,
          )
          const found = mismatches(response, operation, described)
          if (found.length === 0) return response
          throw new Error(`${method} ${target.slice(0, 200)} is not as described: ${found.join('; ')}`)
        },
      })
    })
}

/** The operation of a target, and its path; a fixed path comes first. */
function operationFor({ paths }: OpenApiDocument, method: string, target: string) {
  const [path = ''] = target.split('?')
  const template = Object.hasOwn(paths, path)
    ? path
    : Object.keys(paths).find((one) => new RegExp(`^${one.replace(/\{\w+\}/g, '[^/]+')}$`).test(path)) ?? ''
  return [template, paths[template]?.[method.toLowerCase() as 'get' | 'post']] as const
}

function mismatches(
  { status, headers: fields, body, text, json }: TestResponse,
  operation: Operation,
  described: OpenApiDocument,
): string[] {
  const found = operation.responses[String(status)]
  if (found === undefined) return [`${status} is not described: ${text}`]
  const validate = validatorFor(described)
  const { headers, content } = resolve<ResponseObject>(found as ResponseObject, described)
  const wrong: string[] = []
  for (const [name, reference] of Object.entries(headers)) {
    const { schema, required, example } = resolve<HeaderObject>(reference, described)
    const value = fields.get(name.toLowerCase())
    if (value === undefined) {
      if (required === true) wrong.push(`no ${name}`)
      continue
    }
    if (example !== undefined && !isLike(name, value, String(example))) {
      wrong.push(`${name}: ${value} is not like the example ${example}`)
    }
    const read = schema.type === 'integer' ? Number(value) : value
    wrong.push(...validate(schema, read).map((one) => name + one))
  }
  const names = [...ofHttp, ...Object.keys(headers).map((name) => name.toLowerCase())]
  for (const name of fields.keys()) if (!names.includes(name)) wrong.push(`${name} is not described`)
  if (body.length === 0) return wrong
  const [type = ''] = (fields.get('content-type') ?? '').split(';')
  const media = content?.[type]
  if (media === undefined) return [...wrong, `${type} is not described`]
  wrong.push(...validate(media.schema, type.endsWith('json') ? json : text))
  if (json !== undefined && status >= 400 && media.examples?.[json.code] === undefined) {
    wrong.push(`no ${json.code}`)
  }
  return wrong
}

/** Whether a value is an example, but for what differs from request to request. */
function isLike(name: string, value: string, example: string): boolean {
  if (['X-Request-Id', 'ETag', 'Retry-After'].includes(name)) return true
  // Only a request that carried a key gets the error code.
  if (name === 'WWW-Authenticate' && value === `${example}, error="invalid_token"`) return true
  const [found, shown] = [value, example].map((text) =>
    name === 'Link' ? text.replace(/\?[^>]*(?=>; rel="next")/, '?') : name.startsWith('RateLimit')
      // Keys and partners have limits of their own, and a partner has quotas that its keys share.
      ? text.replace(/(?<==)\d+/g, '1').replace(/, "(?:partner|month)";[^,]*/g, '')
      : text
  )
  return found === shown
}
