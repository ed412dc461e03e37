import { validation } from '../../shared/errors/app-error.js'
import type { ChatMessage, ChatRequest, UpstreamCall } from './adapter.js'
import { generationConfig } from './gemini-generation-config.js'
import {
  dataUrl,
  imageUrl,
  isSystem,
  partsOf,
  passedThrough,
  toolCallsOf,
  toolChoiceOf,
  toolsOf,
} from './request-reading.js'
import { asObject, asText, isObject, type Json, parseJson, present } from './wire-values.js'

/** Ids that we made up for calls without one: they mean nothing to the API and are not sent back. */
export const MADE_UP_ID = 'call_agh_'

/** Documented for histories whose signature is not at hand: another model's turns, for instance. */
const NO_SIGNATURE = 'skip_thought_signature_validator'

/** @throws AppError VALIDATION_ERROR for what the format cannot hold: custom tools, a result of no known call. */
export function geminiBody(call: UpstreamCall): Json {
  const { request } = call
  // These two are merged into generationConfig, where what has an OpenAI name wins.
  const { top_k: _topK, generationConfig: _config, ...rest } = passedThrough(request)
  return {
    ...rest,
    ...present({
      contents: contentsOf(call),
      systemInstruction: systemOf(request),
      ...toolMembers(request),
      generationConfig: generationConfig(call),
    }),
  }
}

function systemOf(request: ChatRequest): Json | undefined {
  const parts = request.messages.flatMap((message, index) =>
    isSystem(message) ? textParts(message, `messages.${index}`) : [],
  )
  return parts.length === 0 ? undefined : { parts }
}

interface Turn {
  role: 'user' | 'model'
  parts: Json[]
}

/** Only `user` and `model` exist, in turns; the results of parallel calls go into one user turn. */
function contentsOf(call: UpstreamCall): Turn[] {
  const turns: Turn[] = []
  const callNames = new Map<string, string>()
  call.request.messages.forEach((message, index) => {
    if (isSystem(message)) return
    const path = `messages.${index}`
    const role = message.role === 'assistant' ? 'model' : 'user'
    const parts =
      role === 'model' ? modelParts(message, path, call, callNames) : userParts(message, path, callNames)
    if (parts.length === 0) return
    const last = turns.at(-1)
    if (last?.role === role) last.parts.push(...parts)
    else turns.push({ role, parts })
  })
  return turns
}

function userParts(message: ChatMessage, path: string, callNames: Map<string, string>): Json[] {
  if (message.role === 'tool') return [functionResponse(message, path, callNames)]
  if (message.role !== 'user') {
    throw validation(`${path}.role: '${message.role}' is not supported by this model`)
  }
  return partsOf(message, path).flatMap((part, index) => partOf(part, `${path}.content.${index}`))
}

/** Thought signatures go back where they came from: on the call that carried one, or on the text. */
function modelParts(
  message: ChatMessage,
  path: string,
  call: UpstreamCall,
  callNames: Map<string, string>,
): Json[] {
  const texts = textParts(message, path)
  const signed = signatureOf(message)
  const lastText = texts.at(-1)
  if (signed !== undefined && lastText !== undefined) lastText.thoughtSignature = signed

  const calls = toolCallsOf(message, path).map(({ id, name, input, raw }) => {
    callNames.set(id, name)
    const functionCall = { ...sentId(id), name, args: input }
    return present({ functionCall, thoughtSignature: signatureOf(raw) })
  })
  const first = calls[0]
  if (first !== undefined && first.thoughtSignature === undefined && needsSignatures(call.upstreamModel)) {
    first.thoughtSignature = NO_SIGNATURE
  }
  return [...texts, ...calls]
}

/** Gemini 3 and later refuse a tool turn whose first call has no signature. */
const needsSignatures = (model: string) => /gemini-(?:[3-9]|\d\d)/.test(model)

function signatureOf(carrier: Json): string | undefined {
  const google = asObject(asObject(carrier.extra_content).google)
  return asText(google.thought_signature) || undefined
}

const sentId = (id: string): Json => (id === '' || id.startsWith(MADE_UP_ID) ? {} : { id })

/** Results name their function, which OpenAI's do not: it is that of the call with the same id. */
function functionResponse(message: ChatMessage, path: string, callNames: Map<string, string>): Json {
  const id = asText(message.tool_call_id)
  const name = callNames.get(id) ?? asText(message.name)
  if (name === '') throw validation(`${path}.tool_call_id: No earlier tool call has this id`)
  return { functionResponse: { ...sentId(id), name, response: responseOf(message, path) } }
}

/** The API wants an object: text that is none becomes `{ result }`. */
function responseOf(message: ChatMessage, path: string): Json {
  const text = partsOf(message, path)
    .map(part => asText(part.text))
    .join('')
  const value = parseJson(text)
  return isObject(value) ? value : { result: text }
}

function textParts(message: ChatMessage, path: string): Json[] {
  return partsOf(message, path).flatMap(part => {
    const text = asText(part.text) || asText(part.refusal)
    return text === '' ? [] : [{ text } as Json]
  })
}

function partOf(part: Json, path: string): Json[] {
  switch (part.type) {
    case 'text':
      return asText(part.text) === '' ? [] : [{ text: part.text }]
    case 'image_url':
      return [mediaPart(imageUrl(part, path))]
    case 'input_audio': {
      const { data, format } = asObject(part.input_audio)
      return [{ inlineData: { mimeType: `audio/${asText(format) || 'wav'}`, data } }]
    }
    case 'file': {
      const { file_data: data, file_id: id } = asObject(part.file)
      if (typeof id === 'string') return [{ fileData: { fileUri: id } }]
      if (dataUrl(asText(data)) === null)
        throw validation(`${path}.file.file_data: Expected a base64 data URL`)
      return [mediaPart(asText(data))]
    }
    default:
      // A part in Google's own form.
      return [part]
  }
}

/** A URL goes by reference (spec 4, section 9); its type is told by its ending, where it has one. */
function mediaPart(url: string): Json {
  const media = dataUrl(url)
  if (media !== null) return { inlineData: { mimeType: media.mediaType, data: media.data } }
  const ending = /\.([a-z0-9]+)(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase() ?? ''
  return { fileData: present({ mimeType: mediaTypes[ending], fileUri: url }) }
}

const mediaTypes: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  pdf: 'application/pdf',
}

function toolMembers(request: ChatRequest): Json {
  const choice = toolChoiceOf(request)
  const { functions, own } = toolsOf(request, choice)
  const declarations = functions.map(({ name, definition }) =>
    present({ name, description: definition.description, parametersJsonSchema: definition.parameters }),
  )
  const tools = [...(declarations.length === 0 ? [] : [{ functionDeclarations: declarations }]), ...own]
  if (tools.length === 0) return {}
  const mode = choice === null ? undefined : modes[choice.mode]
  if (mode === undefined) return { tools }
  const functionCallingConfig = present({
    mode,
    allowedFunctionNames: choice?.mode === 'named' ? [choice.name] : undefined,
  })
  return { tools, toolConfig: { ...asObject(request.toolConfig), functionCallingConfig } }
}

const modes = { auto: 'AUTO', required: 'ANY', none: 'NONE', named: 'ANY' } as const
