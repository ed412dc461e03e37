/** What the pool asks a worker to do. Values and schemas travel as JSON text: no live object crosses the wall. */
export type Job =
  | { kind: 'check-transform'; source: string }
  | { kind: 'run-transform'; source: string; input: string }
  | { kind: 'check-schema'; schema: string }
  | { kind: 'validate'; schema: string; value: string }

/** JSON text of the value, or a sentence that the author of the code or schema may read. */
export type Outcome = { ok: true; json: string } | { ok: false; message: string }

export interface Reply {
  outcome: Outcome
  /** The worker must not be used again: its engine was left in an unknown state or keeps too much memory. */
  isSpent: boolean
}

/** What a worker says when it can take jobs. */
export interface Ready {
  /** For a ThreadClock. */
  thread: string | null
}

export interface WorkerSettings {
  /** How long a transform may run between two looks at the clock; a single slow built-in is left to the wall clock. */
  interruptMs: number
}
