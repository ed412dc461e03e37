import { z } from 'zod'

/** An answer in OpenAI's error format; `code` and `type` are what OpenAI sends for the same mistake. */
export class DemoError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null,
    readonly param: string | null = null,
  ) {
    super(message)
    this.name = 'DemoError'
  }
}

const part = z.looseObject({ type: z.string(), text: z.string().optional() })
const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z.union([z.string(), z.array(part)]).nullish(),
})
const tool = z.looseObject({
  type: z.literal('function'),
  function: z.looseObject({ name: z.string(), parameters: z.looseObject({}).optional() }),
})
const tokens = z.number().int().min(1).nullish()

const schema = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  max_tokens: tokens,
  max_completion_tokens: tokens,
  n: z.number().int().min(1).max(8).nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  tools: z.array(tool).max(128).nullish(),
  tool_choice: z
    .union([
      z.enum(['none', 'auto', 'required']),
      z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
    ])
    .nullish(),
  response_format: z
    .looseObject({
      type: z.enum(['text', 'json_object', 'json_schema']),
      json_schema: z.looseObject({ schema: z.looseObject({}).optional() }).optional(),
    })
    .nullish(),
})

export type DemoRequest = z.output<typeof schema>
export type DemoMessage = z.output<typeof message>
export type DemoTool = z.output<typeof tool>

/** @throws DemoError 400 with OpenAI's wording for a missing parameter, a wrong type and a value out of range. */
export function readRequest(body: unknown): DemoRequest {
  const result = schema.safeParse(body ?? {}, {
    error: issue => (issue.code === 'invalid_type' && issue.input === undefined ? MISSING : undefined),
  })
  if (!result.success) throw invalid(result.error.issues[0])
  const { tools, tool_choice: choice } = result.data
  if (choice && choice !== 'none' && !tools?.length) {
    throw new DemoError(400, "'tool_choice' is only allowed when 'tools' are specified.", null, 'tool_choice')
  }
  if (typeof choice === 'object' && !tools?.some(each => each.function.name === choice?.function.name)) {
    const problem = `Tool choice '${choice?.function.name}' not found in 'tools' parameter.`
    throw new DemoError(400, problem, null, 'tool_choice')
  }
  return result.data
}

const MISSING = 'missing'

function invalid(issue: z.core.$ZodIssue | undefined): DemoError {
  const param = path(issue?.path ?? [])
  if (issue?.message === MISSING) {
    return new DemoError(400, `Missing required parameter: '${param}'.`, 'missing_required_parameter', param)
  }
  if (issue?.code === 'invalid_type') {
    return new DemoError(400, `Invalid type for '${param}': ${issue.message}.`, 'invalid_type', param)
  }
  return new DemoError(
    400,
    `Invalid value for '${param}': ${issue?.message ?? 'not allowed'}.`,
    'invalid_value',
    param,
  )
}

/** `messages[0].role`, as OpenAI writes it. */
const path = (keys: readonly PropertyKey[]) =>
  keys
    .map((key, at) => (typeof key === 'number' ? `[${key}]` : `${at > 0 ? '.' : ''}${String(key)}`))
    .join('')

/** The text of a message, its image and audio parts left out. */
export function textOf({ content }: DemoMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).map(each => each.text ?? '').join('')
}
