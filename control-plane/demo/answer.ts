import { randomBytes } from 'node:crypto'
import { type DemoRequest, type DemoTool, textOf } from './request.js'
import { sample } from './sample.js'
import { tokensOf } from './tokens.js'

/** What the demo model says to a request; every choice of `n` says the same. */
export interface DemoAnswer {
  /** Joined, they are the content; the stream sends one a chunk. Empty for a tool call. */
  tokens: string[]
  toolCall: { id: string; name: string; arguments: string } | null
  finishReason: 'stop' | 'length' | 'tool_calls'
  completionTokens: number
}

/** An echo of a 10 MB message would stream for hours. */
const MOST_TOKENS = 4096

export function answer(request: DemoRequest): DemoAnswer {
  const wanted = wantedTool(request)
  if (wanted !== null) return callOf(wanted, request)
  const text = cutAtStop(reply(request), request.stop)
  const limit = Math.min(request.max_completion_tokens ?? request.max_tokens ?? MOST_TOKENS, MOST_TOKENS)
  // One more tells that there are more.
  const found = tokensOf(text, limit + 1)
  const tokens = found.slice(0, limit)
  const finishReason = tokens.length < found.length ? 'length' : 'stop'
  return { tokens, toolCall: null, finishReason, completionTokens: tokens.length }
}

function reply(request: DemoRequest): string {
  const last = request.messages.at(-1)
  if (last?.role === 'tool' || last?.role === 'function') return `The tool answered: ${textOf(last)}`
  const text = lastUserText(request)
  const format = request.response_format
  if (format?.type === 'json_schema') return JSON.stringify(sample(format.json_schema?.schema, text))
  if (format?.type === 'json_object') return JSON.stringify({ echo: text })
  return text === '' ? 'Hello from the demo model.' : `You said: ${text}`
}

function lastUserText(request: DemoRequest): string {
  const message = request.messages.findLast(({ role }) => role === 'user')
  return message === undefined ? '' : textOf(message)
}

/**
 * The tool to call: the one that `tool_choice` forces, else one that the last message, a user's, names
 * ("get_weather", "get weather") or asks for in general ("call a tool", "use your tools").
 */
function wantedTool({ messages, tools, tool_choice: choice }: DemoRequest): DemoTool | null {
  if (!tools?.length || choice === 'none') return null
  if (typeof choice === 'object' && choice !== null) {
    return tools.find(tool => tool.function.name === choice.function.name) ?? null
  }
  const last = messages.at(-1)
  const text = last?.role === 'user' ? textOf(last).toLowerCase() : ''
  const named = tools.find(tool => {
    const name = tool.function.name.toLowerCase()
    return text.includes(name) || text.includes(name.replace(/[_-]/g, ' '))
  })
  const isAsked = choice === 'required' || /\b(call|use)\b.{0,20}\btools?\b/.test(text)
  return named ?? (isAsked ? (tools[0] ?? null) : null)
}

function callOf(tool: DemoTool, request: DemoRequest): DemoAnswer {
  const { name, parameters } = tool.function
  const args = JSON.stringify(sample({ type: 'object', ...parameters }, lastUserText(request)))
  const id = `call_${randomBytes(12).toString('hex')}`
  const completionTokens = tokensOf(name).length + tokensOf(args).length
  return { tokens: [], toolCall: { id, name, arguments: args }, finishReason: 'tool_calls', completionTokens }
}

function cutAtStop(text: string, stop: DemoRequest['stop']): string {
  const ends = [stop ?? []].flat().filter(each => each !== '')
  const found = ends.map(each => text.indexOf(each)).filter(at => at >= 0)
  return text.slice(0, Math.min(text.length, ...found))
}
