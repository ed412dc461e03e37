import { AdmitBatch, BATCH_LIMIT, isHeld, PlainBatch, SettleBatch } from './batches.js'
import type { AdmitCall, Hold, Verdict } from './ledger.js'

/** What one team's calls ask of the ledger in one event-loop turn. Batches are full except the last of each kind. */
export class TeamTurn {
  readonly extends: PlainBatch[] = []
  readonly settles: SettleBatch[] = []
  readonly renews: PlainBatch[] = []
  readonly admits: AdmitBatch[] = []

  get isEmpty(): boolean {
    return this.extends.length + this.settles.length + this.renews.length + this.admits.length === 0
  }

  /** The oldest batch of each kind, taken out of this turn. */
  takeOneOfEach(): TeamTurn {
    const taken = new TeamTurn()
    taken.extends.push(...this.extends.splice(0, 1))
    taken.settles.push(...this.settles.splice(0, 1))
    taken.renews.push(...this.renews.splice(0, 1))
    taken.admits.push(...this.admits.splice(0, 1))
    return taken
  }
}

/**
 * Collects the calls of an event-loop turn, so that each team costs the store one command a kind and the proxy one
 * write: with a command per call the writes alone cost 50 µs a call. `setImmediate` runs once all input of the turn
 * has been handled; `nextTick` would run after each callback and batch nothing.
 */
export class Turns {
  private byTeam = new Map<string, TeamTurn>()
  private isScheduled = false

  /**
   * @param onEnd what gives budget back should be sent first, so that the admits of the same turn see it.
   * @param isBusy a busy team's turn goes on until `endOf` is called.
   */
  constructor(
    private readonly keyPrefix: string,
    private readonly onEnd: (turns: ReadonlyMap<string, TeamTurn>) => void,
    private readonly isBusy: ((teamId: string) => boolean) | null = null,
  ) {}

  admit(call: AdmitCall): Promise<Verdict> {
    const invalid = amountError(call.estimateNano) ?? amountError(call.estimateTokens)
    if (invalid !== null) return Promise.reject(invalid)
    return new Promise((resolve, reject) => {
      const { admits } = this.turnOf(call.teamId)
      const batch = openBatch(admits, () => new AdmitBatch(this.keyPrefix, call.teamId))
      batch.add(call, resolve, reject)
    })
  }

  settle(hold: Hold, actual: { costNano: number; tokens: number }): Promise<void> {
    const invalid = amountError(actual.costNano) ?? amountError(actual.tokens)
    if (invalid !== null) return Promise.reject(invalid)
    if (!isHeld(hold)) return Promise.resolve()
    const { settles } = this.turnOf(hold.teamId)
    const batch = openBatch(settles, () => new SettleBatch(this.keyPrefix, hold.teamId))
    batch.add(hold, actual.costNano, actual.tokens)
    return batch.done.promise
  }

  extend(hold: Hold, estimateNano: number): Promise<void> {
    const invalid = amountError(estimateNano)
    if (invalid !== null) return Promise.reject(invalid)
    if (!isHeld(hold)) return Promise.resolve()
    const batch = openBatch(this.turnOf(hold.teamId).extends, () => new PlainBatch())
    batch.items.push(`${estimateNano} ${hold.requestId}`)
    return batch.done.promise
  }

  async renew(holds: readonly Hold[]): Promise<void> {
    const batches = new Set<PlainBatch>()
    for (const hold of holds.filter(isHeld)) {
      const batch = openBatch(this.turnOf(hold.teamId).renews, () => new PlainBatch())
      batch.items.push(hold.requestId)
      batches.add(batch)
    }
    await Promise.all([...batches].map(batch => batch.done.promise))
  }

  /**
   * Releases holds of admits whose answer came after the deadline: their callers were told that the ledger is away,
   * so nobody else would, until the holds expire.
   */
  giveBack(holds: readonly Hold[]): void {
    for (const hold of holds) this.settle(hold, { costNano: 0, tokens: 0 }).catch(() => {})
  }

  /** Ends the turn now, but for busy teams. */
  end(): void {
    this.isScheduled = false
    const turns = this.byTeam
    this.byTeam = new Map()
    if (this.isBusy !== null) {
      for (const [teamId, turn] of turns) {
        if (!this.isBusy(teamId)) continue
        this.byTeam.set(teamId, turn)
        turns.delete(teamId)
      }
    }
    if (turns.size > 0) this.onEnd(turns)
  }

  /** Ends one team's turn now. */
  endOf(teamId: string): void {
    const turn = this.byTeam.get(teamId)
    if (turn === undefined) return
    this.byTeam.delete(teamId)
    this.onEnd(new Map([[teamId, turn]]))
  }

  private turnOf(teamId: string): TeamTurn {
    if (!this.isScheduled) {
      this.isScheduled = true
      setImmediate(() => this.end())
    }
    let turn = this.byTeam.get(teamId)
    if (turn === undefined) {
      turn = new TeamTurn()
      this.byTeam.set(teamId, turn)
    }
    return turn
  }
}

function openBatch<B extends { items: string[] }>(batches: B[], create: () => B): B {
  const last = batches.at(-1)
  if (last !== undefined && last.items.length < BATCH_LIMIT) return last
  const batch = create()
  batches.push(batch)
  return batch
}

/** A bad amount must not reach a command that it shares with other calls. */
const amountError = (amount: number): RangeError | null =>
  Number.isSafeInteger(amount) && amount >= 0
    ? null
    : new RangeError(`${amount} is not an amount of the ledger: a whole number from 0.`)
