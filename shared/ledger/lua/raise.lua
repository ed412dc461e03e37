-- Raises counters that are lower than the charge rows say; one that is absent stays absent, the next call seeds it.
-- ARGV[2...]: "<budget id> <period key> <settled>" each. Also collects the orphans of a team that nobody calls.
expireHolds(256)
for i = 2, #ARGV do
  local budgetId, key, truth = string.match(ARGV[i], '^(%S+) (%S+) (%d+)$')
  local field = budgetId .. ':' .. key .. ':s'
  local settled = redis.call('HGET', stateKey, field)
  if settled and tonumber(settled) < tonumber(truth) then redis.call('HSET', stateKey, field, truth) end
end
return '0'
