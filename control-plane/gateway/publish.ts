import { notFound } from '../../shared/errors/app-error.js'
import { inTransaction, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import {
  deleteOutboxEntry,
  insertOutboxEntry,
  listOutboxEntries,
  moveEpoch,
  type OutboxEntry,
  settledEpoch,
} from './queries.js'

/**
 * How a change reaches every proxy before the next call that starts after the change was answered (design D5).
 *
 * The epoch is announced in the ledger *before* the commit. A proxy that sees it early asks the directory, which takes
 * the team row `for share` and so waits for this transaction: it gets the new state, or the old one if this rolls
 * back. Announced after the commit instead, a crash in between would leave proxies on old configuration for ever.
 *
 * Failure stance: open. When the ledger cannot be reached the change is committed all the same and announced later
 * from the outbox; a proxy that lost the ledger drops all it has cached, so it serves nothing stale meanwhile.
 */
export type PublishDeps = Pick<Deps, 'sql' | 'ledger' | 'log'>

const REPUBLISH_EVERY_MS = 1_000

/**
 * The one way to commit a change that proxies cache: connections, models, virtual keys, budgets, API keys, roles,
 * memberships, trace settings.
 *
 * @param change runs in the transaction, after the changes of the team that began before it; what it throws rolls
 *   everything back and is thrown on.
 * @param options.revokedIds ids of virtual keys, API keys or sessions that stop working with this change.
 * @throws AppError NOT_FOUND when there is no such team.
 */
export async function changeTeam<T>(
  deps: PublishDeps,
  teamId: string,
  change: (tx: Sql) => Promise<T>,
  options: { revokedIds?: readonly string[] } = {},
): Promise<T> {
  const attempt: { entry: OutboxEntry | null; announced: Promise<boolean> } = {
    entry: null,
    announced: Promise.resolve(false),
  }
  let result: T
  try {
    result = await inTransaction(deps.sql, async tx => {
      // First: who changes a team has its row before any other, so no two of them wait for each other.
      const epoch = await moveEpoch(tx, teamId)
      if (epoch === null) throw notFound('Team')
      const changed = await change(tx)
      // Set before the attempt: an announcement that timed out may have arrived.
      attempt.entry = { teamId, epoch, revokedIds: [...(options.revokedIds ?? [])] }
      attempt.announced = announce(deps, attempt.entry)
      if (!(await attempt.announced)) await insertOutboxEntry(tx, attempt.entry)
      return changed
    })
  } catch (error) {
    // A connection that dies ends the transaction while its announcement is under way. Taken back before it has arrived
    // it would stay.
    await attempt.announced
    if (attempt.entry !== null) await withdraw(deps, attempt.entry)
    throw error
  }
  if (attempt.entry === null) return result
  if (await attempt.announced) {
    // Once more: a ledger that was flushed between announcement and commit has forgotten the announcement, and a
    // look-up in that moment has told it the old epoch.
    await announce(deps, attempt.entry)
  } else if (!(await announceFromOutbox(deps, attempt.entry))) {
    // The first attempt of the two may have met a passing fault.
    deps.log.warn({ teamId }, 'the ledger cannot be reached; a change waits in the outbox')
  }
  return result
}

/**
 * Waits until no writer of the team is about to commit, and takes an announcement back that no commit followed. Call it
 * inside a transaction: its row lock keeps the next writer from announcing until the transaction ends.
 *
 * @returns the team's committed epoch; null: no such team.
 */
export async function settleAnnouncement(
  deps: PublishDeps,
  tx: Sql,
  teamId: string,
  announcedEpoch: number,
): Promise<number | null> {
  const epoch = await settledEpoch(tx, teamId)
  if (epoch !== null && epoch < announcedEpoch) {
    await deps.ledger.retract(teamId, announcedEpoch, epoch).catch(error => {
      deps.log.warn(
        { err: error, teamId },
        'an announcement could not be taken back; the next look-up tries again',
      )
    })
  }
  return epoch
}

/** The transaction failed after it had announced. It may have been committed all the same: the row says. */
async function withdraw(deps: PublishDeps, { teamId, epoch }: OutboxEntry): Promise<void> {
  try {
    await inTransaction(deps.sql, tx => settleAnnouncement(deps, tx, teamId, epoch))
  } catch (error) {
    // The directory does the same when a proxy asks about the announced epoch.
    deps.log.warn({ err: error, teamId }, 'a failed change could not be checked; the next look-up settles it')
  }
}

async function announce(deps: PublishDeps, entry: OutboxEntry): Promise<boolean> {
  try {
    await deps.ledger.publish(entry.teamId, { epoch: entry.epoch, revokedIds: entry.revokedIds })
    return true
  } catch (error) {
    deps.log.debug({ err: error, teamId: entry.teamId }, 'the ledger did not take an announcement')
    return false
  }
}

async function announceFromOutbox(deps: PublishDeps, entry: OutboxEntry): Promise<boolean> {
  if (!(await announce(deps, entry))) return false
  await deleteOutboxEntry(deps.sql, entry.teamId, entry.epoch)
  return true
}

/**
 * Announces what the outbox holds, oldest first, up to the first failure. Several control planes may do so at once:
 * an announcement said twice changes nothing.
 *
 * @returns whether the outbox was emptied as far as it was read.
 */
export async function republish(deps: PublishDeps): Promise<boolean> {
  for (const entry of await listOutboxEntries(deps.sql)) {
    if (!(await announceFromOutbox(deps, entry))) return false
  }
  return true
}

/** Runs `republish` every second until stopped; the control plane's main starts it. */
export function startRepublisher(deps: PublishDeps, everyMs = REPUBLISH_EVERY_MS): { stop(): Promise<void> } {
  let running: Promise<void> | null = null
  const run = async () => {
    try {
      await republish(deps)
    } catch (error) {
      deps.log.warn({ err: error }, 'the outbox of the ledger could not be read')
    } finally {
      running = null
    }
  }
  const timer = setInterval(() => {
    running ??= run()
  }, everyMs)
  timer.unref()
  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}
