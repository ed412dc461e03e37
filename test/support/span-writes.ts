import { randomUUID } from 'node:crypto'
import type { SpanWrite, TraceClaim } from '../../control-plane/traces/span-write.js'

type Parts = Partial<Omit<SpanWrite, 'trace' | 'teamId'>> & { trace?: Partial<TraceClaim> }

/** A span as an ingestion endpoint hands it to `writeSpans`: nothing but a start, in a trace of its own. */
export function spanWrite(teamId: string, { trace, ...parts }: Parts = {}): SpanWrite {
  return {
    teamId,
    trace: {
      id: randomUUID(),
      name: null,
      nameSource: null,
      sessionId: null,
      tags: [],
      metadata: null,
      ...trace,
    },
    spanId: 'span-1',
    parentSpanId: null,
    name: 'step',
    kind: 'other',
    status: 'unset',
    startTimeMs: Date.parse('2026-11-21T12:00:00.000Z'),
    endTimeMs: null,
    model: null,
    provider: null,
    promptTokens: null,
    completionTokens: null,
    totalTokens: null,
    costNano: null,
    promptVersionId: null,
    errorType: null,
    errorCode: null,
    hasWarning: false,
    attributes: {},
    input: null,
    output: null,
    variables: null,
    ...parts,
  }
}
