import { dereference, type Schema } from '@cfworker/json-schema'
import { isObject } from '../../shared/json/is-object.js'

/** Why a schema cannot be used, for its author. */
export class SchemaFault extends Error {}

/** Levels of schemas inside schemas, and of JSON inside `enum` and `const`. */
const DEPTH_MAX = 32

const types = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'])

const isText = (value: unknown) => typeof value === 'string'
const isNumber = (value: unknown) => typeof value === 'number'
const isFlag = (value: unknown) => typeof value === 'boolean'
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0
const isTextList = (value: unknown) => Array.isArray(value) && value.every(isText)
const isTypeName = (value: unknown) => types.has(value as string)

/** Keywords that hold plain values, and what each may hold. */
const plain: Readonly<Record<string, [(value: unknown) => boolean, string]>> = {
  type: [
    value => isTypeName(value) || (Array.isArray(value) && value.length > 0 && value.every(isTypeName)),
    'one of string, number, integer, boolean, object, array and null, or an array of them',
  ],
  enum: [value => Array.isArray(value) && isShallow(value), `an array, nested at most ${DEPTH_MAX} levels`],
  const: [isShallow, `nested at most ${DEPTH_MAX} levels`],
  required: [isTextList, 'an array of names'],
  dependentRequired: [
    value => isObject(value) && Object.values(value).every(isTextList),
    'an object of arrays of names',
  ],
  format: [isText, 'text'],
  $anchor: [isText, 'text'],
  uniqueItems: [isFlag, 'true or false'],
  $recursiveAnchor: [isFlag, 'true or false'],
  multipleOf: [value => isNumber(value) && (value as number) > 0, 'a number above 0'],
  maximum: [isNumber, 'a number'],
  minimum: [isNumber, 'a number'],
  // Draft 4 has flags here.
  exclusiveMaximum: [value => isNumber(value) || isFlag(value), 'a number'],
  exclusiveMinimum: [value => isNumber(value) || isFlag(value), 'a number'],
  maxLength: [isCount, 'a whole number'],
  minLength: [isCount, 'a whole number'],
  maxItems: [isCount, 'a whole number'],
  minItems: [isCount, 'a whole number'],
  maxProperties: [isCount, 'a whole number'],
  minProperties: [isCount, 'a whole number'],
  maxContains: [isCount, 'a whole number'],
  minContains: [isCount, 'a whole number'],
}

const schemaKeywords = new Set([
  'additionalItems',
  'unevaluatedItems',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
])
const listKeywords = new Set(['prefixItems', 'allOf', 'anyOf', 'oneOf'])
const mapKeywords = new Set(['$defs', 'definitions', 'properties', 'patternProperties', 'dependentSchemas'])

/**
 * A user's JSON Schema as the validator may have it: known keywords only, each checked, so that nothing in it surprises
 * the validator. Annotations go (`description`, `examples`, whatever a vendor adds), and so do `$id`s: every `$ref` is
 * into the document itself.
 *
 * @throws SchemaFault
 */
export function readSchema(given: unknown): Schema {
  if (!isObject(given)) throw new SchemaFault('It must be a JSON object.')
  const schema = read(given, '', 0) as Schema
  const known = dereference(schema)
  for (const node of Object.values(known)) {
    if (isObject(node) && typeof node.__absolute_ref__ === 'string' && !(node.__absolute_ref__ in known)) {
      throw new SchemaFault(`$ref ${JSON.stringify(node.$ref)} leads nowhere in the document.`)
    }
  }
  return schema
}

function read(given: unknown, path: string, depth: number): Schema | boolean {
  if (typeof given === 'boolean') return given
  if (!isObject(given)) throw new SchemaFault(`${path || 'It'} must be a schema: an object, true or false.`)
  if (depth > DEPTH_MAX) throw new SchemaFault(`Schemas may be nested at most ${DEPTH_MAX} levels.`)
  const kept: [string, unknown][] = []
  for (const [keyword, value] of Object.entries(given)) {
    const read = readKeyword(keyword, value, path === '' ? keyword : `${path}.${keyword}`, depth + 1)
    if (read !== undefined) kept.push([keyword, read])
  }
  return Object.fromEntries(kept) as Schema
}

/** @returns undefined for a keyword that validates nothing. */
function readKeyword(keyword: string, value: unknown, path: string, depth: number): unknown {
  const rule = Object.hasOwn(plain, keyword) ? plain[keyword] : undefined
  if (rule !== undefined) {
    if (!rule[0](value)) throw new SchemaFault(`${path} must be ${rule[1]}.`)
    return value
  }
  if (keyword === 'pattern') return readPattern(value, path)
  if (keyword === '$ref' || keyword === '$recursiveRef') return readReference(value, path)
  if (keyword === 'items')
    return Array.isArray(value) ? readList(value, path, depth) : read(value, path, depth)
  if (keyword === 'dependencies') return readMap(value, path, depth, isTextList)
  if (schemaKeywords.has(keyword)) return read(value, path, depth)
  if (listKeywords.has(keyword)) return readList(value, path, depth)
  if (!mapKeywords.has(keyword)) return undefined
  if (keyword === 'patternProperties' && isObject(value)) {
    for (const pattern of Object.keys(value)) readPattern(pattern, path)
  }
  return readMap(value, path, depth)
}

function readList(value: unknown, path: string, depth: number): (Schema | boolean)[] {
  if (!Array.isArray(value)) throw new SchemaFault(`${path} must be an array of schemas.`)
  return value.map((item, place) => read(item, `${path}.${place}`, depth))
}

function readMap(
  value: unknown,
  path: string,
  depth: number,
  isLeaf: (value: unknown) => boolean = () => false,
): Record<string, unknown> {
  if (!isObject(value)) throw new SchemaFault(`${path} must be an object of schemas.`)
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      isLeaf(member) ? member : read(member, `${path}.${name}`, depth),
    ]),
  )
}

function readPattern(value: unknown, path: string): string {
  if (typeof value !== 'string') throw new SchemaFault(`${path} must be a regular expression.`)
  try {
    new RegExp(value, 'u')
    return value
  } catch (error) {
    throw new SchemaFault(`${path}: ${(error as Error).message}.`)
  }
}

/** Nothing is ever fetched. */
function readReference(value: unknown, path: string): string {
  if (typeof value === 'string' && value.startsWith('#')) return value
  throw new SchemaFault(`${path} must start with "#": references to other documents are not followed.`)
}

function isShallow(value: unknown, levels: number = DEPTH_MAX): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(member => isShallow(member, levels - 1))
}
