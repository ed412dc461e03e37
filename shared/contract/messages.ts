import type { z } from 'zod'

/**
 * The texts that spec 1 to 3 quote (`Required`, `Number must be less than or equal to 100`, …). They are what
 * zod 3 said by itself; zod 4 words them otherwise, so every parse passes this map as its `error` option.
 * A message given on a schema itself wins over this map.
 */
export function contractMessage(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return invalidType(issue)
    case 'too_small':
      return bound(issue.origin, issue.minimum, issue.inclusive !== false, 'small')
    case 'too_big':
      return bound(issue.origin, issue.maximum, issue.inclusive !== false, 'big')
    case 'invalid_format':
      return invalidFormat(issue.format)
    case 'invalid_value':
      return invalidValue(issue.values, issue.input)
    case 'unrecognized_keys':
      return `Unrecognized key(s) in object: ${issue.keys.map(key => `'${key}'`).join(', ')}`
    case 'not_multiple_of':
      return `Number must be a multiple of ${issue.divisor}`
    case 'invalid_union':
      return issue.input === undefined ? 'Required' : 'Invalid input'
    default:
      return undefined
  }
}

function invalidType(issue: { expected: string; input?: unknown }): string {
  if (issue.input === undefined) return 'Required'
  if (issue.expected === 'date') return 'Invalid date'
  if (issue.expected === 'int') return `Expected integer, received ${typeName(issue.input)}`
  return `Expected ${issue.expected === 'record' ? 'object' : issue.expected}, received ${typeName(issue.input)}`
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number')
    return Number.isNaN(value) ? 'nan' : Number.isInteger(value) ? 'number' : 'float'
  return typeof value
}

function bound(origin: string, limit: number | bigint, inclusive: boolean, side: 'small' | 'big'): string {
  const least = side === 'small'
  if (origin === 'string') return `String must contain at ${least ? 'least' : 'most'} ${limit} character(s)`
  if (origin === 'array' || origin === 'set') {
    return `Array must contain at ${least ? 'least' : 'most'} ${limit} element(s)`
  }
  const relation = `${least ? 'greater' : 'less'} than${inclusive ? ' or equal to' : ''}`
  return `Number must be ${relation} ${limit}`
}

function invalidFormat(format: string): string {
  if (format === 'datetime' || format === 'date') return 'Invalid date'
  if (format === 'regex') return 'Invalid'
  return `Invalid ${format === 'url' || format === 'email' || format === 'uuid' ? format : 'string'}`
}

function invalidValue(values: readonly unknown[], input: unknown): string {
  if (input === undefined) return 'Required'
  const quoted = values.map(value => (typeof value === 'string' ? `'${value}'` : String(value)))
  if (quoted.length === 1) return `Invalid literal value, expected ${quoted[0]}`
  if (typeof input !== 'string') return `Expected ${quoted.join(' | ')}, received ${typeName(input)}`
  return `Invalid enum value. Expected ${quoted.join(' | ')}, received '${input}'`
}
