/** As much of OpenAPI 3.1 as the document uses, in plain values. */
import type { ServiceNames } from '../http/headers.ts'
import type { ProblemCode } from '../http/problem.ts'
import type { Limit, LimitName } from '../model.ts'

/** What the OpenAPI document says of a deployment. All have defaults. */
export interface DeploymentInfo {
  /** The title of the document and of the reference page, default `Partner API`. */
  readonly title?: string
  /** Whom users of the API write to. */
  readonly contact?: { readonly name?: string; readonly url?: string; readonly email?: string }
  /** Addresses of the deployment; default `/`, wherever the document came from. */
  readonly servers?: readonly { readonly url: string; readonly description?: string }[]
}

/** What differs from one service to another. */
export interface DocumentSettings extends DeploymentInfo {
  readonly names: ServiceNames
  /** Base of the `type` of problems, without a slash at its end. */
  readonly problemBase: string
  /** The quotas of the service. */
  readonly limits: Readonly<Record<LimitName, Limit>>
  /** Milliseconds within which a change binds. */
  readonly maxStalenessMs: number
  /** Whether requests of a browser's script are answered. */
  readonly allowBrowsers: boolean
}

/** A JSON Schema, or what stands in for one that several places share. */
export interface JsonSchema {
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly [keyword: string]: unknown
}

/** Something that stands in `components`. */
export interface Reference {
  readonly $ref: string
}

/** A parameter of an operation. */
export interface ParameterObject {
  readonly name: string
  readonly in: 'query' | 'path' | 'header'
  readonly description: string
  readonly required: boolean
  readonly style?: string
  readonly explode?: boolean
  readonly schema: JsonSchema
  readonly example?: unknown
}

/** A header field of a response. */
export interface HeaderObject {
  readonly description: string
  readonly required?: boolean
  readonly schema: JsonSchema
  readonly example?: unknown
}

/** An example of a body. */
export interface ExampleObject {
  readonly summary: string
  readonly value: unknown
}

/** A body of one media type. */
export interface MediaTypeObject {
  readonly schema: JsonSchema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, ExampleObject | Reference>>
}

/** The answers of one status. */
export interface ResponseObject {
  readonly description: string
  readonly headers: Readonly<Record<string, Reference>>
  readonly content?: Readonly<Record<string, MediaTypeObject>>
}

/** What can be asked of a path with one method. */
export interface OperationObject {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters: readonly (ParameterObject | Reference)[]
  readonly requestBody?: {
    readonly description: string
    readonly required: true
    readonly content: Readonly<Record<string, MediaTypeObject>>
  }
  readonly responses: Readonly<Record<string, ResponseObject | Reference>>
  /** Every problem that the operation can answer with. */
  readonly 'x-problems': readonly ProblemCode[]
}

/** An OpenAPI document. */
export interface OpenApiDocument {
  readonly openapi: '3.1.1'
  readonly info: {
    readonly title: string
    readonly summary: string
    readonly description: string
    readonly version: string
    readonly contact?: DeploymentInfo['contact'] & object
    readonly license: { readonly name: string; readonly identifier: string }
  }
  readonly servers: DeploymentInfo['servers'] & object
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Partial<Record<'get' | 'post', OperationObject>>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly responses: Readonly<Record<string, ResponseObject>>
    readonly parameters: Readonly<Record<string, ParameterObject>>
    readonly headers: Readonly<Record<string, HeaderObject>>
    readonly examples: Readonly<Record<string, ExampleObject>>
    readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>
  }
}
