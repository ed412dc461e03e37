import { AppError } from '../../shared/errors/app-error.js'

/** Runs work while its team has less than `most` under way. @throws AppError RATE_LIMITED above that. */
export function createTurnstile(most: number): <T>(teamId: string, work: () => Promise<T>) => Promise<T> {
  const underWay = new Map<string, number>()
  return async (teamId, work) => {
    const count = underWay.get(teamId) ?? 0
    if (count >= most) {
      throw new AppError('RATE_LIMITED', `More than ${most} executions at once; try again.`, {
        headers: { 'retry-after': '1' },
      })
    }
    underWay.set(teamId, count + 1)
    try {
      return await work()
    } finally {
      const left = (underWay.get(teamId) ?? 1) - 1
      if (left === 0) underWay.delete(teamId)
      else underWay.set(teamId, left)
    }
  }
}
