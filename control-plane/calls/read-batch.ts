import { setImmediate as nextTurn } from 'node:timers/promises'
import type { z } from 'zod'
import type { ChargeRecord, SpanRecord } from '../../shared/spool/record.js'
import { clean, cutText, needsCleaning } from '../traces/payload.js'
import { callRecord, spanRecord } from './record-schema.js'
import { wholeRecord } from './whole-record.js'

/** One line of a shipped batch that can be stored. */
export interface ReadCall {
  charge: ChargeRecord
  span: SpanRecord | null
  /** UTF-16 units of the line: no field of the record is longer. */
  length: number
}

/** A record, or a part of one, that cannot be stored; kept with its reason for people to look at. */
export interface DeadLetter {
  reason: string
  /** As it came, but without the captured payload and cut to MAX_KEPT. */
  record: string
}

const MAX_KEPT = 64_000
/** About 10 ms of parsing; then the event loop gets a turn. */
const UNITS_PER_TURN = 1_000_000

/**
 * The CallRecords of a newline-delimited body. What is not one goes to `dead`; of a record whose span alone is
 * unreadable the charge is kept.
 */
export async function readBatch(
  body: Buffer,
): Promise<{ calls: ReadCall[]; dead: DeadLetter[]; lines: number }> {
  const calls: ReadCall[] = []
  const dead: DeadLetter[] = []
  let lines = 0
  let unitsThisTurn = 0
  for (const line of body.toString('utf8').split('\n')) {
    if (line.trim() === '') continue
    lines++
    const call = readLine(line, dead)
    if (call !== null) calls.push(call)
    unitsThisTurn += line.length
    if (unitsThisTurn > UNITS_PER_TURN) {
      unitsThisTurn = 0
      await nextTurn()
    }
  }
  return { calls, dead, lines }
}

function readLine(line: string, dead: DeadLetter[]): ReadCall | null {
  let record: unknown
  try {
    record = JSON.parse(line)
  } catch (error) {
    // V8 quotes the text around the fault, which may be a prompt.
    dead.push({ reason: `not JSON: ${(error as Error).name}`, record: storableText(line) })
    return null
  }
  if (needsCleaning(line)) record = clean(record)
  const read = callRecord.safeParse(wholeRecord(record))
  if (!read.success) {
    dead.push({ reason: problem(read.error), record: withoutPayload(record) })
    return null
  }
  const { charge, span } = read.data
  const call = { charge, span: null, length: line.length }
  if (span === null || span === undefined) return call
  const readSpan = spanRecord.safeParse(span)
  if (readSpan.success && readSpan.data.teamId === charge.teamId) return { ...call, span: readSpan.data }
  const reason = readSpan.success ? 'its team is not the charge’s' : problem(readSpan.error)
  dead.push({ reason: `span: ${reason}`, record: withoutPayload(record) })
  return call
}

function problem(error: z.ZodError): string {
  const issue = error.issues[0]
  return issue === undefined ? 'unreadable' : `${issue.path.join('.')}: ${issue.message}`
}

/** A record for the dead-letter table, where no redaction applies: the captured payload stays out of it. */
export function withoutPayload(record: unknown): string {
  const dropPayload = (key: string, value: unknown) =>
    key === 'payload' && value !== null ? '[LEFT OUT]' : value
  try {
    return storableText(JSON.stringify(record, dropPayload))
  } catch {
    return '[NESTED TOO DEEPLY]'
  }
}

const storableText = (text: string): string => cutText(text, MAX_KEPT).replaceAll('\u0000', '\ufffd')
