-- Prepended to the scripts that touch holds.
-- KEYS[1] state hash: 'e' epoch, 'x' day of the last EXPIRE, '<credential id>' revoked at (seconds),
--         '<budget id>:<period key>:s' settled, '...:h' held, '<budget id>:k' period keys that exist, newest first
-- KEYS[2] holds hash: request id -> "<estimate> <tokens or -> <second of admission>[ <budget id>:<period key>]..."
-- KEYS[3] sorted set: request id by the moment (ms) at which its hold expires
local stateKey, holdsKey, expiryKey = KEYS[1], KEYS[2], KEYS[3]

local function integer(number)
  return string.format('%.0f', number)
end

-- Adds to `deltas` (counter name -> amount) for each counter that a hold's record names.
local function addPerBudget(deltas, record, amount)
  for name in string.gmatch(record, '%S+:%S+') do
    deltas[name] = (deltas[name] or 0) + amount
  end
end

-- Applies deltas to held, and to settled when given. A counter whose period was dropped stays dropped.
local function applyToCounters(heldDeltas, settledDeltas)
  local names, fields = {}, {}
  for name in pairs(heldDeltas) do
    names[#names + 1] = name
    fields[#fields + 1] = name .. ':s'
    fields[#fields + 1] = name .. ':h'
  end
  if #names == 0 then return end
  local values = redis.call('HMGET', stateKey, unpack(fields))
  local writes = {}
  for i, name in ipairs(names) do
    local settled = values[2 * i - 1]
    if settled then
      local held = tonumber(values[2 * i] or 0) + heldDeltas[name]
      writes[#writes + 1] = fields[2 * i]
      writes[#writes + 1] = held > 0 and held or 0
      if settledDeltas and settledDeltas[name] then
        writes[#writes + 1] = fields[2 * i - 1]
        writes[#writes + 1] = tonumber(settled) + settledDeltas[name]
      end
    end
  end
  if #writes > 0 then redis.call('HSET', stateKey, unpack(writes)) end
end

-- Takes expired holds off `held`, at most `limit` of them: one call never pays for a mass crash.
local function expireHolds(limit)
  local dead = redis.call('ZRANGEBYSCORE', expiryKey, '-inf', nowMs, 'LIMIT', 0, limit)
  if #dead == 0 then return end
  local records = redis.call('HMGET', holdsKey, unpack(dead))
  local heldDeltas = {}
  for i = 1, #dead do
    if records[i] then addPerBudget(heldDeltas, records[i], -tonumber(string.match(records[i], '^%d+'))) end
  end
  applyToCounters(heldDeltas, nil)
  redis.call('HDEL', holdsKey, unpack(dead))
  redis.call('ZREM', expiryKey, unpack(dead))
end
