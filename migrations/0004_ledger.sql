-- The ledger for installations without Redis: the twin of shared/ledger/lua, one function call a round trip. Same
-- batches, same answers, same suite (test/shared/ledger/conformance.ts).
--
-- What is durable and what is not. The charge rows are the truth, so no table here has to be. Holds, held amounts and
-- rate windows are UNLOGGED: an admission writes no WAL, and recovery from a crash empties all three together, so that
-- no held amount can outlive its holds. Settled amounts are logged but committed with synchronous_commit off: what a
-- crash takes from the last moment, the reconciler puts back from the charges. Epochs and revocations commit durably.
--
-- Every function takes the team's advisory lock first and reads the clock after it: now() would be the start of the
-- wait. The client sets lock_timeout below its own deadline.

create table ledger_teams (
  team_id uuid primary key,
  epoch bigint not null
);

create table ledger_revoked (
  team_id uuid not null,
  credential_id uuid not null,
  revoked_at timestamptz(3) not null default now(),
  primary key (team_id, credential_id)
);

-- The figures of a budget in a period; period_key as in shared/ledger/period.ts. Updated with every call: half of each
-- page is kept free, so that updates stay on their page and touch no index.
create table ledger_counters (
  team_id uuid not null,
  budget_id uuid not null,
  period_key text not null,
  settled_nano bigint not null,
  seeded_at timestamptz not null default clock_timestamp(),
  primary key (team_id, budget_id, period_key)
) with (fillfactor = 50);

create unlogged table ledger_held (
  team_id uuid not null,
  budget_id uuid not null,
  period_key text not null,
  held_nano bigint not null,
  primary key (team_id, budget_id, period_key)
) with (fillfactor = 50);

create unlogged table ledger_holds (
  team_id uuid not null,
  request_id uuid not null,
  credential_id uuid not null,
  estimate_nano bigint not null,
  -- null: the call has no token window.
  tokens bigint,
  second bigint not null,
  expires_at_ms bigint not null,
  budget_ids uuid[] not null,
  period_keys text[] not null,
  primary key (team_id, request_id)
) with (fillfactor = 70);
create index ledger_holds_by_expiry on ledger_holds (team_id, expires_at_ms);

-- Rate windows in buckets of one second. A bucket leaves 60 s after the last call that it counts.
create unlogged table ledger_windows (
  team_id uuid not null,
  credential_id uuid not null,
  second bigint not null,
  requests bigint not null,
  tokens bigint not null,
  last_at_ms bigint not null,
  primary key (team_id, credential_id, second)
) with (fillfactor = 70);

-- Period key of an instant; `letter` is the first of day, week, month, or 'a' for total.
create function ledger_period_key(p_letter text, p_ms bigint) returns text
language sql immutable parallel safe
return case p_letter
  when 'd' then 'd' || (p_ms / 86400000)
  when 'w' then 'w' || ((p_ms / 86400000 + 3) / 7)
  when 'm' then 'm' || (
    (extract(year from to_timestamp(p_ms / 1000) at time zone 'UTC')::bigint - 1970) * 12
    + extract(month from to_timestamp(p_ms / 1000) at time zone 'UTC')::bigint - 1)
  else 'a'
end;

-- Takes the team's lock for this transaction and reads the clock. The first key keeps clear of other advisory locks.
create function ledger_begin(p_team uuid, p_offset_ms bigint) returns bigint
language plpgsql as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  perform pg_advisory_xact_lock(720430002, hashtext(p_team::text));
  return floor(extract(epoch from clock_timestamp()) * 1000)::bigint + p_offset_ms;
end $$;

-- Takes expired holds off the held amounts, at most p_limit of them: one call never pays for a mass crash.
create function ledger_expire(p_team uuid, p_now_ms bigint, p_limit integer) returns void
language plpgsql as $$
begin
  if not exists (select from ledger_holds where team_id = p_team and expires_at_ms <= p_now_ms) then
    return;
  end if;
  with dead as (
    delete from ledger_holds
    where team_id = p_team and request_id in (
      select request_id from ledger_holds
      where team_id = p_team and expires_at_ms <= p_now_ms
      order by expires_at_ms limit p_limit)
    returning estimate_nano, budget_ids, period_keys
  ), share as (
    select b.budget_id, b.period_key, sum(estimate_nano) as nano
    from dead, unnest(budget_ids, period_keys) as b (budget_id, period_key)
    group by b.budget_id, b.period_key
  )
  update ledger_held h set held_nano = greatest(0, h.held_nano - share.nano)
  from share
  where h.team_id = p_team and h.budget_id = share.budget_id and h.period_key = share.period_key;
end $$;

