/** What came of a run of somebody's JavaScript or schema: a value, or a sentence that its author may read. */
export type Verdict<T> = { ok: true; value: T } | { ok: false; message: string }

/**
 * Where code and schemas that users wrote are run: apart from the event loop, without I/O, with a cap on memory and a
 * wall clock (design D9; reliability notes, 5.2 and 5.4). JSON goes in and out, never a live object.
 *
 * `team` is whose turn a job takes while others wait. Every function throws AppError UNAVAILABLE when too many do.
 */
export interface Sandbox {
  /** Whether a transform parses and defines one top-level function named `transform` (spec 4, section 9 Tools). */
  checkTransform(source: string, team?: string): Promise<Verdict<null>>
  /** Calls the transform with one JSON value. */
  runTransform(source: string, input: unknown, team?: string): Promise<Verdict<unknown>>
  /** Whether a JSON Schema can be used: an object, within the limits of size and depth, no remote `$ref`. */
  checkSchema(schema: unknown, team?: string): Promise<Verdict<null>>
  /** Each way in which a value does not match a schema; an empty array when it does. */
  validate(schema: unknown, value: unknown, team?: string): Promise<Verdict<string[]>>
  close(): Promise<void>
}
