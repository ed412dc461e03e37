-- Sets counters that are absent. ARGV: "<budget id> <period key> <settled>" each. Of each budget the two newest periods
-- of its present kind are kept: the current one, and the one before it for the calls that were admitted in it.
local STATE_TTL_SECONDS = 45 * 86400
local seeded = 0
for i = 1, #ARGV do
  local budgetId, key, settled = string.match(ARGV[i], '^(%S+) (%S+) (%d+)$')
  if redis.call('HSETNX', KEYS[1], budgetId .. ':' .. key .. ':s', settled) == 1 then
    seeded = seeded + 1
    local kept = { key }
    local known = redis.call('HGET', KEYS[1], budgetId .. ':k') or ''
    for other in string.gmatch(known, '%S+') do
      if #kept < 2 and string.sub(other, 1, 1) == string.sub(key, 1, 1) then
        kept[#kept + 1] = other
      else
        local name = budgetId .. ':' .. other
        redis.call('HDEL', KEYS[1], name .. ':s', name .. ':h')
      end
    end
    redis.call('HSET', KEYS[1], budgetId .. ':k', table.concat(kept, ' '))
  end
end
if redis.call('TTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], STATE_TTL_SECONDS) end
return tostring(seeded)
