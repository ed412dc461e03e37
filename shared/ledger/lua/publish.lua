-- KEYS[1] state hash, KEYS[2] sorted set of revoked ids by the second of their revocation. ARGV[2] = epoch, then revoked
-- ids. The epoch never goes back. A marker is kept for 45 days, like the state itself: by then the epoch that was
-- announced with it has made every proxy load the credential again.
local MARKER_TTL_SECONDS = 45 * 86400
local epoch = tonumber(ARGV[2])
local writes = { 'e', math.max(epoch, tonumber(redis.call('HGET', KEYS[1], 'e') or 0)) }
for i = 3, #ARGV do
  writes[#writes + 1] = ARGV[i]
  writes[#writes + 1] = nowSecond
  redis.call('ZADD', KEYS[2], nowSecond, ARGV[i])
end
redis.call('HSET', KEYS[1], unpack(writes))
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', nowSecond - MARKER_TTL_SECONDS, 'LIMIT', 0, 100)
if #old > 0 then
  redis.call('HDEL', KEYS[1], unpack(old))
  redis.call('ZREM', KEYS[2], unpack(old))
end
redis.call('EXPIRE', KEYS[1], MARKER_TTL_SECONDS)
redis.call('EXPIRE', KEYS[2], MARKER_TTL_SECONDS)
return '0'
