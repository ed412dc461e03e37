-- Raises the holds of streams that outgrew their estimates. Never refused: the money is being spent already.
-- ARGV: "<estimate> <request id>" each.
local estimates, requestIds = {}, {}
for i = 1, #ARGV do
  local estimate, requestId = string.match(ARGV[i], '^(%d+) (.+)$')
  -- The same request twice in one batch: the highest estimate counts, wherever the record is rewritten below.
  estimates[requestId] = math.max(estimates[requestId] or 0, tonumber(estimate))
  requestIds[i] = requestId
end
local records = redis.call('HMGET', holdsKey, unpack(requestIds))
local heldDeltas, writes = {}, {}
for i, requestId in ipairs(requestIds) do
  local record = records[i]
  local estimate = estimates[requestId]
  estimates[requestId] = nil
  if record and estimate then
    local before, rest = string.match(record, '^(%d+)(.*)$')
    local delta = estimate - tonumber(before)
    if delta > 0 then
      addPerBudget(heldDeltas, record, delta)
      writes[#writes + 1] = requestId
      writes[#writes + 1] = integer(estimate) .. rest
    end
  end
end
if #writes > 0 then
  redis.call('HSET', holdsKey, unpack(writes))
  applyToCounters(heldDeltas, nil)
end
return '0'
