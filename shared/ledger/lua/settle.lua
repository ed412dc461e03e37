-- Replaces holds by what their calls cost; giving a hold back is settling it at 0 cost and 0 tokens. A request id that
-- has no hold (settled before, or expired and collected) changes nothing. No clock: the hold names its periods.
-- KEYS[4...] rate windows. ARGV[1]: a line each, "<cost> <tokens> <window: index into KEYS, or 0> <request id>".
local items, requestIds = {}, {}
for cost, tokens, window, requestId in string.gmatch(ARGV[1], '(%d+) (%d+) (%d+) ([^\n]+)') do
  items[#items + 1] = { cost = tonumber(cost), tokens = tonumber(tokens), windowKey = KEYS[tonumber(window)] }
  requestIds[#items] = requestId
end
local records = redis.call('HMGET', holdsKey, unpack(requestIds))

local seen, heldDeltas, settledDeltas, tokenDeltas, found = {}, {}, {}, {}, 0
for i, requestId in ipairs(requestIds) do
  local record = records[i]
  if record and not seen[requestId] then
    seen[requestId] = true
    found = found + 1
    local item = items[i]
    local estimate, tokens, second = string.match(record, '^(%d+) (%S+) (%d+)')
    addPerBudget(heldDeltas, record, -tonumber(estimate))
    addPerBudget(settledDeltas, record, item.cost)
    if tokens ~= '-' and item.windowKey then
      local byBucket = tokenDeltas[item.windowKey] or {}
      byBucket['t' .. second] = (byBucket['t' .. second] or 0) + item.tokens - tonumber(tokens)
      tokenDeltas[item.windowKey] = byBucket
    end
  end
end
if found == 0 then return '0' end
applyToCounters(heldDeltas, settledDeltas)

-- Corrects the buckets of admission; one that has left the window is corrected no more.
for windowKey, byBucket in pairs(tokenDeltas) do
  local names = { 'ts' }
  for name in pairs(byBucket) do names[#names + 1] = name end
  local values = redis.call('HMGET', windowKey, unpack(names))
  local sum, writes = tonumber(values[1] or 0), {}
  for i = 2, #names do
    if values[i] and byBucket[names[i]] ~= 0 then
      sum = sum + byBucket[names[i]]
      writes[#writes + 1] = names[i]
      writes[#writes + 1] = tonumber(values[i]) + byBucket[names[i]] * 1000
    end
  end
  if #writes > 0 then redis.call('HSET', windowKey, 'ts', math.max(0, sum), unpack(writes)) end
end
redis.call('HDEL', holdsKey, unpack(requestIds))
redis.call('ZREM', expiryKey, unpack(requestIds))
return tostring(found)
