import { randomUUID } from 'node:crypto'
import type { Principal } from '../access/principal.js'
import type { Sql } from '../db/sql.js'
import type { AuditEventName, AuditMetadata, AuditSubject } from './events.js'
import { insertAuditEvent } from './queries.js'

/**
 * Writes one row of the audit trail, always in the transaction of the change that it records: either both are there or
 * neither (spec 4, section 6).
 *
 * @param actor who changed something; a team-scoped key leaves `actor_id` empty.
 * @param nowMs epoch milliseconds, `deps.now()`.
 */
export async function record<E extends AuditEventName>(
  tx: Sql,
  actor: Pick<Principal, 'teamId' | 'userId'>,
  nowMs: number,
  event: E,
  metadata: AuditMetadata[E],
  subject: AuditSubject = {},
): Promise<void> {
  await insertAuditEvent(tx, {
    teamId: actor.teamId,
    id: randomUUID(),
    event,
    actorId: actor.userId,
    metadata,
    promptId: subject.promptId ?? null,
    toolId: subject.toolId ?? null,
    targetId: subject.targetId ?? null,
    createdAt: new Date(nowMs),
  })
}
