import { type DemoRequest, textOf } from './request.js'

/** A token is a word with the white space before it; a word is cut every eight characters. Joined, they are the text. */
export const tokensOf = (text: string): string[] => text.match(/\s*\S{1,8}|\s+$/gu) ?? []

/** As OpenAI's models count: a few tokens of frame for each message, and the tool definitions as text. */
const FRAME_TOKENS = 4

export function promptTokens({ messages, tools }: DemoRequest): number {
  const texts = messages.map(message => {
    const calls = message.tool_calls === undefined ? '' : JSON.stringify(message.tool_calls)
    return tokensOf(textOf(message)).length + tokensOf(calls).length + FRAME_TOKENS
  })
  const definitions = tools?.length ? tokensOf(JSON.stringify(tools)).length : 0
  return texts.reduce((sum, count) => sum + count, definitions)
}
