import { windowKey } from './keys.js'
import { type AdmitCall, type Hold, LedgerUnavailable, type Verdict } from './ledger.js'
import type { Period } from './period.js'

/** Calls of one batch; more would only make the store serve others later. Lua unpacks at most 8,000 values at once. */
export const BATCH_LIMIT = 128

const letters = { day: 'd', week: 'w', month: 'm', total: 'a' } as const satisfies Record<Period, string>
export const periodLetter = (period: Period): string => letters[period]

interface Waiter {
  call: AdmitCall
  resolve(verdict: Verdict): void
  reject(error: LedgerUnavailable): void
}

/** What the calls of one credential have in common, sent once a batch. */
interface Profile {
  call: AdmitCall
  number: number
}

/** The admits of one team in one event-loop turn, encoded for lua/admit.lua and its twin in SQL, ledger_admit. */
export class AdmitBatch {
  readonly items: string[] = []
  readonly profiles: string[] = []
  readonly windowKeys: string[] = []
  private readonly waiters: Waiter[] = []
  private readonly known: Profile[] = []

  constructor(
    private readonly prefix: string,
    private readonly teamId: string,
  ) {}

  add(call: AdmitCall, resolve: Waiter['resolve'], reject: Waiter['reject']): void {
    const profile = this.profileOf(call)
    this.items.push(`${profile} ${call.estimateNano} ${call.estimateTokens} ${call.requestId}`)
    this.waiters.push({ call, resolve, reject })
  }

  answer(text: string): void {
    const words = text.split(' ')
    const nowMs = Number(words[0])
    const epoch = Number(words[1])
    for (let i = 0; i < this.waiters.length; i++) {
      const { call, resolve } = this.waiters[i] as Waiter
      resolve(readVerdict(call, words[i + 2] as string, nowMs, epoch))
    }
  }

  fail(cause: unknown): void {
    const error = new LedgerUnavailable(cause)
    for (const waiter of this.waiters) waiter.reject(error)
  }

  /** Holds that an answer after the deadline made, which nobody knows of. */
  holdsIn(text: string): Hold[] {
    const words = text.split(' ')
    const nowMs = Number(words[0])
    return this.waiters.flatMap(({ call }, i) => (words[i + 2]?.startsWith('a') ? [holdOf(call, nowMs)] : []))
  }

  private profileOf(call: AdmitCall): number {
    // From the newest: calls of one turn tend to be of one key. Few credentials call in one turn of one team.
    for (let i = this.known.length - 1; i >= 0; i--) {
      const profile = this.known[i] as Profile
      if (isAlike(profile.call, call)) return profile.number
    }
    const { credentialId, maxRpm, maxTpm, knownEpoch } = call
    let text = `${credentialId} ${this.windowOf(call)} ${maxRpm ?? '-'} ${maxTpm ?? '-'} ${knownEpoch ?? '-'}`
    for (const budget of call.budgets) {
      text += ` ${budget.budgetId} ${letters[budget.period]} ${budget.capNano}`
    }
    const number = this.profiles.push(text)
    this.known.push({ call, number })
    return number
  }

  /** Index into KEYS, where the windows follow the three keys of the team; 0 = no limit, no window. */
  private windowOf(call: AdmitCall): number {
    if (call.maxRpm === null && call.maxTpm === null) return 0
    return windowIndex(this.windowKeys, windowKey(this.prefix, this.teamId, call.credentialId))
  }
}

/** Finished calls of one team in one turn, encoded for lua/settle.lua and ledger_settle. */
export class SettleBatch implements QuietBatch {
  readonly items: string[] = []
  readonly windowKeys: string[] = []
  readonly done = new Completion()

  constructor(
    private readonly prefix: string,
    private readonly teamId: string,
  ) {}

  add(hold: Hold, costNano: number, tokens: number): void {
    const window = hold.hasTokenWindow
      ? windowIndex(this.windowKeys, windowKey(this.prefix, this.teamId, hold.credentialId))
      : 0
    this.items.push(`${costNano} ${tokens} ${window} ${hold.requestId}`)
  }
}

/** A batch whose calls only want to know that it was done. */
export interface QuietBatch {
  items: string[]
  done: Completion
}

/** Extends and renews of one team in one turn. */
export class PlainBatch implements QuietBatch {
  readonly items: string[] = []
  readonly done = new Completion()
}

/** One promise for all calls of a batch: they share its fate. */
class Completion {
  readonly promise: Promise<void>
  resolve!: () => void
  private reject!: (error: LedgerUnavailable) => void

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
    // A caller that does not wait for its settle must not bring the process down; those that wait see the failure.
    this.promise.catch(() => {})
  }

  fail(cause: unknown): void {
    this.reject(new LedgerUnavailable(cause))
  }
}

const FIRST_WINDOW = 4

function windowIndex(windows: string[], key: string): number {
  const at = windows.indexOf(key)
  return at >= 0 ? at + FIRST_WINDOW : windows.push(key) - 1 + FIRST_WINDOW
}

function isAlike(a: AdmitCall, b: AdmitCall): boolean {
  return (
    a.credentialId === b.credentialId &&
    a.maxRpm === b.maxRpm &&
    a.maxTpm === b.maxTpm &&
    a.knownEpoch === b.knownEpoch &&
    (a.budgets === b.budgets ||
      (a.budgets.length === b.budgets.length &&
        a.budgets.every((budget, i) => {
          const other = b.budgets[i]
          return (
            other !== undefined &&
            budget.budgetId === other.budgetId &&
            budget.period === other.period &&
            budget.capNano === other.capNano
          )
        })))
  )
}

/** A call with neither budget nor token limit leaves nothing behind that would have to be settled. */
export const isHeld = (hold: Hold): boolean => hold.budgets.length > 0 || hold.hasTokenWindow

export function holdOf(call: AdmitCall, admittedAtMs: number): Hold {
  return {
    requestId: call.requestId,
    teamId: call.teamId,
    credentialId: call.credentialId,
    estimateNano: call.estimateNano,
    estimateTokens: call.estimateTokens,
    admittedAtMs,
    budgets: call.budgets,
    hasTokenWindow: call.maxTpm !== null,
  }
}

/** One word of the script's reply; its letters are explained at the top of lua/admit.lua. */
function readVerdict(call: AdmitCall, word: string, nowMs: number, epoch: number): Verdict {
  const rest = word.slice(1)
  switch (word[0]) {
    case 'a':
      return {
        kind: 'admitted',
        epoch,
        hold: holdOf(call, nowMs),
        remainingRequests: rest === '-' ? null : Number(rest),
      }
    case 'b':
      return { kind: 'over_budget', epoch, budgetId: budgetAt(call, rest) }
    case 'u':
      return { kind: 'unseeded', epoch, budgetIds: rest.split('.').map(at => budgetAt(call, at)) }
    case 'q':
      return { kind: 'rate_limited', epoch, window: 'requests', retryAfterSeconds: Number(rest) }
    case 't':
      return { kind: 'rate_limited', epoch, window: 'tokens', retryAfterSeconds: Number(rest) }
    case 'o':
      return { kind: 'outdated', epoch }
    default:
      return { kind: 'revoked', epoch }
  }
}

const budgetAt = (call: AdmitCall, position: string): string =>
  call.budgets[Number(position) - 1]?.budgetId ?? ''
