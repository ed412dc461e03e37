-- Checks and reserves for all calls of one team that one event-loop turn of one proxy collected, in their order; shared
-- state is read once and written once, so a batch equals the same calls one by one.
-- KEYS[4...] rate windows. ARGV[2] = number of calls, then the profiles, and last the calls, a line each:
--   profile "<credential id> <window: index into KEYS, or 0> <max rpm or -> <max tpm or -> <known epoch or ->
--     [ <budget id> <letter> <cap>]..."
--   call    "<profile> <estimate> <tokens> <request id>"
-- Reply: "<now ms> <epoch>" and one word a call: a<remaining or ->, r, o, b<budget>, u<budget>.<budget>..., q<seconds>,
-- t<seconds>; budgets by their position in the profile.
local STATE_TTL_SECONDS = 45 * 86400
local profileCount, calls = #ARGV - 3, ARGV[#ARGV]
expireHolds(math.min(256, 16 * tonumber(ARGV[2])))

local fields, counters, windows, profiles = { 'e', 'x' }, {}, {}, {}

local function counterOf(name)
  local counter = counters[name]
  if not counter then
    counter = { name = name, at = #fields + 1 }
    counters[name] = counter
    fields[counter.at] = name .. ':s'
    fields[counter.at + 1] = name .. ':h'
  end
  return counter
end

for p = 1, profileCount do
  local words = {}
  for word in string.gmatch(ARGV[2 + p], '%S+') do words[#words + 1] = word end
  local profile = { windowKey = KEYS[tonumber(words[2])], rpm = tonumber(words[3]), tpm = tonumber(words[4]) }
  profile.epoch = words[5]
  fields[#fields + 1] = words[1]
  profile.revokedAt = #fields
  local names = {}
  for i = 6, #words, 3 do
    local counter = counterOf(words[i] .. ':' .. periodKey(words[i + 1]))
    profile[#profile + 1] = { counter = counter, cap = tonumber(words[i + 2]) }
    names[#names + 1] = ' ' .. counter.name
  end
  profile.names = table.concat(names)
  profile.isHeld = #profile > 0 or profile.tpm ~= nil
  profiles[p] = profile
end

local values = redis.call('HMGET', stateKey, unpack(fields))
for _, counter in pairs(counters) do
  counter.settled = tonumber(values[counter.at])
  counter.held = tonumber(values[counter.at + 1] or 0)
end

local function checkBudgets(profile, estimate)
  local unseeded
  for i = 1, #profile do
    local budget = profile[i]
    local counter = budget.counter
    if not counter.settled then
      unseeded = unseeded and unseeded .. '.' .. i or 'u' .. i
    elseif not unseeded then
      local used = counter.settled + counter.held
      if used >= budget.cap or used + estimate > budget.cap then return 'b' .. i end
    end
  end
  return unseeded
end

local function checkWindows(profile, window, tokens)
  local rpm, tpm = profile.rpm, profile.tpm
  if rpm and window.r.sum + 1 > rpm then
    return 'q' .. retryAfter(window, 'r', function(rest) return rest + 1 <= rpm end)
  end
  -- A single call above the limit passes when its window is empty; otherwise its key would be dead.
  if tpm and window.t.sum > 0 and window.t.sum + tokens > tpm then
    return 't' .. retryAfter(window, 't', function(rest) return rest <= 0 or rest + tokens <= tpm end)
  end
end

local holdWrites, expiryWrites = {}, {}
local function reserve(profile, window, estimate, tokens, tokensText, requestId)
  for i = 1, #profile do
    local counter = profile[i].counter
    counter.held = counter.held + estimate
    counter.isChanged = true
  end
  if profile.rpm then take(window, 'r', 1) end
  if profile.tpm then take(window, 't', tokens) end
  if profile.isHeld then
    local n = #holdWrites
    holdWrites[n + 1] = requestId
    holdWrites[n + 2] = integer(estimate)
      .. ' ' .. (profile.tpm and tokensText or '-') .. ' ' .. nowSecond .. profile.names
    expiryWrites[n + 1] = nowMs + ttlMs
    expiryWrites[n + 2] = requestId
  end
  return 'a' .. (profile.rpm and profile.rpm - window.r.sum or '-')
end

local replies = { integer(nowMs), values[1] or '0' }
for profileText, estimateText, tokensText, requestId in string.gmatch(calls, '(%d+) (%d+) (%d+) ([^\n]+)') do
  local profile = profiles[tonumber(profileText)]
  local estimate, tokens = tonumber(estimateText), tonumber(tokensText)
  local answer
  if values[profile.revokedAt] then
    answer = 'r'
  elseif profile.epoch ~= '-' and profile.epoch ~= replies[2] then
    answer = 'o'
  else
    answer = checkBudgets(profile, estimate)
    local window
    if not answer and profile.windowKey then
      window = windows[profile.windowKey] or loadWindow(profile.windowKey)
      windows[profile.windowKey] = window
      answer = checkWindows(profile, window, tokens)
    end
    answer = answer or reserve(profile, window, estimate, tokens, tokensText, requestId)
  end
  replies[#replies + 1] = answer
end

local writes = {}
for _, counter in pairs(counters) do
  if counter.isChanged then
    writes[#writes + 1] = counter.name .. ':h'
    writes[#writes + 1] = counter.held
  end
end
if #writes > 0 then redis.call('HSET', stateKey, unpack(writes)) end
if #holdWrites > 0 then
  redis.call('HSET', holdsKey, unpack(holdWrites))
  redis.call('ZADD', expiryKey, unpack(expiryWrites))
end
for _, window in pairs(windows) do storeWindow(window) end

-- Once a day: an idle team's keys leave after 45 days, longer than the longest period; the charge rows seed them again.
local today = tostring(math.floor(nowSecond / 86400))
if values[2] ~= today and (values[1] or #writes > 0) then
  redis.call('HSET', stateKey, 'x', today)
  for i = 1, 3 do redis.call('EXPIRE', KEYS[i], STATE_TTL_SECONDS) end
end
return table.concat(replies, ' ')
