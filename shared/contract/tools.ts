import { z } from 'zod'
import { id, idParams, pageOf, pageQuery, timestamp } from './common.js'
import { endpoint } from './endpoint.js'
import { aliasName, nameOrDescription, versionAlias, versionNumber } from './versions.js'

export const executorTypes = ['client', 'http'] as const
export const toolVersionSources = ['code', 'dashboard', 'api'] as const
export type ToolVersionSource = (typeof toolVersionSources)[number]

const MAX_TEXT = 10_000
const MAX_TEMPLATE = 8_192
const MAX_PAIRS = 100
/** UTF-16 units of a transform's source. */
const MAX_SOURCE = 65_536

/** A header or query parameter of an http executor; its value may hold `{{arg.NAME}}` and `{{secret.NAME}}`. */
const pair = z.object({ name: z.string().min(1).max(256), value: z.string().max(MAX_TEMPLATE) })
const javaScript = z.string().min(1).max(MAX_SOURCE)
/** A JSON Schema; what it may hold is checked where schemas are used, apart from the event loop. */
const jsonSchema = z.record(z.string(), z.unknown())

const nothingMapped = z
  .union([z.record(z.string(), z.unknown()), z.array(z.unknown())])
  .refine(mapping => Object.keys(mapping).length === 0, {
    message: 'argMapping must be empty; use {{arg.NAME}} in query, header or url instead.',
  })

/** How agh itself calls a tool (spec 1, HTTP executor fields; spec 4, section 6). */
export const httpExecutor = z.object({
  type: z.literal('http'),
  /** A template: an absolute http or https URL, with references in its path and query only. */
  url: z.string().min(1).max(MAX_TEMPLATE),
  method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']),
  headers: z.array(pair).max(MAX_PAIRS).default([]),
  query: z.array(pair).max(MAX_PAIRS).default([]),
  argMapping: nothingMapped.optional(),
  bodyTemplate: z
    .never({ error: 'bodyTemplate is not supported; use requestTransform to build a body.' })
    .optional(),
  /** JavaScript that defines a function `transform({ url, method, headers, query, body, args })`. */
  requestTransform: javaScript.optional(),
  /** JavaScript: `transform({ status, headers, body })` returns the result. */
  responseTransform: javaScript.optional(),
  /** JavaScript: `transform({ status, headers, body })` returns null, or `{ type, message }` to declare a failure. */
  failureWhen: javaScript.optional(),
  /** What the transformed result must match. */
  resultSchema: jsonSchema.optional(),
  /** `error` makes a mismatch fail the call; otherwise it is a warning. */
  resultSchemaSeverity: z.enum(['error', 'warning']).optional(),
})
export type HttpExecutor = z.output<typeof httpExecutor>

/** `client`: whoever asked the model runs the tool itself. */
export const executor = z.discriminatedUnion(
  'type',
  [z.object({ type: z.literal('client') }), httpExecutor],
  {
    error: issue =>
      issue.code === 'invalid_union' && issue.input !== undefined
        ? "Invalid discriminator value. Expected 'client' | 'http'"
        : undefined,
  },
)
export type Executor = z.output<typeof executor>

const name = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, { message: 'A tool’s name must match ^[a-zA-Z0-9_-]{1,64}$.' })
const description = z.string().max(MAX_TEXT).nullable().optional()

/** Spec 1, tool. Everything after `createdAt` is computed when it is read. */
export const tool = z.object({
  id,
  teamId: id,
  name: z.string(),
  description: z.string().nullable(),
  createdBy: id.nullable(),
  createdAt: timestamp,
  /** Whether a `production` alias points at a version. */
  callable: z.boolean(),
  versionCount: z.number().int(),
  latestVersionNumber: z.number().int().nullable(),
  /** Of the version that `production` serves. */
  executorType: z.enum(executorTypes).nullable(),
  /** `production` first. */
  aliases: z.array(z.object({ alias: z.string(), versionNumber: z.number().int() })),
})

/** Spec 1, tool version, as lists show it. */
export const toolVersionRow = z.object({
  id,
  toolId: id,
  versionNumber: z.number().int(),
  description: z.string().nullable(),
  changelog: z.string().nullable(),
  source: z.enum(toolVersionSources),
  createdBy: id.nullable(),
  createdAt: timestamp,
})

/** Spec 1, tool version. */
export const toolVersion = toolVersionRow.extend({ parametersSchema: jsonSchema, executor })

/** What a commit answers. */
export const committedToolVersion = toolVersion.extend({
  /** On the first commit only. */
  aliases: z.array(versionAlias).optional(),
  /** Absent when there is nothing to warn about. */
  warnings: z.array(z.string()).optional(),
})

