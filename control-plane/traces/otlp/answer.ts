import type { FastifyReply } from 'fastify'
import type { Answer } from '../../../shared/contract/endpoint.js'
import type { ingestOtlp } from '../../../shared/contract/trace-ingestion.js'
import { type Encoding, encodeResponse, type PartialSuccess } from './decode.js'

/**
 * Answers in the request's own form: protobuf here and now, JSON through the contract.
 *
 * @param rejected null: everything was stored.
 * @returns the JSON form; of no consequence once the protobuf form is sent.
 */
export function answerExport(
  reply: FastifyReply,
  encoding: Encoding,
  rejected: PartialSuccess | null,
): Answer<typeof ingestOtlp> {
  if (encoding === 'protobuf') {
    reply.code(200).type('application/x-protobuf').send(encodeResponse(rejected))
  }
  return rejected === null
    ? {}
    : { partialSuccess: { ...rejected, rejectedSpans: String(rejected.rejectedSpans) } }
}
