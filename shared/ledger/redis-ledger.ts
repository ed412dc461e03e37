import { type AdmitBatch, periodLetter, type QuietBatch } from './batches.js'
import { type TeamKeys, teamKeys } from './keys.js'
import {
  type AdmitCall,
  type BudgetCounter,
  type BudgetPeriod,
  type BudgetSpend,
  HOLD_TTL_MS,
  type Hold,
  type Ledger,
  type Verdict,
} from './ledger.js'
import type { RedisStore, Run } from './redis-store.js'
import { loadScripts, type ScriptName } from './scripts.js'
import { type TeamTurn, Turns } from './turns.js'

export interface LedgerTuning {
  /** Default HOLD_TTL_MS; tests shorten it. */
  holdTtlMs?: number
  /** Added to the store's clock; tests roll periods and windows with it. */
  clockOffsetMs?: number
}

export interface RedisLedgerOptions extends LedgerTuning {
  keyPrefix?: string
}

/**
 * The ledger on Redis: lua/*.lua, one round trip a call. All admits of one team in one event-loop turn are one script
 * call, and so are its settles; the scripts of a turn leave in one write. Redis is a cache of the charge rows: a
 * flushed one answers epoch 0 and `unseeded`, which makes proxies reload and seed.
 */
export class RedisLedger implements Ledger {
  private readonly scripts = loadScripts()
  private readonly prefix: string
  private readonly header: string
  private readonly turns: Turns

  constructor(
    private readonly store: RedisStore,
    options: RedisLedgerOptions = {},
  ) {
    this.prefix = options.keyPrefix ?? ''
    this.header = `${options.holdTtlMs ?? HOLD_TTL_MS} ${options.clockOffsetMs ?? 0}`
    this.turns = new Turns(this.prefix, turns => this.send(turns))
  }

  admit(call: AdmitCall): Promise<Verdict> {
    return this.turns.admit(call)
  }

  settle(hold: Hold, actual: { costNano: number; tokens: number }): Promise<void> {
    return this.turns.settle(hold, actual)
  }

  release(hold: Hold): Promise<void> {
    return this.turns.settle(hold, { costNano: 0, tokens: 0 })
  }

  extend(hold: Hold, estimateNano: number): Promise<void> {
    return this.turns.extend(hold, estimateNano)
  }

  renew(holds: readonly Hold[]): Promise<void> {
    return this.turns.renew(holds)
  }

  async look(teamId: string, credentialId: string): Promise<{ epoch: number; revoked: boolean }> {
    const reply = await this.run('look', [this.keys(teamId).state], [credentialId])
    const [epoch, revoked] = reply.split(' ')
    return { epoch: Number(epoch), revoked: revoked === '1' }
  }

  async publish(teamId: string, change: { epoch: number; revokedIds?: readonly string[] }): Promise<void> {
    const { state, revoked } = this.keys(teamId)
    await this.run(
      'publish',
      [state, revoked],
      [this.header, String(change.epoch), ...(change.revokedIds ?? [])],
    )
  }

  async retract(teamId: string, from: number, to: number): Promise<void> {
    await this.run('retract', [this.keys(teamId).state], [String(from), String(to)])
  }

  async spend(teamId: string, budgets: readonly BudgetPeriod[]): Promise<(BudgetSpend | null)[]> {
    if (budgets.length === 0) return []
    const items = budgets.map(budget => `${budget.budgetId} ${periodLetter(budget.period)}`)
    const reply = await this.run('spend', holdKeys(this.keys(teamId)), [this.header, ...items])
    return reply.split(' ').map(word => {
      if (word === '-') return null
      const [settled, held] = word.split(',')
      return { settledNano: Number(settled), heldNano: Number(held) }
    })
  }

  async seed(teamId: string, counters: readonly BudgetCounter[]): Promise<void> {
    if (counters.length === 0) return
    await this.run('seed', [this.keys(teamId).state], counters.map(counterItem))
  }

  async raise(teamId: string, counters: readonly BudgetCounter[]): Promise<void> {
    const args = [this.header, ...counters.map(counterItem)]
    await this.run('raise', holdKeys(this.keys(teamId)), args)
  }

  ping(): Promise<void> {
    return this.store.ping()
  }

  async close(): Promise<void> {
    this.turns.end()
    await this.store.close()
  }

  private keys(teamId: string): TeamKeys {
    return teamKeys(this.prefix, teamId)
  }

  private run(name: ScriptName, keys: string[], args: string[]): Promise<string> {
    return this.store.run(this.scripts[name], keys, args)
  }

  private send(turns: ReadonlyMap<string, TeamTurn>): void {
    const runs: Run[] = []
    for (const [teamId, turn] of turns) {
      const keys = holdKeys(this.keys(teamId))
      for (const batch of turn.extends) runs.push(this.quietRun('extend', keys, batch.items, batch))
      for (const batch of turn.settles)
        runs.push(this.quietRun('settle', [...keys, ...batch.windowKeys], [inOneText(batch.items)], batch))
      for (const batch of turn.renews)
        runs.push(this.quietRun('renew', keys, [this.header, ...batch.items], batch))
      for (const batch of turn.admits) runs.push(this.admitRun(keys, batch))
    }
    this.store.send(runs)
  }

  private admitRun(keys: string[], batch: AdmitBatch): Run {
    return {
      script: this.scripts.admit,
      keys: [...keys, ...batch.windowKeys],
      args: [this.header, String(batch.items.length), ...batch.profiles, inOneText(batch.items)],
      onReply: text => batch.answer(text),
      onFailure: cause => batch.fail(cause),
      onLate: text => this.turns.giveBack(batch.holdsIn(text)),
    }
  }

  private quietRun(
    name: 'extend' | 'settle' | 'renew',
    keys: string[],
    args: string[],
    batch: QuietBatch,
  ): Run {
    return {
      script: this.scripts[name],
      keys,
      args,
      onReply: () => batch.done.resolve(),
      onFailure: cause => batch.done.fail(cause),
    }
  }
}

const holdKeys = (keys: TeamKeys): string[] => [keys.state, keys.holds, keys.expiry]

/** A line each: arguments of their own cost the client 3 thousand instructions a call more. */
const inOneText = (items: readonly string[]): string => items.join('\n')

const counterItem = (counter: BudgetCounter): string =>
  `${counter.budgetId} ${counter.periodKey} ${counter.settledNano}`
