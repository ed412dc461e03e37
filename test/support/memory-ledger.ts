import type { Ledger } from '../../shared/ledger/ledger.js'

const unused = () => Promise.reject(new Error('Not part of the stand-in ledger.'))

/** Stands in until the PostgreSQL ledger is there: epochs and revocations only. */
export function memoryLedger(): Ledger {
  const teams = new Map<string, { epoch: number; revoked: Set<string> }>()
  const entry = (teamId: string) => {
    const known = teams.get(teamId) ?? { epoch: 0, revoked: new Set<string>() }
    teams.set(teamId, known)
    return known
  }
  return {
    admit: unused,
    settle: unused,
    release: unused,
    extend: unused,
    renew: unused,
    look: async (teamId, id) => ({ epoch: entry(teamId).epoch, revoked: entry(teamId).revoked.has(id) }),
    publish: async (teamId, change) => {
      const team = entry(teamId)
      team.epoch = Math.max(team.epoch, change.epoch)
      for (const id of change.revokedIds ?? []) team.revoked.add(id)
    },
    retract: async (teamId, from, to) => {
      const team = entry(teamId)
      if (team.epoch === from) team.epoch = to
    },
    spend: async (_teamId, budgets) => budgets.map(() => null),
    seed: async () => {},
    raise: async () => {},
    ping: async () => {},
    close: async () => {},
  }
}
