import { type Readable, Transform } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.js'
import { createIngestGate, type IngestGate, type Visit } from './ingest-gate.js'
import { registerOtlp } from './otlp/routes.js'
import { registerPostTraces } from './post-traces.js'

/** POST /traces and OTLP over HTTP, behind one gate. */
export function registerTraceIngestion(
  app: FastifyInstance,
  deps: Deps,
  gate: IngestGate = createIngestGate(),
): void {
  app.register(async scope => {
    guard(scope, gate)
    registerPostTraces(scope, deps, gate)
    registerOtlp(scope, deps, gate)
  })
}

/** Every request of the scope is let in after its caller is known and before its body is read. */
function guard(scope: FastifyInstance, gate: IngestGate): void {
  scope.addHook('preParsing', async (request, reply, payload: Readable) => {
    const declared = Number(request.headers['content-length'] ?? Number.NaN)
    const visit = gate.enter(Number.isFinite(declared) ? declared : 0)
    // Answered or broken off: the response closes either way.
    reply.raw.once('close', () => visit.leave())
    return Number.isFinite(declared) ? payload : counted(payload, visit)
  })
}

/**
 * A body of undeclared length takes its room as it comes. Piped by hand: `pipeline` would close the client's socket
 * before the refusal is on it.
 */
function counted(body: Readable, visit: Visit): Transform {
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        visit.grow(chunk.length)
        done(null, chunk)
      } catch (error) {
        done(error as Error)
      }
    },
  })
  body.once('error', error => counter.destroy(error))
  return body.pipe(counter)
}
