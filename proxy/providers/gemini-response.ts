import { randomUUID } from 'node:crypto'
import type { TokenBuckets } from '../../shared/spool/record.js'
import { BrokenAnswer, type Completion } from './adapter.js'
import { MADE_UP_ID } from './gemini-request.js'
import { answerObject, completionOf, TranslatedCompletion } from './translated.js'
import { usageOf } from './usage.js'
import { asCount, asList, asObject, asText, isObject, type Json } from './wire-values.js'

/**
 * A blocked prompt has no candidates but a reason: it is answered as 200 with `content_filter` and empty content, as
 * OpenAI does for filtered answers, and costs what the API counted.
 *
 * @throws BrokenAnswer when there are neither candidates nor a block reason.
 */
export function geminiCompletion(body: Buffer): Completion {
  const answer = answerObject(body)
  const blocked = blockReason(answer)
  const candidates = asList(answer.candidates).filter(isObject)
  if (candidates.length === 0 && blocked === null) throw new BrokenAnswer('it has no candidates.')
  const choices = candidates.length === 0 ? [blockedChoice(blocked ?? '')] : candidates.map(choiceOf)
  const usage = isObject(answer.usageMetadata) ? answer.usageMetadata : null
  const tokens = usage === null ? null : geminiBuckets(usage)
  const shown = tokens === null ? null : usageOf(tokens, asCount(usage?.thoughtsTokenCount))
  const value = completionOf(asText(answer.responseId), asText(answer.modelVersion), choices, shown)
  return new TranslatedCompletion(value, tokens, asText(choices.at(-1)?.finish_reason) || null)
}

/** @returns why the prompt was blocked, or null. */
export const blockReason = (answer: Json): string | null =>
  asText(asObject(answer.promptFeedback).blockReason) || null

const blockedChoice = (native: string): Json => ({
  index: 0,
  message: { role: 'assistant', content: '', refusal: null },
  logprobs: null,
  finish_reason: 'content_filter',
  native_finish_reason: native,
})

function choiceOf(candidate: Json, position: number): Json {
  const parts = asList(asObject(candidate.content).parts).filter(isObject)
  const calls = parts.filter(part => isObject(part.functionCall)).map(toolCallOf)
  const textOf = (thought: boolean) =>
    parts
      .filter(part => (part.thought === true) === thought)
      .map(part => asText(part.text))
      .join('')
  const text = textOf(false)
  const reasoning = textOf(true)
  const signature = parts.map(textSignature).find(found => found !== undefined)
  const message: Json = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    refusal: null,
  }
  if (reasoning !== '') message.reasoning_content = reasoning
  if (calls.length > 0) message.tool_calls = calls
  if (signature !== undefined) message.extra_content = { google: { thought_signature: signature } }
  const native = asText(candidate.finishReason)
  return {
    index: asCount(candidate.index) ?? position,
    message,
    logprobs: null,
    finish_reason: finishReason(native, calls.length > 0),
    native_finish_reason: native,
  }
}

/** A signature on a part that is no call belongs to the message. */
export const textSignature = (part: Json): string | undefined =>
  isObject(part.functionCall) ? undefined : asText(part.thoughtSignature) || undefined

/** OpenAI's form of a `functionCall` part. Ids are optional there; ours are random, so unique in any conversation. */
export function toolCallOf(part: Json): Json {
  const call = asObject(part.functionCall)
  const signature = asText(part.thoughtSignature)
  return {
    id: asText(call.id) || `${MADE_UP_ID}${randomUUID().replaceAll('-', '').slice(0, 24)}`,
    type: 'function',
    function: { name: asText(call.name), arguments: JSON.stringify(call.args ?? {}) },
    ...(signature !== '' && { extra_content: { google: { thought_signature: signature } } }),
  }
}

/** STOP also ends a turn that calls tools. An unknown reason is an end like any other. */
export function finishReason(native: string, callsTools: boolean): string {
  const reason = FILTERED.test(native) ? 'content_filter' : native === 'MAX_TOKENS' ? 'length' : 'stop'
  return reason === 'stop' && callsTools ? 'tool_calls' : reason
}

const FILTERED = /^(?:SAFETY|PROHIBITED_CONTENT|BLOCKLIST|SPII|RECITATION|LANGUAGE|IMAGE_.+)$/

/** `promptTokenCount` includes cached tokens, `candidatesTokenCount` excludes thoughts. @returns null without counts. */
export function geminiBuckets(usage: Json): TokenBuckets | null {
  const prompt = asCount(usage.promptTokenCount)
  const candidates = asCount(usage.candidatesTokenCount)
  if (prompt === null && candidates === null) return null
  const input = (prompt ?? 0) + (asCount(usage.toolUsePromptTokenCount) ?? 0)
  const cacheRead = Math.min(input, asCount(usage.cachedContentTokenCount) ?? 0)
  const output = (candidates ?? 0) + (asCount(usage.thoughtsTokenCount) ?? 0)
  return { input: input - cacheRead, cacheRead, cacheWrite: 0, output }
}
