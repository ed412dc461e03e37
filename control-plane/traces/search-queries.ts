import type { TraceFilters } from '../../shared/contract/traces.js'
import { containing } from '../db/like.js'
import type { Sql } from '../db/sql.js'
import { defaultName, type Fragment, hasSpan } from './queries.js'
import { positionsOf } from './search-signature.js'

/** A free-text filter (spec 2, `q` and `q_in`), ready to be asked. */
export interface TextSearch {
  /** Whether a row `t` of `traces` holds the text: exact, and dear where spans have to be read. */
  condition: Fragment
  /**
   * Whether a row `g` of `trace_signatures` may be of a trace that holds it. Null: every trace may, because the text is
   * too short to tell or could be part of a default name, which no signature has.
   */
  mayHold: Fragment | null
  /** `condition` for a trace one of whose signatures is known to meet `mayHold`. */
  holds: Fragment
}

/** Case-insensitive substring over the names, the attributes and the captured payload. Null: no filter. */
export function textSearch(sql: Sql, filters: Pick<TraceFilters, 'q' | 'q_in'>): TextSearch | null {
  const text = filters.q?.trim() ?? ''
  if (text === '') return null
  const signature = filters.q_in === 'name' ? sql`coalesce(g.names, g.signature)` : sql`g.signature`
  const bits = positionsOf(text).map(
    position => sql`get_bit(${signature}, (${position}::int % (octet_length(${signature}) * 8))::bigint) = 1`,
  )
  const inDefaultName = filters.q_in !== 'input' && filters.q_in !== 'output' && isInDefaultName(text)
  const mayHold = bits.length === 0 ? null : bits.reduce((all, bit) => sql`${all} and ${bit}`)
  const holds = holdsText(sql, text, filters.q_in)
  if (mayHold === null) return { condition: holds, mayHold, holds }
  // A `case`, because PostgreSQL would take reading the spans for the cheaper one and do it first.
  const guarded = sql`case when exists (
    select from trace_signatures g
    where g.team_id = t.team_id and g.received_at = t.received_at and g.trace_id = t.id and ${mayHold}
  ) then ${holds} else false end`
  if (!inDefaultName) return { condition: guarded, mayHold, holds }
  const byDefault = sql`t.name is null and ${defaultName(sql)} ilike ${containing(text)}`
  const condition = sql`(${byDefault} or ${guarded})`
  return { condition, mayHold: null, holds: condition }
}

function holdsText(sql: Sql, text: string, where: TraceFilters['q_in']): Fragment {
  const plain = containing(text)
  // As jsonb prints it: quotes, backslashes and control characters escaped.
  const inJson = containing(JSON.stringify(text).slice(1, -1))
  const names = sql`(coalesce(t.name, ${defaultName(sql)}) ilike ${plain}
    or exists (select from unnest(t.span_names) as names(name) where names.name ilike ${plain}))`
  const input = sql`s.input::text ilike ${inJson}`
  const output = sql`s.output::text ilike ${inJson}`
  if (where === 'name') return names
  if (where === 'input') return hasSpan(sql, input)
  if (where === 'output') return hasSpan(sql, output)
  return sql`(${names} or ${hasSpan(sql, sql`(s.attributes::text ilike ${inJson} or ${input} or ${output})`)})`
}

/** Whether a text may be part of `Trace 2026-11-21T12:00:00.000Z`. */
function isInDefaultName(text: string): boolean {
  const shape = text.toLowerCase().replace(/\d/g, '0')
  return 'trace 0000-00-00t00:00:00.000z'.includes(shape)
}
