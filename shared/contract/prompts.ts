import { z } from 'zod'
import { id, idParams, pageOf, pageQuery, timestamp } from './common.js'
import { endpoint } from './endpoint.js'
import { toolDefinition } from './tools.js'
import { aliasName, LONGEST_NAME, nameOrDescription, versionAlias, versionNumber } from './versions.js'

const MAX_DESCRIPTION = 10_000
const MAX_ROLE = 64
/** Of one version; what they may weigh together is the body's limit of 1 MB. */
const MAX_MESSAGES = 1_000

/** PostgreSQL's text cannot hold NUL; its json could, and no provider wants it. */
const text = z
  .string()
  .refine(value => !value.includes('\u0000'), { message: 'Text must not contain the NUL character.' })

const NOT_EPHEMERAL = "cache_control.type must be 'ephemeral'"

/** A message of a version. A field that it does not have is refused: dropping it would change what the model reads. */
const messageInput = z.strictObject({
  role: text.min(1).max(MAX_ROLE),
  /** A template in Jinja's syntax. */
  content: text,
  /** The gateway caches the prompt up to and including this message on Anthropic models. */
  cache_control: z
    .strictObject(
      { type: z.literal('ephemeral', { error: NOT_EPHEMERAL }) },
      { error: issue => (issue.code === 'invalid_type' ? NOT_EPHEMERAL : undefined) },
    )
    .optional(),
})

const message = z.object({
  role: z.string(),
  content: z.string(),
  cache_control: z.object({ type: z.literal('ephemeral') }).optional(),
})

const name = text.trim().min(1).max(LONGEST_NAME)
const description = text.max(MAX_DESCRIPTION).nullable().optional()

/** Spec 1, prompt: a container only; what a model reads is in its versions. */
export const prompt = z.object({
  id,
  name: z.string(),
  description: z.string().nullable(),
  teamId: id,
  createdBy: id.nullable(),
  createdAt: timestamp,
})

/** Spec 1, prompt version, as lists show it. */
export const promptVersionRow = z.object({
  id,
  promptId: id,
  versionNumber: z.number().int(),
  /** The names that the caller has to supply, derived from the messages. */
  variables: z.array(z.string()),
  createdBy: id.nullable(),
  createdAt: timestamp,
})

/** Spec 1, prompt version. */
export const promptVersion = promptVersionRow.extend({
  messages: z.array(message),
  /** The publicName, as of now, of the model that was bound; null: none, or it was taken out of the registry. */
  model: z.string().nullable(),
})

/** What became of one binding (spec 4, section 6, render). */
const toolResolution = z.object({
  toolId: id,
  toolName: z.string(),
  toolAlias: z.string().nullable(),
  pinnedVersionNumber: z.number().int().nullable(),
  resolvedVersionNumber: z.number().int().nullable(),
  status: z.enum(['attached', 'off', 'unresolved']),
  /** Why a tool is not attached; only of `unresolved`. */
  reason: z.string().optional(),
})
export type ToolResolution = z.output<typeof toolResolution>

const group = 'prompts'

export const createPrompt = endpoint({
  method: 'POST',
  path: '/prompts',
  summary: 'Names a prompt; its messages come with its versions.',
  group,
  access: 'writer',
  body: z.object({ name, description }),
  status: 201,
  response: prompt,
})

export const listPrompts = endpoint({
  method: 'GET',
  path: '/prompts',
  summary: 'The team’s prompts, newest first; `search` looks for a part of the name.',
  group,
  access: 'member',
  query: pageQuery.extend({ search: text.max(256).optional() }),
  response: pageOf(prompt.pick({ id: true, name: true, description: true, createdAt: true })),
})

export const findPromptByName = endpoint({
  method: 'GET',
  path: '/prompts/by-name/:name',
  summary: 'The newest prompt of a name.',
  group,
  access: 'member',
  params: z.object({ name: text }),
  response: prompt,
})

export const readPrompt = endpoint({
  method: 'GET',
  path: '/prompts/:id',
  summary: 'One prompt.',
  group,
  access: 'member',
  params: idParams,
  response: prompt,
})

