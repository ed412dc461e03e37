import { type DemoRequest, textOf } from './request.js'

/** A word with the white space before it; a word is cut every eight characters. Joined, they are the text. */
const TOKEN = /\s*\S{1,8}|\s+$/gu

/** @param most of a text of megabytes only the first ones are wanted. */
export function tokensOf(text: string, most = Number.POSITIVE_INFINITY): string[] {
  const tokens: string[] = []
  for (const [token] of text.matchAll(TOKEN)) {
    if (tokens.length >= most) break
    tokens.push(token)
  }
  return tokens
}

function countTokens(text: string): number {
  let count = 0
  for (const _ of text.matchAll(TOKEN)) count++
  return count
}

/** As OpenAI's models count: a few tokens of frame for each message, and the tool definitions as text. */
const FRAME_TOKENS = 4

export function promptTokens({ messages, tools }: DemoRequest): number {
  const texts = messages.map(message => {
    const calls = message.tool_calls === undefined ? '' : JSON.stringify(message.tool_calls)
    return countTokens(textOf(message)) + countTokens(calls) + FRAME_TOKENS
  })
  const definitions = tools?.length ? countTokens(JSON.stringify(tools)) : 0
  return texts.reduce((sum, count) => sum + count, definitions)
}
