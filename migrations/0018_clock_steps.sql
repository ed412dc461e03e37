-- As in 0004, but what lies ahead of the clock counts no more: it was set back, and the calls of the time to come kept a
-- key out until then, up to an hour or more. The other store does the same in lua/window.lua.
create or replace function ledger_take(
  p_team uuid, p_credential uuid, p_rpm bigint, p_tpm bigint, p_tokens bigint, p_now_ms bigint,
  out p_refusal text, out p_remaining bigint
)
language plpgsql as $$
declare
  v_requests bigint;
  v_tokens bigint;
  v_leaves_ms bigint;
  v_is_new boolean;
begin
  select coalesce(sum(requests), 0), coalesce(sum(tokens), 0) into v_requests, v_tokens
  from ledger_windows
  where team_id = p_team and credential_id = p_credential and last_at_ms between p_now_ms - 59999 and p_now_ms;

  if v_requests + 1 > p_rpm then
    select last_at_ms + 60000 into v_leaves_ms
    from (
      select last_at_ms, second, v_requests - sum(requests) over (order by second) as rest
      from ledger_windows
      where team_id = p_team and credential_id = p_credential and last_at_ms between p_now_ms - 59999 and p_now_ms
    ) as bucket
    where rest + 1 <= p_rpm order by second limit 1;
    p_refusal := 'q' || greatest(1, ceil((coalesce(v_leaves_ms, p_now_ms + 60000) - p_now_ms) / 1000.0));
    return;
  end if;
  -- A single call above the limit passes when its window is empty; otherwise its key would be dead.
  if v_tokens > 0 and v_tokens + p_tokens > p_tpm then
    select last_at_ms + 60000 into v_leaves_ms
    from (
      select last_at_ms, second, v_tokens - sum(tokens) over (order by second) as rest
      from ledger_windows
      where team_id = p_team and credential_id = p_credential and last_at_ms between p_now_ms - 59999 and p_now_ms
    ) as bucket
    where rest <= 0 or rest + p_tokens <= p_tpm order by second limit 1;
    p_refusal := 't' || greatest(1, ceil((coalesce(v_leaves_ms, p_now_ms + 60000) - p_now_ms) / 1000.0));
    return;
  end if;

  insert into ledger_windows as w (team_id, credential_id, second, requests, tokens, last_at_ms)
  values (
    p_team, p_credential, p_now_ms / 1000,
    case when p_rpm is null then 0 else 1 end, case when p_tpm is null then 0 else p_tokens end, p_now_ms)
  on conflict (team_id, credential_id, second) do update set
    requests = w.requests + excluded.requests, tokens = w.tokens + excluded.tokens, last_at_ms = p_now_ms
  returning xmax = 0 into v_is_new;
  if v_is_new then
    delete from ledger_windows
    where team_id = p_team and credential_id = p_credential and last_at_ms not between p_now_ms - 59999 and p_now_ms;
  end if;
  p_refusal := '';
  p_remaining := p_rpm - v_requests - 1;
end $$;
