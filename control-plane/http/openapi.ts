import { z } from 'zod'
import type { Access, Endpoint } from '../../shared/contract/endpoint.js'
import { servedPath } from './route.js'

type Json = Record<string, unknown>

/** Which credentials an access takes, as OpenAPI's alternatives. */
const security: Record<Access, Json[]> = {
  public: [],
  member: [{ session: [] }, { apiKey: [] }],
  person: [{ session: [] }, { apiKey: [] }],
  writer: [{ session: [] }, { apiKey: [] }],
  manager: [{ session: [] }, { apiKey: [] }],
  owner: [{ session: [] }, { apiKey: [] }],
  session: [{ session: [] }],
  'session-manager': [{ session: [] }],
  ingest: [{ session: [] }, { apiKey: [] }, { virtualKey: [] }],
  completion: [{ virtualKey: [] }, { apiKey: [] }, { session: [] }],
  'model-list': [{ session: [] }, { apiKey: [] }, { virtualKey: [] }],
  internal: [],
}

/** Said in words where a scheme cannot say it. */
const roleNote: Partial<Record<Access, string>> = {
  person: 'A team-scoped key is refused: it carries no user identity.',
  writer: 'Needs the role owner, admin or editor.',
  manager: 'Needs the role owner or admin.',
  owner: 'Needs the role owner.',
  session: 'Session only.',
  'session-manager': 'Session only; needs the role owner or admin.',
  completion: 'A virtual key, a team-scoped key, or a person with the role owner, admin or editor.',
}

/** The OpenAPI 3.1 document of all public endpoints; internal ones are left out. */
export function openApiDocument(endpoints: readonly Endpoint[], serverUrl: string): Json {
  const paths: Record<string, Json> = {}
  for (const endpoint of endpoints) {
    if (endpoint.access === 'internal') continue
    const path = servedPath(endpoint).replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'agh', version: '1', description: 'agh: an LLM gateway and its control plane.' },
    servers: [{ url: serverUrl }],
    tags: [...new Set(endpoints.filter(isPublic).map(endpoint => endpoint.group))].map(name => ({ name })),
    paths,
    components: {
      securitySchemes: {
        session: { type: 'apiKey', in: 'cookie', name: 'agh_session', description: 'A dashboard session.' },
        apiKey: { type: 'http', scheme: 'bearer', description: 'A personal or team-scoped API key.' },
        virtualKey: { type: 'http', scheme: 'bearer', description: 'A virtual key of the gateway.' },
      },
      schemas: { Error: errorSchema },
    },
  }
}

const isPublic = (endpoint: Endpoint) => endpoint.access !== 'internal'

const errorSchema: Json = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'string' }, message: { type: 'string' } },
    },
  },
}

function operation(endpoint: Endpoint): Json {
  const note = roleNote[endpoint.access]
  return {
    operationId: operationId(endpoint),
    summary: endpoint.summary,
    ...(note !== undefined && { description: note }),
    tags: [endpoint.group],
    security: security[endpoint.access],
    parameters: [...parameters('path', endpoint.params), ...parameters('query', endpoint.query)],
    ...(endpoint.body !== undefined && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schemaOf(endpoint.body, 'input') } },
      },
    }),
    responses: {
      [endpoint.status]: {
        description: 'Success.',
        ...(endpoint.response !== undefined && {
          content: { 'application/json': { schema: schemaOf(endpoint.response, 'output') } },
        }),
      },
      default: {
        description: 'An error.',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  }
}

/** `GET /teams/:id/members` is `getTeamsByIdMembers`: stable, and unique because method and path are. */
function operationId({ method, path }: Endpoint): string {
  const words = path
    .split('/')
    .flatMap(part => (part.startsWith(':') ? ['by', part.slice(1)] : part.split(/[^A-Za-z0-9]+/)))
  const name = words.filter(word => word !== '').map(word => word.charAt(0).toUpperCase() + word.slice(1))
  return method.toLowerCase() + name.join('')
}

function parameters(place: 'path' | 'query', schema: z.ZodObject | undefined): Json[] {
  if (schema === undefined) return []
  return Object.entries(schema.shape).map(([name, field]) => ({
    name,
    in: place,
    required: place === 'path' || !(field as z.ZodType).safeParse(undefined).success,
    schema: schemaOf(field as z.ZodType, 'input'),
  }))
}

/** What JSON Schema cannot say (a transform's own check) is left open. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}
