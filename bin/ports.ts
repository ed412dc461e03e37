import { createServer } from 'node:net'
import { ConfigError } from '../shared/config/environment.js'

/** A port that is free on loopback now; the caller takes it at once. */
export const freePort = (host = '127.0.0.1'): Promise<number> => probe(host, 0)

/**
 * Checks that a listener can be opened there, before anything is started.
 *
 * @returns the port; for 0 a free one.
 * @throws ConfigError that names the variable to change.
 */
export async function usablePort(variable: string, host: string, port: number): Promise<number> {
  try {
    return await probe(host, port)
  } catch (error) {
    throw new ConfigError(explain(variable, host, port, (error as NodeJS.ErrnoException).code))
  }
}

function explain(variable: string, host: string, port: number, code: string | undefined): string {
  const hostVariable = variable.replace('PORT', 'HOST')
  switch (code) {
    case 'EADDRINUSE':
      return `${variable} holds ${port}, which another program on ${host} listens on. Stop that program, or set ${variable} to another port: ${variable}=${port + 10} npm start`
    case 'EACCES':
      return `${variable} holds ${port}, which this user may not listen on; ports below 1024 are for root. Set ${variable} to a higher one.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${hostVariable} holds ${JSON.stringify(host)}, which is not an address of this machine; it may hold 127.0.0.1, 0.0.0.0 or one of the machine's own.`
    default:
      return `agh cannot listen on ${host}:${port} (${hostVariable}, ${variable}): ${code}.`
  }
}

function probe(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address()
      const taken = typeof address === 'object' && address !== null ? address.port : port
      server.close(() => resolve(taken))
    })
  })
}
