import { z } from 'zod'
import { id, idParams } from './common.js'
import { endpoint } from './endpoint.js'
import { aliasName, versionNumber } from './versions.js'

/** Spec 1, prompt tool binding. */
export const promptToolBinding = z.object({
  toolId: id,
  toolName: z.string(),
  toolAlias: z.string().nullable(),
  pinnedVersionNumber: z.number().int().nullable(),
  /** The alias deliberately has no such tool: neither of the two above is set. */
  off: z.boolean(),
  /** The version that the binding stands for now; null: off, or the tool has lost the alias. */
  resolvedVersionNumber: z.number().int().nullable(),
  position: z.number().int(),
})

const NOT_ONE = 'Provide exactly one of tool_alias, pinned_version_number, or off.'

/** null is as good as absent, and so is `off: false`. */
const routeFields = {
  tool_alias: z.string().min(1).max(64).nullish(),
  pinned_version_number: versionNumber.nullish(),
}
const given = (...values: unknown[]): number =>
  values.filter(value => value !== undefined && value !== null && value !== false).length

const defaultRoute = z
  .object({ ...routeFields, off: z.unknown().optional() })
  .refine(body => body.off === undefined || body.off === null, {
    message: 'off is for the binding of one prompt alias; delete the default binding instead.',
    abort: true,
  })
  .refine(body => given(body.tool_alias, body.pinned_version_number) === 1, { message: NOT_ONE })

const aliasRoute = z
  .object({ ...routeFields, off: z.boolean().nullish() })
  .refine(body => given(body.tool_alias, body.pinned_version_number, body.off) === 1, { message: NOT_ONE })

const toolParams = idParams.extend({ toolId: z.string() })
const aliasParams = idParams.extend({ alias: z.string().min(1) })
const group = 'prompt tools'

export const listPromptTools = endpoint({
  method: 'GET',
  path: '/prompts/:id/tools',
  summary: 'The tools bound to a prompt: for every alias, and for each by itself.',
  group,
  access: 'member',
  params: idParams,
  response: z.object({
    data: z.object({
      default: z.array(promptToolBinding),
      /** Production, staging, then by name; names that have bindings and no version yet included. */
      aliases: z.array(
        z.object({
          alias: z.string(),
          versionNumber: z.number().int().nullable(),
          /** false: no rows of its own, the default ones apply. */
          customised: z.boolean(),
          bindings: z.array(promptToolBinding),
        }),
      ),
    }),
  }),
})

export const setDefaultPromptTool = endpoint({
  method: 'PUT',
  path: '/prompts/:id/tools/:toolId',
  summary:
    'Binds a tool for every alias of the prompt that has no row of its own for it. Holds for the next call.',
  group,
  access: 'writer',
  params: toolParams,
  body: defaultRoute,
  response: promptToolBinding,
})

export const removeDefaultPromptTool = endpoint({
  method: 'DELETE',
  path: '/prompts/:id/tools/:toolId',
  summary: 'Unbinds a tool from every alias that has no row of its own for it.',
  group,
  access: 'writer',
  params: toolParams,
})

export const setAliasPromptTool = endpoint({
  method: 'PUT',
  path: '/prompts/:id/aliases/:alias/tools/:toolId',
  summary: 'Binds a tool for one alias of the prompt, or turns it off there. The alias need not exist yet.',
  group,
  access: 'writer',
  params: toolParams.extend({ alias: aliasName }),
  body: aliasRoute,
  response: promptToolBinding,
})

export const removeAliasPromptTool = endpoint({
  method: 'DELETE',
  path: '/prompts/:id/aliases/:alias/tools/:toolId',
  summary: 'Removes one alias’s own row for a tool: the default binding applies again.',
  group,
  access: 'writer',
  params: toolParams.extend(aliasParams.shape),
})

export const removeAliasPromptTools = endpoint({
  method: 'DELETE',
  path: '/prompts/:id/aliases/:alias/tools',
  summary: 'Removes all rows of one alias: the default bindings apply again.',
  group,
  access: 'writer',
  params: aliasParams,
})