-- p_items: '<cost> <tokens> <window> <request id>'. As lua/settle.lua.
create function ledger_settle(p_team uuid, p_items text[]) returns void
language plpgsql as $$
begin
  with item as (
    select distinct on (request_id) *
    from (
      select split_part(text, ' ', 4)::uuid as request_id, split_part(text, ' ', 1)::bigint as cost,
        split_part(text, ' ', 2)::bigint as tokens, at
      from unnest(p_items) with ordinality as given (text, at)
    ) as given
    order by request_id, at
  ), gone as (
    delete from ledger_holds h using item
    where h.team_id = p_team and h.request_id = item.request_id
    returning h.*, item.cost, item.tokens as actual_tokens
  ), share as (
    select b.budget_id, b.period_key, sum(estimate_nano) as estimate, sum(cost) as cost
    from gone, unnest(budget_ids, period_keys) as b (budget_id, period_key)
    group by b.budget_id, b.period_key
  ), settled as (
    update ledger_counters c set settled_nano = c.settled_nano + share.cost
    from share
    where c.team_id = p_team and c.budget_id = share.budget_id and c.period_key = share.period_key
  ), held as (
    update ledger_held h set held_nano = greatest(0, h.held_nano - share.estimate)
    from share
    where h.team_id = p_team and h.budget_id = share.budget_id and h.period_key = share.period_key
  )
  update ledger_windows w set tokens = greatest(0, w.tokens + delta.tokens)
  from (
    select credential_id, second, sum(actual_tokens - tokens) as tokens
    from gone where tokens is not null
    group by credential_id, second
  ) as delta
  where w.team_id = p_team and w.credential_id = delta.credential_id and w.second = delta.second
    and delta.tokens <> 0;
end $$;

-- p_items: '<estimate> <request id>'. As lua/extend.lua.
create function ledger_extend(p_team uuid, p_items text[]) returns void
language plpgsql as $$
begin
  with item as (
    select split_part(text, ' ', 2)::uuid as request_id, max(split_part(text, ' ', 1)::bigint) as estimate
    from unnest(p_items) as given (text)
    group by 1
  ), growth as (
    select h.request_id, item.estimate, item.estimate - h.estimate_nano as delta, h.budget_ids, h.period_keys
    from ledger_holds h join item using (request_id)
    where h.team_id = p_team and h.estimate_nano < item.estimate
  ), raised as (
    update ledger_holds h set estimate_nano = growth.estimate
    from growth
    where h.team_id = p_team and h.request_id = growth.request_id
  )
  update ledger_held h set held_nano = h.held_nano + share.delta
  from (
    select b.budget_id, b.period_key, sum(delta) as delta
    from growth, unnest(budget_ids, period_keys) as b (budget_id, period_key)
    group by b.budget_id, b.period_key
  ) as share
  where h.team_id = p_team and h.budget_id = share.budget_id and h.period_key = share.period_key;
end $$;

