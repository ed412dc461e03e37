import { Cluster, type RedisOptions } from 'ioredis'

/** A node that does not take the connection by then is passed over. */
const CONNECT_MS = 1000

/**
 * The clients of a Redis Cluster. A command fails at once while the cluster is away: ioredis would keep it until the
 * cluster is back, for hours if need be, with no deadline. It reconnects by itself, for ever.
 *
 * @param urls the seed nodes; user, password and TLS of the first are every node's.
 * @param nodes more options of each node's client.
 */
export function connectCluster(
  urls: readonly string[],
  nodes: Pick<RedisOptions, 'commandTimeout' | 'maxRetriesPerRequest'> = {},
): Cluster {
  const { protocol, username, password } = new URL(urls[0] as string)
  return new Cluster([...urls], {
    enableOfflineQueue: false,
    redisOptions: {
      connectTimeout: CONNECT_MS,
      ...(protocol === 'rediss:' && { tls: {} }),
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      ...nodes,
    },
    clusterRetryStrategy: attempt => Math.min(50 * 2 ** Math.min(attempt, 4), 500),
    // A command that fails on one node is not tried on others for longer than the deadline.
    maxRedirections: 3,
  })
}
