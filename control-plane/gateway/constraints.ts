/** What PostgreSQL said when it refused a row; any other error is neither. */
export const isUniqueViolation = (error: unknown): boolean => sqlState(error) === '23505'
export const isForeignKeyViolation = (error: unknown): boolean => sqlState(error) === '23503'

const sqlState = (error: unknown): unknown =>
  error instanceof Error ? (error as { code?: unknown }).code : null
