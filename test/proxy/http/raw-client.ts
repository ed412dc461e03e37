import { connect } from 'node:net'

export interface RawAnswer {
  /** One character per byte. */
  text: string
  /** Status of every final response. */
  statuses: number[]
  closed: boolean
}

/**
 * Sends bytes as they are and collects what comes back.
 *
 * @param pieces strings (one character per byte), sent apart, `gapMs` between them.
 * @param waitMs how long to wait for the server to close.
 */
export function sendRaw(
  port: number,
  pieces: string[],
  { waitMs = 300, gapMs = 3, until }: { waitMs?: number; gapMs?: number; until?: RegExp } = {},
): Promise<RawAnswer> {
  return new Promise(resolve => {
    let text = ''
    const socket = connect(port, '127.0.0.1')
    socket.setNoDelay(true)
    let timer: NodeJS.Timeout | undefined
    let done = false
    const finish = (closed: boolean) => {
      done = true
      clearTimeout(timer)
      socket.destroy()
      const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(match => Number(match[1]))
      resolve({ text, statuses: statuses.filter(status => status >= 200), closed })
    }
    socket.on('data', data => {
      text += data.toString('latin1')
      if (until?.test(text)) finish(false)
    })
    socket.on('close', () => finish(true))
    socket.on('error', () => {})
    const [first, ...rest] = pieces
    socket.write(first ?? '', 'latin1')
    const next = () => {
      if (done) return
      const piece = rest.shift()
      if (piece === undefined) {
        timer = setTimeout(() => finish(false), waitMs)
        return
      }
      if (!socket.destroyed) socket.write(piece, 'latin1')
      setTimeout(next, gapMs)
    }
    setTimeout(next, gapMs)
  })
}
