-- KEYS[1] state hash. ARGV: the epoch that was announced, the epoch to go back to. Only if nobody announced since.
if redis.call('HGET', KEYS[1], 'e') == ARGV[1] then redis.call('HSET', KEYS[1], 'e', ARGV[2]) end
return '0'
