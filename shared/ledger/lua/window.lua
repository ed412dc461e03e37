-- Prepended to admit. A rate window is one hash per credential: 'c' the oldest second that may still have a bucket,
-- 'rs' and 'ts' the running sums of requests and tokens, 'r<second>' and 't<second>' the buckets. A bucket's value is
-- amount * 1000 + the millisecond of its last admission, so that it leaves exactly 60 s after that: no 60 s ever hold
-- more than the limit, a call is refused at most 1 s early, and Retry-After is at most 60.
-- Running sums and the cursor make an admission O(1): each bucket is read once when it leaves.
local WINDOW_SECONDS = 60
-- A bucket of this second may take calls for another second and must then live for 60.
local WINDOW_TTL_SECONDS = 62

local function loadWindow(key)
  local values = redis.call('HMGET', key, 'c', 'rs', 'ts', 'r' .. nowSecond, 't' .. nowSecond)
  local cursor = tonumber(values[1]) or nowSecond
  -- The clock was set back behind the window or far beyond it: none of its calls are of the last 60 s, and those of the
  -- time to come would count until then. Without a step a window lives too short for either.
  if cursor > nowSecond or cursor < nowSecond - 4 * WINDOW_SECONDS then
    redis.call('DEL', key)
    cursor, values = nowSecond, {}
  end
  local window = {
    key = key,
    cursor = cursor,
    r = { sum = tonumber(values[2]) or 0, now = math.floor((tonumber(values[4]) or 0) / 1000) },
    t = { sum = tonumber(values[3]) or 0, now = math.floor((tonumber(values[5]) or 0) / 1000) },
    isNewSecond = not values[4] and not values[5],
  }
  local last = nowSecond - WINDOW_SECONDS
  if window.cursor > last then return window end
  local names = {}
  for second = window.cursor, last do
    names[#names + 1] = 'r' .. second
    names[#names + 1] = 't' .. second
  end
  local buckets = redis.call('HMGET', key, unpack(names))
  local gone = {}
  window.cursor = last + 1
  for i, bucket in ipairs(buckets) do
    if bucket then
      local amount = math.floor(bucket / 1000)
      local isLast = i > #names - 2
      if isLast and bucket - amount * 1000 > nowMs % 1000 then
        window.cursor = last
      else
        local kind = window[string.sub(names[i], 1, 1)]
        kind.sum = math.max(0, kind.sum - amount)
        gone[#gone + 1] = names[i]
      end
    end
  end
  if #gone > 0 then
    redis.call('HDEL', key, unpack(gone))
    window.isChanged = true
  end
  return window
end

-- Seconds until enough of the oldest buckets have left for `fits(rest)` to hold.
local function retryAfter(window, letter, fits)
  local kind = window[letter]
  if not kind.buckets then
    local names = {}
    for second = window.cursor, nowSecond - 1 do names[#names + 1] = letter .. second end
    kind.buckets = #names > 0 and redis.call('HMGET', window.key, unpack(names)) or {}
  end
  local rest = kind.sum
  for i, bucket in ipairs(kind.buckets) do
    if bucket then
      local amount = math.floor(bucket / 1000)
      rest = rest - amount
      if fits(rest) then
        local leavesAtMs = (window.cursor + i - 1 + WINDOW_SECONDS) * 1000 + bucket - amount * 1000
        return math.max(1, math.ceil((leavesAtMs - nowMs) / 1000))
      end
    end
  end
  return WINDOW_SECONDS
end

local function storeWindow(window)
  if not window.isChanged then return end
  local writes = { 'c', window.cursor, 'rs', window.r.sum, 'ts', window.t.sum }
  for _, letter in ipairs({ 'r', 't' }) do
    if window[letter].isTaken then
      writes[#writes + 1] = letter .. nowSecond
      writes[#writes + 1] = window[letter].now * 1000 + nowMs % 1000
    end
  end
  redis.call('HSET', window.key, unpack(writes))
  if window.isNewSecond then redis.call('EXPIRE', window.key, WINDOW_TTL_SECONDS) end
end

local function take(window, letter, amount)
  local kind = window[letter]
  kind.sum = kind.sum + amount
  kind.now = kind.now + amount
  kind.isTaken = true
  window.isChanged = true
end
