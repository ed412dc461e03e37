import { validation } from '../../shared/errors/app-error.js'

/**
 * That PostgreSQL can read a value back that it stores as JSON text: no NUL and no half of a surrogate pair in a string
 * or key. Deep nesting was refused with the body.
 *
 * @throws AppError VALIDATION_ERROR
 */
export function checkStorable(value: unknown): void {
  if (typeof value === 'string') {
    if (value.includes('\u0000')) throw validation('Text must not contain the NUL character.')
    if (/\p{Surrogate}/u.test(value)) throw validation('Text must not contain half of a surrogate pair.')
  } else if (Array.isArray(value)) {
    for (const item of value) checkStorable(item)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, member] of Object.entries(value)) {
      checkStorable(key)
      checkStorable(member)
    }
  }
}
