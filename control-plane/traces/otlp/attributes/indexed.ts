import { isObject } from '../../../../shared/json/is-object.js'
import type { Attributes } from '../attribute-value.js'

/** A name's segment: what it holds itself, and what lies under it. */
interface Node {
  value?: unknown
  members: Map<string, Node>
}

/** Deeper names stop nesting; the rest of the name is one key. */
const MAX_DEPTH = 16

/**
 * The list that attributes `<prefix><index>.<rest>` stand for. Indexes may be sparse, out of order and of any number of
 * digits; they sort as numbers. Each wrapper of the vocabulary (`message`, `tool_call`, `message_content`, `document`)
 * that stands alone between an index and its fields is taken off.
 *
 * @param prefix ends with a dot.
 * @param wrappers names of segments to take off.
 * @returns null when no attribute has the prefix.
 */
export function indexedList(
  attributes: Attributes,
  prefix: string,
  wrappers: ReadonlySet<string>,
): unknown[] | null {
  const root: Node = { members: new Map() }
  for (const name in attributes) {
    if (name.startsWith(prefix)) place(root, name.slice(prefix.length), attributes[name])
  }
  return root.members.size === 0 ? null : listOf(root, wrappers)
}

function place(root: Node, path: string, value: unknown): void {
  let node = root
  let rest = path
  for (let depth = 0; rest !== ''; depth++) {
    const dot = depth < MAX_DEPTH ? rest.indexOf('.') : -1
    const segment = dot === -1 ? rest : rest.slice(0, dot)
    rest = dot === -1 ? '' : rest.slice(dot + 1)
    let next = node.members.get(segment)
    if (next === undefined) {
      next = { members: new Map() }
      node.members.set(segment, next)
    }
    node = next
  }
  node.value = value
}

const isIndex = (segment: string) => /^\d+$/.test(segment)

/** Members under numbers in their order, then whatever else was there under its own name. */
function listOf(node: Node, wrappers: ReadonlySet<string>): unknown[] {
  const numbered = [...node.members].filter(([segment]) => isIndex(segment))
  numbered.sort(([a], [b]) => Number(a) - Number(b))
  const named = [...node.members].filter(([segment]) => !isIndex(segment))
  return [
    ...numbered.map(([, member]) => nested(member, wrappers)),
    ...named.map(([segment, member]) => {
      const alone: Attributes = Object.create(null)
      assign(alone, segment, nested(member, wrappers))
      return alone
    }),
  ]
}

function nested(node: Node, wrappers: ReadonlySet<string>): unknown {
  const { members } = node
  if (members.size === 0) return node.value
  if (node.value === undefined && [...members.keys()].every(isIndex)) return listOf(node, wrappers)
  const fields: Attributes = Object.create(null)
  if (node.value !== undefined) fields.value = node.value
  for (const [segment, member] of members) {
    const value = nested(member, wrappers)
    if (wrappers.has(segment) && isFields(value)) for (const name in value) assign(fields, name, value[name])
    else assign(fields, segment, value)
  }
  return fields
}

/** An object may be attribute's own value too: only those made here have no prototype, and both may be merged. */
const isFields = (value: unknown): value is Attributes => isObject(value)

function assign(fields: Attributes, name: string, value: unknown): void {
  if (name !== '__proto__') fields[name] = value
}
