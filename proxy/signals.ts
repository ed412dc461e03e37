import type { Logger } from '../shared/log/logger.js'

interface Ending {
  drain(): Promise<void>
  /** What must not outlive this process when it ends at once. */
  kill?(): void
}

/** As this process began: a parent that dies while we start must not leave us running for ever. */
const hadParent = process.channel !== undefined

/**
 * Ends the process after `drain` on SIGTERM, SIGINT, a supervisor's message, or when the parent that holds the other
 * end of the IPC channel is gone; at once on a second signal.
 *
 * What nobody caught: a rejected promise belongs to one call, so it is logged and the process goes on; an exception
 * leaves the process in a state that nobody knows, so it drains and ends with status 1, and whoever supervises it
 * starts a new one.
 */
export function endOnSignals({ drain, kill }: Ending, log: Logger): void {
  let ending = false
  let signals = 0

  function end(why: string, status: number): void {
    if (ending) return
    ending = true
    log.info({ why }, 'ending')
    drain().then(
      () => process.exit(status),
      (error: unknown) => {
        log.error({ err: error }, 'the drain failed')
        process.exit(1)
      },
    )
  }

  function onSignal(signal: NodeJS.Signals): void {
    if (++signals > 1) {
      log.warn('a second signal: ending at once')
      kill?.()
      process.exit(1)
    }
    end(signal, 0)
  }

  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  // Not counted as a signal: a wrapper may turn the same event into a SIGTERM.
  const parentGone = () => end('the parent is gone', 0)
  if (process.connected) process.once('disconnect', parentGone)
  else if (hadParent) parentGone()
  process.on('message', message => {
    if ((message as { agh?: string } | null)?.agh === 'drain') end('the supervisor says so', 0)
  })
  process.on('unhandledRejection', error =>
    log.error({ err: error }, 'a rejected promise that nobody awaits'),
  )
  process.on('uncaughtException', error => {
    log.fatal({ err: error }, 'an exception that nobody caught')
    end('an uncaught exception', 1)
  })
}
