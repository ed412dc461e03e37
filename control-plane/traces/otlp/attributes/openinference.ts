import type { SpanKind } from '../../../../shared/contract/traces.js'
import { isObject } from '../../../../shared/json/is-object.js'
import type { Attributes } from '../attribute-value.js'
import { indexedList } from './indexed.js'
import { documentsOf, messagesOf } from './openinference-lists.js'
import { type Content, countAt, nanoAt, parsedJson, textAt, totalOf, type Vocabulary } from './vocabulary.js'

/**
 * OpenInference (https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md), the vocabulary of
 * spec 2, OTLP rules 2 to 4. Lists are flattened into attribute names (`llm.input_messages.0.message.role`); JSON values
 * travel as text. Token counts of the prompt include what was read from and written to a cache.
 */

/** RERANKER, GUARDRAIL, EVALUATOR, PROMPT and whatever is not known are `other`. */
const kinds = new Map<string, SpanKind>([
  ['LLM', 'llm'],
  ['TOOL', 'tool'],
  ['RETRIEVER', 'retrieval'],
  ['EMBEDDING', 'embedding'],
  ['AGENT', 'agent'],
  ['CHAIN', 'chain'],
])

const INPUT_MESSAGES = 'llm.input_messages'
const OUTPUT_MESSAGES = 'llm.output_messages'
const DOCUMENTS = 'retrieval.documents'

export function openInference(attributes: Attributes): Vocabulary {
  const promptTokens = promptTokensOf(attributes)
  const completionTokens = countAt(attributes, 'llm.token_count.completion')
  const total = countAt(attributes, 'llm.token_count.total')
  const kind = textAt(attributes, 'openinference.span.kind')
  return {
    kind: kind === null ? null : (kinds.get(kind.trim().toUpperCase()) ?? 'other'),
    model: textAt(
      attributes,
      'llm.model_name',
      'llm.response.model_name',
      'llm.request.model_name',
      'embedding.model_name',
      'reranker.model_name',
    ),
    provider: textAt(attributes, 'llm.provider', 'llm.system'),
    promptTokens,
    completionTokens,
    totalTokens: totalOf(total, promptTokens, completionTokens),
    costNano: costNanoOf(attributes),
    sessionId: textAt(attributes, 'session.id'),
    tags: tagsOf(attributes['tag.tags']),
    metadata: metadataOf(attributes.metadata),
  }
}

/** Some emitters give the cached parts and the total alone. */
function promptTokensOf(attributes: Attributes): number | null {
  const prompt = countAt(attributes, 'llm.token_count.prompt')
  if (prompt !== null) return prompt
  const total = countAt(attributes, 'llm.token_count.total')
  const completion = countAt(attributes, 'llm.token_count.completion')
  if (total !== null && completion !== null) return Math.max(0, total - completion)
  const read = countAt(attributes, 'llm.token_count.prompt_details.cache_read')
  const written = countAt(attributes, 'llm.token_count.prompt_details.cache_write')
  return read === null && written === null ? null : (read ?? 0) + (written ?? 0)
}

function costNanoOf(attributes: Attributes): number | null {
  const total = nanoAt(attributes, 'llm.cost.total')
  if (total !== null) return total
  const [prompt, completion] = [
    nanoAt(attributes, 'llm.cost.prompt'),
    nanoAt(attributes, 'llm.cost.completion'),
  ]
  return totalOf(null, prompt, completion)
}

/** A list of texts; some instrumentations send it as JSON, or one tag as plain text. */
function tagsOf(value: unknown): readonly string[] {
  const parsed = typeof value === 'string' && value.trimStart().startsWith('[') ? parsedJson(value) : value
  const list = Array.isArray(parsed) ? parsed : [parsed]
  return list.filter((tag): tag is string => typeof tag === 'string' && tag !== '')
}

function metadataOf(value: unknown): Record<string, unknown> | null {
  const parsed = parsedJson(value)
  return isObject(parsed) ? parsed : null
}

/** Whether an attribute moves to the span's payload and leaves `attributes` (spec 2, OTLP rules 3 and 4). */
export function isPromoted(name: string, kind: SpanKind): boolean {
  switch (name.charCodeAt(0)) {
    case 0x69: // i
      return name === 'input.value'
    case 0x6f: // o
      return name === 'output.value'
    case 0x6c: // l
      return isIn(name, INPUT_MESSAGES) || isIn(name, OUTPUT_MESSAGES)
    case 0x72: // r
      return kind === 'retrieval' && isIn(name, DOCUMENTS)
    default:
      return false
  }
}

const isIn = (name: string, list: string) =>
  name.startsWith(list) && (name.length === list.length || name[list.length] === '.')

/** What the promoted attributes hold. `input.value` wins over messages; a retrieval's documents over `output.value`. */
export function openInferenceContent(attributes: Attributes, kind: SpanKind): Content {
  const documents = kind === 'retrieval' ? documentsOf(listAt(attributes, DOCUMENTS)) : null
  return {
    input:
      valueAt(attributes, 'input') ??
      messagesOf(listAt(attributes, INPUT_MESSAGES)) ??
      textsAt(attributes, 'llm.prompts.', 'prompt'),
    output:
      documents ??
      valueAt(attributes, 'output') ??
      messagesOf(listAt(attributes, OUTPUT_MESSAGES)) ??
      textsAt(attributes, 'llm.choices.', 'completion'),
  }
}

/** Text, parsed only where its type says that it is JSON. */
function valueAt(attributes: Attributes, side: 'input' | 'output'): unknown {
  const value = attributes[`${side}.value`]
  const type = attributes[`${side}.mime_type`]
  const isJson = typeof type === 'string' && /^application\/(.+\+)?json\b/i.test(type.trim())
  return (isJson ? parsedJson(value) : value) ?? null
}

/** The names of the vocabulary that stand alone between an index and its fields. */
const wrappers = new Set(['message', 'tool_call', 'message_content', 'document', 'prompt', 'completion'])

/** Flattened, or whole as one structured or JSON value; whole text is a list of one, so that it is not lost. */
function listAt(attributes: Attributes, name: string): unknown[] | null {
  const whole = parsedJson(attributes[name]) ?? null
  if (Array.isArray(whole)) return whole
  return indexedList(attributes, `${name}.`, wrappers) ?? (whole === null ? null : [whole])
}

/** The older completions API: one text, or a list of them. */
function textsAt(attributes: Attributes, prefix: string, wrapper: string): unknown {
  const list = indexedList(attributes, prefix, new Set([wrapper]))
  if (list === null) return null
  const texts = list.map(item => (isObject(item) && typeof item.text === 'string' ? item.text : item))
  return texts.length === 1 ? texts[0] : texts
}
