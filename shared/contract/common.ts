import { z } from 'zod'
import { isObject } from '../json/is-object.js'

/** 128 bits in UUID form. Trace ids come from clients too, and OpenTelemetry's have no version digit. */
export const id = z.guid('Invalid uuid')
/** ISO 8601, UTC, milliseconds: what every response carries. */
export const timestamp = z.iso.datetime({ precision: 3 })
/**
 * ISO 8601 in a query or body: a date or a date-time, with any offset. Without an offset it is UTC, whatever the zone of
 * this machine. Output: epoch milliseconds.
 */
export const instant = z.string().transform((text, context) => {
  const [, date = '', time = '', offset = 'Z'] =
    /^(\d{4}-\d{2}-\d{2})(?:T([\d:.]+)(Z|[+-]\d{2}:?\d{2})?)?$/i.exec(text) ?? []
  const ms = Date.parse(time === '' ? date : `${date}T${time}${offset}`)
  // JavaScript reads 30 February as 2 March. PostgreSQL has no year 0, and windows reach 30 days back.
  const isDay = new Date(Date.parse(date)).getUTCDate() === Number(date.slice(8))
  if (Number.isNaN(ms) || !isDay || ms < Date.UTC(1000, 0)) {
    context.addIssue({ code: 'custom', message: 'Invalid date' })
    return z.NEVER
  }
  return ms
})
/** Taken as it is, not copied key by key: its names are the caller's. */
export const ownObject = z.custom<Record<string, unknown>>(isObject, 'Expected object')

/** Money at the edge: US dollars, a number. Inside agh money is integer nano-dollars. */
export const usd = z.number()

export const roles = ['owner', 'admin', 'editor', 'viewer'] as const
export const role = z.enum(roles)
export type Role = z.infer<typeof role>

export const providers = ['openai', 'anthropic', 'google', 'openai_compatible'] as const
export const providerKind = z.enum(providers)
export type ProviderKind = z.infer<typeof providerKind>

const wholeNumber = (text: string) => (/^-?\d+$/.test(text) ? Number(text) : Number.NaN)

/** `page` and `limit` of every paginated list (spec 1, conventions); extend it with `.extend({...})`. */
export const pageQuery = z.object({
  page: z.string().transform(wholeNumber).pipe(z.number().int().min(1)).default(1),
  limit: z.string().transform(wholeNumber).pipe(z.number().int().min(1).max(100)).default(20),
})

export const pageOf = <S extends z.ZodType>(item: S) =>
  z.object({ data: z.array(item), total: z.number().int(), page: z.number().int(), limit: z.number().int() })

export const idParams = z.object({ id: z.string() })

/** A path or body id that is not a UUID can only name a missing resource; callers turn `false` into notFound. */
export const isUuid = (text: string) =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)
