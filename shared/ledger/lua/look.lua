-- KEYS[1] state hash. ARGV[1] = credential id. Reply: "<epoch> <1 when revoked>".
local values = redis.call('HMGET', KEYS[1], 'e', ARGV[1])
return (values[1] or '0') .. ' ' .. (values[2] and '1' or '0')
