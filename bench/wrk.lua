-- A chat completion of 475 B, or of BODY_BYTES; headers from HEADERS ("name=value;name=value").
local prompt = "Explain in a few sentences how a reverse proxy keeps connections to its upstream alive and why that matters for latency."
local bytes = tonumber(os.getenv("BODY_BYTES") or "0")
if bytes > 0 then
  prompt = string.rep("All work and no play makes Jack a dull boy. ", math.floor(bytes / 44))
end
wrk.method = "POST"
wrk.path = os.getenv("REQUEST_PATH")
wrk.headers["Content-Type"] = "application/json"
wrk.headers["User-Agent"] = "openai-python/1.40.0"
wrk.headers["Accept"] = "application/json"
for name, value in string.gmatch(os.getenv("HEADERS") or "", "([^=;]+)=([^;]+)") do
  wrk.headers[name] = value
end
wrk.body = '{"model":"gpt-4o-mini","temperature":0.7,"max_tokens":512,"messages":[{"role":"system","content":"You are a helpful assistant that answers briefly and precisely, in plain words, without any preamble."},{"role":"user","content":"'
  .. prompt .. '"}],"user":"user-1234"}'
