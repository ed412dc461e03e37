import type { IncomingMessage } from 'node:http'
import { asList, asObject, asText, type Json } from '../../proxy/providers/wire-values.js'

export type FakeKind = 'openai' | 'anthropic' | 'google'

/** A request as far as the fake provider cares. */
export interface Asked {
  kind: FakeKind
  body: Json
  model: string
  stream: boolean
  wantsUsage: boolean
  maxTokens: number
  choices: number
  promptTokens: number
  lastUserText: string
  /** A tool to call, by name. */
  tool: string | null
  user: string | null
  /** What the vendor itself would refuse. */
  problem: { status: number; message: string } | null
}

export function askedOf(request: IncomingMessage, text: string): Asked {
  const url = request.url ?? ''
  const kind = url.includes('/messages') ? 'anthropic' : url.includes(':') ? 'google' : 'openai'
  const body = parsed(text)
  const asked = readers[kind](body, url)
  const lastUserText = lastUserTextOf(asList(body.contents ?? body.messages))
  return {
    ...asked,
    kind,
    body,
    lastUserText,
    promptTokens: Math.ceil(JSON.stringify(body.messages ?? body.contents ?? '').length / 4),
    tool: answersTool(asList(body.contents ?? body.messages)) ? null : toolFor(lastUserText, asked.tools),
    user: asText(body.user) || asText(asObject(body.metadata).user_id) || null,
    problem: problemOf(kind, request, body, url),
  }
}

type Read = Pick<Asked, 'model' | 'stream' | 'wantsUsage' | 'maxTokens' | 'choices'> & { tools: string[] }

const readers: Record<FakeKind, (body: Json, url: string) => Read> = {
  openai: body => ({
    model: asText(body.model),
    stream: body.stream === true,
    wantsUsage: asObject(body.stream_options).include_usage === true,
    maxTokens: Number(body.max_completion_tokens ?? body.max_tokens ?? Number.POSITIVE_INFINITY),
    choices: Number(body.n ?? 1),
    tools: asList(body.tools).map(tool => asText(asObject(asObject(tool).function).name)),
  }),
  anthropic: body => ({
    model: asText(body.model),
    stream: body.stream === true,
    wantsUsage: true,
    maxTokens: Number(body.max_tokens ?? 0),
    choices: 1,
    tools: asList(body.tools).map(tool => asText(asObject(tool).name)),
  }),
  google: (body, url) => {
    const config = asObject(body.generationConfig)
    const declared = asList(body.tools).flatMap(tool => asList(asObject(tool).functionDeclarations))
    return {
      model: decodeURIComponent(/models\/([^:]+):/.exec(url)?.[1] ?? ''),
      stream: url.includes(':streamGenerateContent'),
      wantsUsage: true,
      maxTokens: Number(config.maxOutputTokens ?? Number.POSITIVE_INFINITY),
      choices: Number(config.candidateCount ?? 1),
      tools: declared.map(tool => asText(asObject(tool).name)),
    }
  },
}

/** The checks that catch a gateway sending one vendor's form to another. */
function problemOf(kind: FakeKind, request: IncomingMessage, body: Json, url: string): Asked['problem'] {
  const { headers } = request
  const refuse = (status: number, message: string) => ({ status, message })
  if (kind === 'openai') {
    if (!headers.authorization?.startsWith('Bearer ')) return refuse(401, 'You did not provide an API key.')
    if (!url.endsWith('/chat/completions')) return refuse(404, `Unknown request URL: POST ${url}.`)
    if (asText(body.model) === '') return refuse(400, 'you must provide a model parameter')
    return asList(body.messages).length === 0 ? refuse(400, "Missing required parameter: 'messages'.") : null
  }
  if (kind === 'anthropic') {
    if (headers['x-api-key'] === undefined) return refuse(401, 'x-api-key header is required')
    if (headers['anthropic-version'] === undefined)
      return refuse(400, 'anthropic-version: header is required')
    if (typeof body.max_tokens !== 'number') return refuse(400, 'max_tokens: Field required')
    const roles = asList(body.messages).map(message => asText(asObject(message).role))
    const wrong = roles.find(role => role !== 'user' && role !== 'assistant')
    return wrong === undefined ? null : refuse(400, `messages: Unexpected role "${wrong}".`)
  }
  if (headers['x-goog-api-key'] === undefined)
    return refuse(403, 'Method does not allow unregistered callers.')
  return asList(body.contents).length === 0
    ? refuse(400, '* GenerateContentRequest.contents: contents is not specified')
    : null
}

/** Text of the last user turn, whichever vendor's form it is in; the results of tools are no text. */
function lastUserTextOf(messages: unknown[]): string {
  const last = asObject(
    messages
      .map(asObject)
      .filter(message => message.role === 'user')
      .at(-1),
  )
  if (typeof last.content === 'string') return last.content
  return [...asList(last.content), ...asList(last.parts)].map(part => asText(asObject(part).text)).join(' ')
}

/** A request that brings results wants words, not the same call again. */
function answersTool(messages: unknown[]): boolean {
  const last = asObject(messages.at(-1))
  const blocks = [...asList(last.content), ...asList(last.parts)].map(asObject)
  return (
    last.role === 'tool' || blocks.some(block => block.type === 'tool_result' || 'functionResponse' in block)
  )
}

function toolFor(text: string, tools: string[]): string | null {
  const named = /\buse ([\w-]+)/.exec(text)?.[1]
  return named !== undefined && tools.includes(named) ? named : null
}

function parsed(text: string): Json {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return {}
  }
}
