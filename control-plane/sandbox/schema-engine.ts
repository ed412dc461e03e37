import { type OutputUnit, type SchemaDraft, Validator } from '@cfworker/json-schema'
import type { Outcome } from './messages.js'
import { readSchema, SchemaFault } from './read-schema.js'

/**
 * Checks values against users' JSON Schemas, inside a worker thread: an interpreter, which compiles nothing, and patterns
 * that run until the pool's wall clock ends their thread (`^(a+)+$` against 29 characters takes 13 s, reliability notes,
 * 5.4).
 */

/** Problems named at most, and their length: they end up in an answer and a span. */
const PROBLEMS_MAX = 10
const PROBLEM_MAX = 200
/** Errors looked at to find them: they are held against each other, and ten thousand wrong rows make as many. */
const ERRORS_MAX = 500

export function checkSchema(schemaText: string): Outcome {
  return guarded(() => {
    readSchema(JSON.parse(schemaText))
    return null
  })
}

/** JSON text of an array of problems, each `path: what is wrong`; empty when the value matches. */
export function validate(schemaText: string, valueText: string): Outcome {
  return guarded(() => {
    const given: unknown = JSON.parse(schemaText)
    const schema = readSchema(given)
    const { valid, errors } = new Validator(schema, draftOf(given), false).validate(JSON.parse(valueText))
    return valid ? [] : problemsOf(errors)
  })
}

function guarded(work: () => unknown): Outcome {
  try {
    return { ok: true, json: JSON.stringify(work()) }
  } catch (error) {
    if (error instanceof SchemaFault) return { ok: false, message: error.message }
    const isOverflow = error instanceof RangeError
    return { ok: false, message: isOverflow ? 'It refers to itself without end.' : 'It cannot be evaluated.' }
  }
}

/** The dialect that `$schema` names; without one, the newest. */
function draftOf(schema: unknown): SchemaDraft {
  const named =
    typeof schema === 'object' && schema !== null ? (schema as { $schema?: unknown }).$schema : undefined
  const text = typeof named === 'string' ? named : ''
  if (/draft-0?4/.test(text)) return '4'
  if (/draft-0?[67]/.test(text)) return '7'
  return text.includes('2019-09') ? '2019-09' : '2020-12'
}

/** Keywords that only say that a schema inside had problems, which are reported too. */
const around = new Set([
  ...['properties', 'additionalProperties', 'patternProperties', 'unevaluatedProperties', 'dependentSchemas'],
  ...['items', 'prefixItems', 'additionalItems', 'unevaluatedItems', 'allOf', 'if', '$ref', '$recursiveRef'],
])

/** The validator reports a mismatch once for each schema around it; only the innermost say something. */
function problemsOf(found: readonly OutputUnit[]): string[] {
  const errors = found.slice(0, ERRORS_MAX)
  const innermost = errors.filter(
    ({ keyword, keywordLocation }) =>
      !around.has(keyword) && !errors.some(other => other.keywordLocation.startsWith(`${keywordLocation}/`)),
  )
  const texts = (innermost.length === 0 ? errors : innermost).map(({ instanceLocation, keyword, error }) => {
    const path = instanceLocation.replace(/^#\/?/, '').split('/').map(decoded).join('.')
    const text = keyword === 'false' ? 'Not allowed.' : error
    return (path === '' ? text : `${path}: ${text}`).slice(0, PROBLEM_MAX)
  })
  return [...new Set(texts)].slice(0, PROBLEMS_MAX)
}

function decoded(segment: string): string {
  const plain = segment.replaceAll('~1', '/').replaceAll('~0', '~')
  try {
    return decodeURIComponent(plain)
  } catch {
    return plain
  }
}
