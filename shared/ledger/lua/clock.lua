-- Prepended to every script that needs the time. ARGV[1] = "<hold time to live, ms> <clock offset, ms>"; the offset is 0
-- outside of tests. Numbers are doubles: integers below 2^53 are exact, but `..` and tostring() keep 14 digits only, so
-- amounts are written with integer() of holds.lua or handed to redis.call as numbers (17 digits).
local ttlMs, offsetMs = string.match(ARGV[1], '^(%d+) (-?%d+)$')
ttlMs, offsetMs = tonumber(ttlMs), tonumber(offsetMs)
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000) + offsetMs
local nowSecond = math.floor(nowMs / 1000)

-- Months since 1970-01 from days since 1970-01-01: civil calendar in 400-year eras that start on March 1st.
local function monthOf(days)
  local shifted = days + 719468
  local era = math.floor(shifted / 146097)
  local dayOfEra = shifted - era * 146097
  local yearOfEra = math.floor(
    (dayOfEra - math.floor(dayOfEra / 1460) + math.floor(dayOfEra / 36524) - math.floor(dayOfEra / 146096)) / 365
  )
  local dayOfYear = dayOfEra - (365 * yearOfEra + math.floor(yearOfEra / 4) - math.floor(yearOfEra / 100))
  local fromMarch = math.floor((5 * dayOfYear + 2) / 153)
  local month = fromMarch < 10 and fromMarch + 3 or fromMarch - 9
  local year = yearOfEra + era * 400 + (month <= 2 and 1 or 0)
  return (year - 1970) * 12 + month - 1
end

-- The same keys as shared/ledger/period.ts; `letter` is the first of day, week, month, or 'a' for total.
local knownPeriodKeys = {}
local function periodKey(letter)
  local known = knownPeriodKeys[letter]
  if known then return known end
  local days = math.floor(nowSecond / 86400)
  local key = 'a'
  if letter == 'd' then
    key = 'd' .. days
  elseif letter == 'w' then
    key = 'w' .. math.floor((days + 3) / 7)
  elseif letter == 'm' then
    key = 'm' .. monthOf(days)
  end
  knownPeriodKeys[letter] = key
  return key
end