-- Takes one call into its request and token windows, or says why not: '', 'q<seconds>' or 't<seconds>'.
-- p_remaining: requests left after this one, null without a request limit.
create function ledger_take(
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
  where team_id = p_team and credential_id = p_credential and last_at_ms > p_now_ms - 60000;

  if v_requests + 1 > p_rpm then
    select last_at_ms + 60000 into v_leaves_ms
    from (
      select last_at_ms, second, v_requests - sum(requests) over (order by second) as rest
      from ledger_windows
      where team_id = p_team and credential_id = p_credential and last_at_ms > p_now_ms - 60000
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
      where team_id = p_team and credential_id = p_credential and last_at_ms > p_now_ms - 60000
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
    where team_id = p_team and credential_id = p_credential and last_at_ms <= p_now_ms - 60000;
  end if;
  p_refusal := '';
  p_remaining := p_rpm - v_requests - 1;
end $$;

-- '' when every budget has room for p_estimate, else 'b<position>' or 'u<position>.<position>...'.
create function ledger_check_budgets(
  p_team uuid, p_budget_ids uuid[], p_period_keys text[], p_caps bigint[], p_estimate bigint
) returns text
language plpgsql as $$
declare
  v_budget record;
  v_unseeded text := '';
begin
  for v_budget in
    select b.at, b.cap, c.settled_nano, c.settled_nano + coalesce(h.held_nano, 0) as used
    from unnest(p_budget_ids, p_period_keys, p_caps) with ordinality as b (budget_id, period_key, cap, at)
    left join ledger_counters c
      on c.team_id = p_team and c.budget_id = b.budget_id and c.period_key = b.period_key
    left join ledger_held h
      on h.team_id = p_team and h.budget_id = b.budget_id and h.period_key = b.period_key
    order by b.at
  loop
    if v_budget.settled_nano is null then
      v_unseeded := v_unseeded || case when v_unseeded = '' then 'u' else '.' end || v_budget.at;
    elsif v_unseeded = '' and (v_budget.used >= v_budget.cap or v_budget.used + p_estimate > v_budget.cap) then
      return 'b' || v_budget.at;
    end if;
  end loop;
  return v_unseeded;
end $$;

-- p_profiles: '<credential id> <window> <max rpm or -> <max tpm or -> <known epoch or ->[ <budget id> <letter> <cap>]...'
-- p_calls: '<profile> <estimate> <tokens> <request id>', in order. Answer as lua/admit.lua: '<now ms> <epoch>' and one
-- word a call.
create function ledger_admit(
  p_team uuid, p_profiles text[], p_calls text[], p_now_ms bigint, p_ttl_ms bigint
) returns text
language plpgsql as $$
declare
  v_answer text;
  v_epoch bigint := coalesce((select epoch from ledger_teams where team_id = p_team), 0);
  v_known bigint;
  v_profile integer := 0;
  v_call text;
  v_words text[];
  v_credential uuid;
  v_revoked boolean;
  v_rpm bigint;
  v_tpm bigint;
  v_budget_ids uuid[];
  v_period_keys text[];
  v_caps bigint[];
  v_estimate bigint;
  v_tokens bigint;
  v_word text;
  v_remaining bigint;
begin
  v_answer := p_now_ms || ' ' || v_epoch;
  foreach v_call in array p_calls loop
    if split_part(v_call, ' ', 1)::integer <> v_profile then
      v_profile := split_part(v_call, ' ', 1)::integer;
      v_words := string_to_array(p_profiles[v_profile], ' ');
      v_credential := v_words[1]::uuid;
      v_rpm := nullif(v_words[3], '-')::bigint;
      v_tpm := nullif(v_words[4], '-')::bigint;
      v_known := nullif(v_words[5], '-')::bigint;
      select coalesce(array_agg(v_words[i]::uuid order by i), '{}'),
        coalesce(array_agg(ledger_period_key(v_words[i + 1], p_now_ms) order by i), '{}'),
        coalesce(array_agg(v_words[i + 2]::bigint order by i), '{}')
      into v_budget_ids, v_period_keys, v_caps
      from generate_series(6, cardinality(v_words), 3) as i;
      v_revoked := exists (
        select from ledger_revoked where team_id = p_team and credential_id = v_credential);
    end if;
    v_estimate := split_part(v_call, ' ', 2)::bigint;
    v_tokens := split_part(v_call, ' ', 3)::bigint;
    v_remaining := null;
    if v_revoked then
      v_word := 'r';
    elsif v_known <> v_epoch then
      v_word := 'o';
    else
      v_word := '';
      if cardinality(v_budget_ids) > 0 then
        v_word := ledger_check_budgets(p_team, v_budget_ids, v_period_keys, v_caps, v_estimate);
      end if;
      if v_word = '' and (v_rpm is not null or v_tpm is not null) then
        select p_refusal, p_remaining into v_word, v_remaining
        from ledger_take(p_team, v_credential, v_rpm, v_tpm, v_tokens, p_now_ms);
      end if;
      if v_word = '' then
        v_word := 'a' || coalesce(v_remaining::text, '-');
        if cardinality(v_budget_ids) > 0 or v_tpm is not null then
          insert into ledger_held as h (team_id, budget_id, period_key, held_nano)
          select p_team, b.budget_id, b.period_key, v_estimate
          from unnest(v_budget_ids, v_period_keys) as b (budget_id, period_key)
          on conflict (team_id, budget_id, period_key) do update set held_nano = h.held_nano + excluded.held_nano;
          insert into ledger_holds (team_id, request_id, credential_id, estimate_nano, tokens, second,
            expires_at_ms, budget_ids, period_keys)
          values (p_team, split_part(v_call, ' ', 4)::uuid, v_credential, v_estimate,
            case when v_tpm is not null then v_tokens end, p_now_ms / 1000, p_now_ms + p_ttl_ms,
            v_budget_ids, v_period_keys);
        end if;
      end if;
    end if;
    v_answer := v_answer || ' ' || v_word;
  end loop;
  return v_answer;
end $$;

-- All that one team's calls ask in one event-loop turn of one proxy: one lock, one transaction, one round trip. What
-- gives budget back comes first. Answers as ledger_admit; null without admits.
create function ledger_turn(
  p_team uuid, p_extends text[], p_settles text[], p_renews text[], p_profiles text[], p_admits text[],
  p_ttl_ms bigint, p_offset_ms bigint
) returns text
language plpgsql as $$
declare
  v_now_ms bigint := ledger_begin(p_team, p_offset_ms);
begin
  if cardinality(p_extends) > 0 then
    perform ledger_extend(p_team, p_extends);
  end if;
  if cardinality(p_settles) > 0 then
    perform ledger_settle(p_team, p_settles);
  end if;
  if cardinality(p_renews) > 0 then
    update ledger_holds set expires_at_ms = v_now_ms + p_ttl_ms
    where team_id = p_team and request_id = any (p_renews::uuid[]);
  end if;
  if cardinality(p_admits) = 0 then
    return null;
  end if;
  perform ledger_expire(p_team, v_now_ms, least(256, 16 * cardinality(p_admits)));
  return ledger_admit(p_team, p_profiles, p_admits, v_now_ms, p_ttl_ms);
end $$;

-- Announces a change before its transaction commits. Durable: unlike the others it commits synchronously.
create function ledger_publish(p_team uuid, p_epoch bigint, p_revoked uuid[]) returns void
language sql as $$
  insert into ledger_teams as t (team_id, epoch) values (p_team, p_epoch)
  on conflict (team_id) do update set epoch = greatest(t.epoch, excluded.epoch);
  insert into ledger_revoked (team_id, credential_id)
  select p_team, credential_id from unnest(p_revoked) as given (credential_id)
  on conflict do nothing;
  -- By then the epoch announced with the marker has made every proxy load the credential again.
  delete from ledger_revoked where team_id = p_team and revoked_at < now() - interval '45 days';
$$;

-- p_items: '<budget id> <letter>'. Null figures for a counter that is not seeded.
create function ledger_spend(p_team uuid, p_items text[], p_offset_ms bigint)
returns table (settled_nano bigint, held_nano bigint)
language plpgsql as $$
declare
  v_now_ms bigint := ledger_begin(p_team, p_offset_ms);
begin
  perform ledger_expire(p_team, v_now_ms, 256);
  return query
    select c.settled_nano, case when c.settled_nano is not null then coalesce(h.held_nano, 0) end
    from (
      select split_part(text, ' ', 1)::uuid as budget_id,
        ledger_period_key(split_part(text, ' ', 2), v_now_ms) as period_key, at
      from unnest(p_items) with ordinality as given (text, at)
    ) as b
    left join ledger_counters c
      on c.team_id = p_team and c.budget_id = b.budget_id and c.period_key = b.period_key
    left join ledger_held h
      on h.team_id = p_team and h.budget_id = b.budget_id and h.period_key = b.period_key
    order by b.at;
end $$;

-- p_items: '<budget id> <period key> <settled>'. Sets absent counters; of each budget the two newest periods of its
-- present kind are kept: the current one, and the one before it for the calls that were admitted in it.
create function ledger_seed(p_team uuid, p_items text[]) returns void
language plpgsql as $$
declare
  v_item text;
  v_budget uuid;
  v_key text;
begin
  perform ledger_begin(p_team, 0);
  foreach v_item in array p_items loop
    v_budget := split_part(v_item, ' ', 1)::uuid;
    v_key := split_part(v_item, ' ', 2);
    insert into ledger_counters (team_id, budget_id, period_key, settled_nano)
    values (p_team, v_budget, v_key, split_part(v_item, ' ', 3)::bigint)
    on conflict do nothing;
    if found then
      with stale as (
        delete from ledger_counters
        where team_id = p_team and budget_id = v_budget and period_key <> v_key and period_key not in (
          select period_key from ledger_counters
          where team_id = p_team and budget_id = v_budget and period_key <> v_key
            and left(period_key, 1) = left(v_key, 1)
          order by seeded_at desc limit 1)
        returning period_key
      )
      delete from ledger_held h using stale
      where h.team_id = p_team and h.budget_id = v_budget and h.period_key = stale.period_key;
    end if;
  end loop;
end $$;

-- p_items as ledger_seed. Never lowers a counter and never makes one; also sweeps what an idle team leaves behind.
create function ledger_raise(p_team uuid, p_items text[], p_offset_ms bigint) returns void
language plpgsql as $$
declare
  v_now_ms bigint := ledger_begin(p_team, p_offset_ms);
begin
  perform ledger_expire(p_team, v_now_ms, 256);
  delete from ledger_windows where team_id = p_team and last_at_ms <= v_now_ms - 60000;
  update ledger_counters c set settled_nano = truth.settled_nano
  from (
    select split_part(text, ' ', 1)::uuid as budget_id, split_part(text, ' ', 2) as period_key,
      split_part(text, ' ', 3)::bigint as settled_nano
    from unnest(p_items) as given (text)
  ) as truth
  where c.team_id = p_team and c.budget_id = truth.budget_id and c.period_key = truth.period_key
    and c.settled_nano < truth.settled_nano;
end $$;