const group = 'tools'

export const createTool = endpoint({
  method: 'POST',
  path: '/tools',
  summary: 'Names a tool; it becomes callable with its first version.',
  group,
  access: 'writer',
  body: z.object({ name, description }),
  status: 201,
  response: tool,
})

export const listTools = endpoint({
  method: 'GET',
  path: '/tools',
  summary: 'The team’s tools, newest first; `search` looks for a part of the name.',
  group,
  access: 'member',
  query: pageQuery.extend({ search: z.string().max(256).optional() }),
  response: pageOf(tool),
})

export const readTool = endpoint({
  method: 'GET',
  path: '/tools/:id',
  summary: 'One tool.',
  group,
  access: 'member',
  params: idParams,
  response: tool,
})

export const updateTool = endpoint({
  method: 'PATCH',
  path: '/tools/:id',
  summary: 'Renames or describes a tool; null clears the description.',
  group,
  access: 'writer',
  params: idParams,
  body: z.object({ name: name.optional(), description }).refine(...nameOrDescription),
  response: tool,
})

export const deleteTool = endpoint({
  method: 'DELETE',
  path: '/tools/:id',
  summary: 'Hides a tool and releases its name; versions and aliases are kept.',
  group,
  access: 'writer',
  params: idParams,
})

export const commitToolVersion = endpoint({
  method: 'POST',
  path: '/tools/:id/versions',
  summary: 'Commits a version; the first one is served by production and staging at once.',
  group,
  access: 'writer',
  params: idParams,
  body: z.object({
    /** What the model reads; without it the model reads the tool’s own. */
    description,
    /** A note for the team; the model never sees it. */
    changelog: z.string().max(MAX_TEXT).nullable().optional(),
    parametersSchema: jsonSchema,
    executor,
    /** `code` is written by sync alone. */
    source: z.enum(['dashboard', 'api']).default('api'),
  }),
  status: 201,
  response: committedToolVersion,
})

export const listToolVersions = endpoint({
  method: 'GET',
  path: '/tools/:id/versions',
  summary: 'The tool’s versions, newest first, without schema and executor.',
  group,
  access: 'member',
  params: idParams,
  query: pageQuery,
  response: pageOf(toolVersionRow),
})

export const readToolVersion = endpoint({
  method: 'GET',
  path: '/tools/:id/versions/:version_number',
  summary: 'One version in full.',
  group,
  access: 'member',
  params: idParams.extend({ version_number: z.string() }),
  response: toolVersion,
})

export const promoteToolAlias = endpoint({
  method: 'POST',
  path: '/tools/:id/aliases/:alias/promote',
  summary: 'Points an alias at a version; makes the alias when it is new.',
  group,
  access: 'writer',
  params: idParams.extend({ alias: aliasName }),
  body: z.object({ versionNumber }),
  response: versionAlias,
})

export const syncTool = endpoint({
  method: 'POST',
  path: '/tools/:id/sync',
  summary:
    'Commits a version from code when it differs from the one that the alias serves, and moves the alias.',
  group,
  access: 'writer',
  params: idParams,
  body: z.object({
    description,
    parametersSchema: jsonSchema,
    executor,
    alias: aliasName.default('production'),
  }),
  response: z.object({
    /** false: the alias serves this already, nothing was written. */
    created: z.boolean(),
    version: committedToolVersion,
    /** What the alias served before it moved. */
    superseded: z.object({ versionNumber: z.number().int(), source: z.enum(toolVersionSources) }).nullable(),
  }),
})

const toolReference = z
  .object({
    name: z.string().min(1).max(64),
    alias: z.string().min(1).max(64).nullish(),
    version: versionNumber.nullish(),
  })
  .refine(ref => ref.alias == null || ref.version == null, {
    message: 'Provide at most one of alias or version.',
  })

/** An item of `tools` in a completions request. */
export const toolDefinition = z.object({
  type: z.literal('function'),
  function: z.object({
    name: z.string(),
    description: z.string().optional(),
    parameters: jsonSchema,
  }),
})

export const resolveTools = endpoint({
  method: 'POST',
  path: '/tools/resolve',
  summary:
    'What tool references stand for, in their order; a reference without alias and version means production.',
  group,
  access: 'member',
  body: z.object({ refs: z.array(toolReference).max(128) }),
  response: z.object({
    data: z.array(
      z.object({
        name: z.string(),
        toolId: id,
        versionNumber: z.number().int(),
        definition: toolDefinition,
        executorType: z.enum(executorTypes),
      }),
    ),
  }),
})
