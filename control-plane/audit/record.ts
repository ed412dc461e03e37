import { randomUUID } from 'node:crypto'
import type { AuditEventName } from '../../shared/contract/audit.js'
import type { Principal } from '../access/principal.js'
import type { Sql } from '../db/sql.js'
import type { AuditMetadata, AuditSubject } from './events.js'
import { insertAuditEvent } from './queries.js'

/** Whoever changes something: a caller, the owner that `agh start` makes, or agh itself (no person). */
export type Actor = Pick<Principal, 'teamId' | 'userId'>

/**
 * Writes one row of the audit trail, always in the transaction of the change that it records: either both are there or
 * neither (spec 4, section 6).
 *
 * @param actor who changed something; a team-scoped key leaves `actor_id` empty.
 * @param nowMs epoch milliseconds, `deps.now()`.
 */
export async function record<E extends AuditEventName>(
  tx: Sql,
  actor: Actor,
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
