import type { z } from 'zod'

/**
 * Who may call an endpoint (spec 1, Authentication). One value, read by the server's check, the OpenAPI document and
 * the test that walks all endpoints and all roles.
 *
 * - `public`: no credential.
 * - `member`: session, personal or team-scoped API key, any role.
 * - `person`: a user with any role; a team-scoped key is refused, it carries no user identity.
 * - `writer`: owner, admin or editor. `manager`: owner or admin. `owner`: owner.
 * - `session`: a signed-in session, any role. `session-manager`: session only, owner or admin.
 * - `ingest`: session, personal, team-scoped or virtual key; no role gate.
 * - `completion`: virtual or team-scoped key, or a person who is a writer.
 * - `model-list`: a member or a virtual key.
 * - `internal`: the other agh process, by its internal token.
 */
export type Access =
  | 'public'
  | 'member'
  | 'person'
  | 'writer'
  | 'manager'
  | 'owner'
  | 'session'
  | 'session-manager'
  | 'ingest'
  | 'completion'
  | 'model-list'
  | 'internal'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

type ObjectSchema = z.ZodObject
type AnySchema = z.ZodType

/** One endpoint of the HTTP API, declared once: the server, the OpenAPI document, the tests and the typed client read it. */
export interface Endpoint<
  Params extends ObjectSchema | undefined = ObjectSchema | undefined,
  Query extends ObjectSchema | undefined = ObjectSchema | undefined,
  Body extends AnySchema | undefined = AnySchema | undefined,
  Response extends AnySchema | undefined = AnySchema | undefined,
> {
  method: Method
  /** Under `/api/v1`, with `:name` parameters. Internal endpoints start at the origin. */
  path: string
  summary: string
  /** The tag of the OpenAPI document. */
  group: string
  access: Access
  params: Params
  query: Query
  body: Body
  /** The status of success. */
  status: number
  /** Undefined: no body (204) or a body that is not JSON. */
  response: Response
  /** Bytes; default 1 MB (spec 4, section 2). */
  bodyLimit: number
}

interface EndpointInput<P, Q, B, R> {
  method: Method
  path: string
  summary: string
  group: string
  access: Access
  params?: P
  query?: Q
  body?: B
  status?: number
  response?: R
  bodyLimit?: number
}

export const MEGABYTE = 1024 * 1024

/** Declares an endpoint; types are inferred from the schemas. `status` defaults to 200, or 204 without a response. */
export function endpoint<
  const P extends ObjectSchema | undefined = undefined,
  const Q extends ObjectSchema | undefined = undefined,
  const B extends AnySchema | undefined = undefined,
  const R extends AnySchema | undefined = undefined,
>(input: EndpointInput<P, Q, B, R>): Endpoint<P, Q, B, R> {
  return {
    method: input.method,
    path: input.path,
    summary: input.summary,
    group: input.group,
    access: input.access,
    params: input.params as P,
    query: input.query as Q,
    body: input.body as B,
    status: input.status ?? (input.response === undefined ? 204 : 200),
    response: input.response as R,
    bodyLimit: input.bodyLimit ?? MEGABYTE,
  }
}

type OutputOf<S> = S extends AnySchema ? z.output<S> : undefined
type InputOf<S> = S extends AnySchema ? z.input<S> : undefined

/** What a handler gets, already checked. */
export interface Checked<E extends Endpoint> {
  params: OutputOf<E['params']>
  query: OutputOf<E['query']>
  body: OutputOf<E['body']>
}

/** What a handler returns: the response before it is checked against the schema. */
export type Answer<E extends Endpoint> = E['response'] extends AnySchema ? z.input<E['response']> : undefined

/** What a caller sends, and gets. */
export type Call<E extends Endpoint> = {
  params?: InputOf<E['params']>
  query?: InputOf<E['query']>
  body?: InputOf<E['body']>
}
export type Result<E extends Endpoint> = OutputOf<E['response']>