export const updatePrompt = endpoint({
  method: 'PATCH',
  path: '/prompts/:id',
  summary: 'Renames or describes a prompt; null clears the description.',
  group,
  access: 'writer',
  params: idParams,
  body: z.object({ name: name.optional(), description }).refine(...nameOrDescription),
  response: prompt,
})

export const deletePrompt = endpoint({
  method: 'DELETE',
  path: '/prompts/:id',
  summary: 'Hides a prompt; its versions stay readable by their ids.',
  group,
  access: 'writer',
  params: idParams,
})

export const commitPromptVersion = endpoint({
  method: 'POST',
  path: '/prompts/:id/versions',
  summary: 'Commits a version; the first one is served by production and staging at once.',
  group,
  access: 'writer',
  params: idParams,
  body: z.object({
    messages: z.array(messageInput).min(1).max(MAX_MESSAGES),
    /** publicName of the model that calls use which name none. */
    model: z.string().nullable().optional(),
  }),
  status: 201,
  /** `aliases` on the first commit only. */
  response: promptVersion.extend({ aliases: z.array(versionAlias).optional() }),
})

export const listPromptVersions = endpoint({
  method: 'GET',
  path: '/prompts/:id/versions',
  summary: 'The prompt’s versions, newest first, without messages.',
  group,
  access: 'member',
  params: idParams,
  query: pageQuery,
  response: pageOf(promptVersionRow),
})

export const readPromptVersion = endpoint({
  method: 'GET',
  path: '/prompts/:id/versions/:version_number',
  summary: 'One version with its messages.',
  group,
  access: 'member',
  params: idParams.extend({ version_number: z.string() }),
  response: promptVersion,
})

export const findPromptVersion = endpoint({
  method: 'GET',
  path: '/prompt-versions/:versionId',
  summary: 'One version by its id, of a deleted prompt too, with the tools of the default bindings.',
  group,
  access: 'member',
  params: z.object({ versionId: z.string() }),
  response: z.object({
    promptId: id,
    promptName: z.string(),
    versionNumber: z.number().int(),
    messages: z.array(message),
    variables: z.array(z.string()),
    tools: z.array(toolDefinition),
    model: z.string().nullable(),
  }),
})

export const listPromptAliases = endpoint({
  method: 'GET',
  path: '/prompts/:id/aliases',
  summary: 'The prompt’s aliases: production, staging, then by name.',
  group,
  access: 'member',
  params: idParams,
  response: z.object({ data: z.array(versionAlias) }),
})

export const promotePromptAlias = endpoint({
  method: 'POST',
  path: '/prompts/:id/aliases/:alias/promote',
  summary: 'Points an alias at a version; makes the alias when it is new. Holds for the next call.',
  group,
  access: 'writer',
  params: idParams.extend({ alias: aliasName }),
  body: z.object({ versionNumber }),
  response: versionAlias,
})

export const deletePromptAlias = endpoint({
  method: 'DELETE',
  path: '/prompts/:id/aliases/:alias',
  summary: 'Removes an alias other than production; its tool bindings stay.',
  group,
  access: 'writer',
  params: idParams.extend({ alias: text }),
})

export const renderPromptVersion = endpoint({
  method: 'POST',
  path: '/prompts/:id/render',
  summary: 'The messages and tools that a call with this prompt would send.',
  group,
  access: 'member',
  params: idParams,
  body: z.object({
    /** Chooses the version, unless `versionNumber` does, and the tool bindings. Default: production. */
    alias: text.optional(),
    /** Chooses the version; without `alias` the default bindings apply. */
    versionNumber: versionNumber.optional(),
    variables: z.record(z.string(), z.unknown()).default({}),
  }),
  response: z.object({
    promptId: id,
    promptName: z.string(),
    versionId: id,
    versionNumber: z.number().int(),
    /** null: chosen by `versionNumber` alone. */
    alias: z.string().nullable(),
    model: z.string().nullable(),
    messages: z.array(message),
    tools: z.array(toolDefinition),
    toolResolutions: z.array(toolResolution),
  }),
})
