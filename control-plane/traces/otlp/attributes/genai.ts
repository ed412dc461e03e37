import type { Attributes } from '../attribute-value.js'
import { genAiMessages } from './genai-messages.js'
import { indexedList } from './indexed.js'
import { type Content, countAt, nanoAt, parsedJson, textAt, totalOf, type Vocabulary } from './vocabulary.js'

/**
 * OpenTelemetry's GenAI semantic conventions (https://github.com/open-telemetry/semantic-conventions-genai), of both
 * generations: the names of today first, those of v1.36 and earlier after them. They fill fields and payload and stay in
 * `attributes`; the span kind is not read from them (spec 2, OTLP rule 2). `input_tokens` includes cached tokens.
 */
export function genAi(attributes: Attributes): Vocabulary {
  const promptTokens = countAt(attributes, 'gen_ai.usage.input_tokens', 'gen_ai.usage.prompt_tokens')
  const completionTokens = countAt(attributes, 'gen_ai.usage.output_tokens', 'gen_ai.usage.completion_tokens')
  const total = countAt(attributes, 'gen_ai.usage.total_tokens', 'llm.usage.total_tokens')
  return {
    kind: null,
    model: textAt(attributes, 'gen_ai.response.model', 'gen_ai.request.model'),
    provider: textAt(attributes, 'gen_ai.provider.name', 'gen_ai.system'),
    promptTokens,
    completionTokens,
    totalTokens: totalOf(total, promptTokens, completionTokens),
    costNano: nanoAt(attributes, 'gen_ai.usage.cost'),
    sessionId: textAt(attributes, 'gen_ai.conversation.id'),
    tags: [],
    metadata: null,
  }
}

const none: ReadonlySet<string> = new Set()

/** A tool call's arguments and result, a retrieval's query and documents, or the messages of a model call. */
export function genAiContent(attributes: Attributes): Content {
  return {
    input:
      present(parsedJson(attributes['gen_ai.tool.call.arguments'])) ??
      messagesAt(attributes, 'gen_ai.input.messages', 'gen_ai.prompt', true) ??
      present(attributes['gen_ai.retrieval.query.text']),
    output:
      present(parsedJson(attributes['gen_ai.tool.call.result'])) ??
      messagesAt(attributes, 'gen_ai.output.messages', 'gen_ai.completion', false) ??
      present(parsedJson(attributes['gen_ai.retrieval.documents'])),
  }
}

/** @param older one JSON or plain text, or flattened into `<older>.<index>.role` and so on. */
function messagesAt(attributes: Attributes, name: string, older: string, withSystem: boolean): unknown {
  const system = withSystem ? present(parsedJson(attributes['gen_ai.system_instructions'])) : null
  const current = present(parsedJson(attributes[name]))
  if (current !== null || system !== null) return genAiMessages(system, current)
  return present(parsedJson(attributes[older])) ?? indexedList(attributes, `${older}.`, none)
}

const present = (value: unknown) => (value === undefined || value === '' ? null : value)
