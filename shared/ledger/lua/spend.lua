-- Live figures. ARGV[2...]: "<budget id> <letter>" each. Reply: "<settled>,<held>" or "-" for each.
expireHolds(256)
local fields = {}
for i = 2, #ARGV do
  local budgetId, letter = string.match(ARGV[i], '^(%S+) (%S+)$')
  local name = budgetId .. ':' .. periodKey(letter)
  fields[#fields + 1] = name .. ':s'
  fields[#fields + 1] = name .. ':h'
end
local values = redis.call('HMGET', stateKey, unpack(fields))
local replies = {}
for i = 1, #fields, 2 do
  replies[#replies + 1] = values[i] and values[i] .. ',' .. (values[i + 1] or '0') or '-'
end
return table.concat(replies, ' ')
