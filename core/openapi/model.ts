/** The subset of OpenAPI 3.1 that the document uses. */
import type { ServiceNames } from '../http/headers.ts'
import type { Limit, Modules, ServicePolicyName } from '../model.ts'
import type { JsonSchema } from '../schemas/json-schema.ts'

/** Deployment details for the OpenAPI document and the reference page. All have defaults. */
export interface DeploymentInfo {
  /** Title of the document and of the reference page, default `Partner API`. */
  readonly title?: string
  /**
   * Logo on the reference page: a `data:` URL of a PNG, SVG, WebP or JPEG image, at most 45,000 characters (32 KiB).
   */
  readonly logo?: string
  /** URL of the terms of service. */
  readonly terms?: string
  /** Contact for users of the API. */
  readonly contact?: { readonly name?: string; readonly url?: string; readonly email?: string }
  /** URLs of the deployment, with the base path; default: the base path or `/`, relative to the document. */
  readonly servers?: readonly { readonly url: string; readonly description?: string }[]
}

export interface DocumentSettings extends DeploymentInfo {
  readonly names: ServiceNames
  /** The path below which the service is mounted, without a trailing slash; empty at the root of the origin. */
  readonly basePath: string
  /** Base of the `type` of problems, without a trailing slash. */
  readonly problemBase: string
  readonly limits: Readonly<Record<ServicePolicyName, Limit>>
  readonly maxStalenessMs: number
  readonly allowBrowsers: boolean
  /** The modules of the store, whose scopes routes may need. */
  readonly modules?: Modules
}

export type ByName<T> = Readonly<Record<string, T>>

/** Points into `components`. */
export interface Reference {
  readonly $ref: string
}

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

export interface HeaderObject {
  readonly description: string
  readonly schema: JsonSchema
  readonly required?: boolean
  readonly example?: unknown
}

export interface ExampleObject {
  readonly summary: string
  readonly value: unknown
}

export interface MediaTypeObject {
  readonly schema: JsonSchema
  readonly example?: unknown
  readonly examples?: ByName<ExampleObject | Reference>
}

export interface ResponseObject {
  readonly description: string
  readonly headers: ByName<HeaderObject | Reference>
  readonly content?: ByName<MediaTypeObject>
}

export type ResponsesObject = ByName<ResponseObject | Reference>
