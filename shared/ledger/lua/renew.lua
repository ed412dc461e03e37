-- Keeps the holds of live calls from expiring; a hold that is gone stays gone. ARGV[2...]: request ids.
local members = {}
for i = 2, #ARGV do
  members[#members + 1] = nowMs + ttlMs
  members[#members + 1] = ARGV[i]
end
redis.call('ZADD', expiryKey, 'XX', unpack(members))
return '0'
