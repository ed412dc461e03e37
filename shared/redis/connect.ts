import { Cluster, Redis, type RedisOptions } from 'ioredis'

/** A node that does not take the connection by then is passed over. */
const CONNECT_MS = 1000

/**
 * One URL: Redis or Valkey, `rediss://` for TLS. Several, separated by commas: the seed nodes of a cluster.
 *
 * @param single options of the one client. @param nodes those of each node's client, where they are others than usual.
 */
export function connectRedis(
  redisUrl: string,
  single: Omit<RedisOptions, 'replyMapping'>,
  nodes: NodeOptions = {},
): Redis | Cluster {
  const urls = redisUrl.split(',').map(url => url.trim())
  return urls.length === 1 ? new Redis(redisUrl, single) : connectCluster(urls, nodes)
}

type NodeOptions = Pick<RedisOptions, 'commandTimeout' | 'maxRetriesPerRequest'>

/**
 * The clients of a Redis Cluster. A command fails at once while the cluster is away: ioredis would keep it until the
 * cluster is back, for hours if need be, with no deadline. It reconnects by itself, for ever.
 *
 * @param urls the seed nodes; user, password and TLS of the first are every node's.
 * @param nodes more options of each node's client.
 */
function connectCluster(urls: readonly string[], nodes: NodeOptions): Cluster {
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
