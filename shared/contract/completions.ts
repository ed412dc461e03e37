import { z } from 'zod'
import { endpoint, MEGABYTE } from './endpoint.js'
import { toolDefinition } from './tools.js'

/** OpenAI's messages; what the gateway does not know goes to the provider as it is. */
const message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
  cache_control: z.object({ type: z.literal('ephemeral') }).nullish(),
})

const anyObject = z.record(z.string(), z.unknown())
const wholeFromOne = z.number().int().min(1)

/**
 * A model call (spec 3, completions). The proxy answers it and reads the body by itself (`proxy/chat/parse.ts`): this
 * value is for readers of the OpenAPI document and for typed clients.
 */
export const createCompletion = endpoint({
  method: 'POST',
  path: '/gateway/chat/completions',
  summary:
    'An OpenAI-compatible chat completion. Fields that are not listed go to the provider unchanged. With stream: true the answer is text/event-stream.',
  group: 'completions',
  access: 'completion',
  bodyLimit: 10 * MEGABYTE,
  body: z.looseObject({
    /** The publicName of a model; may be left out with a `prompt` whose version is bound to one. */
    model: z.string().optional(),
    /** Left out with `prompt`. */
    messages: z.array(message).min(1).optional(),
    max_tokens: wholeFromOne.nullish(),
    max_completion_tokens: wholeFromOne.nullish(),
    n: wholeFromOne.nullish(),
    stream: z.boolean().nullish(),
    stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
    tools: z.array(z.union([toolDefinition, z.looseObject({ type: z.string() })])).nullish(),
    prompt: z
      .object({ name: z.string(), alias: z.string().default('production'), variables: anyObject.default({}) })
      .nullish(),
    tool_refs: z
      .array(z.object({ name: z.string(), alias: z.string().nullish(), version: wholeFromOne.nullish() }))
      .max(128)
      .nullish(),
    prompt_version_id: z.string().nullish(),
    variables: anyObject.nullish(),
    trace: z
      .object({
        traceId: z.uuid(),
        parentSpanId: z.string(),
        sessionId: z.string(),
        capturePayloads: z.boolean(),
        name: z.string(),
        nameIfUnset: z.string(),
        tags: z.array(z.string()),
        metadata: anyObject,
      })
      .partial()
      .nullish(),
    span: z
      .object({ name: z.string(), tags: z.array(z.string()), metadata: anyObject })
      .partial()
      .nullish(),
  }),
  response: z.looseObject({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.number().int(),
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.number().int(),
        message: z.looseObject({
          role: z.literal('assistant'),
          content: z.string().nullable(),
          tool_calls: z
            .array(
              z.looseObject({
                id: z.string(),
                type: z.string(),
                function: z.object({ name: z.string(), arguments: z.string() }).optional(),
              }),
            )
            .optional(),
        }),
        finish_reason: z.string().nullable(),
      }),
    ),
    usage: z
      .looseObject({
        prompt_tokens: z.number().int(),
        completion_tokens: z.number().int(),
        total_tokens: z.number().int(),
        /** Part of prompt_tokens. */
        cached_tokens: z.number().int().optional(),
      })
      .optional(),
  }),
})
