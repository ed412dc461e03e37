-- Sums for two questions that had to read every trace: how many traces a prompt has, and analytics by session.

-- The dimension 'prompt' of the facets, for what is stored already.
insert into trace_facet_deltas (team_id, at, dimension, value, traces)
select t.team_id, date_trunc('hour', t.received_at, 'UTC'), 'prompt', p.prompt_id::text, count(*)
from traces t cross join lateral (
  select distinct v.prompt_id from prompt_versions v
  where v.team_id = t.team_id and v.id = any(t.prompt_version_ids::uuid[])
) p
where t.prompt_version_ids <> '{}'
group by 1, 2, 4;

-- The union of two histograms; a bucket that becomes empty goes, since sessions lose what a trace takes with it.
create or replace function merge_latencies(held bigint[], added bigint[]) returns bigint[] language sql immutable as $$
  select case
    when added = '{}' then held
    when held = '{}' then added
    else array(
      select value from (
        select bucket, array[bucket, sum(n)::bigint, sum(s)::bigint] as bar from bars_of(held || added)
        group by bucket having sum(n) <> 0
      ) bars, unnest(bar) with ordinality as part(value, place)
      order by bucket, place)
  end
$$;

create aggregate sum_latencies(bigint[]) (sfunc = merge_latencies, stype = bigint[], initcond = '{}');

-- What analytics by session adds up. A session that lies in the window as a whole is one row of it.
alter table trace_sessions
  add column span_count bigint not null default 0,
  add column error_count bigint not null default 0,
  add column prompt_tokens bigint not null default 0,
  add column completion_tokens bigint not null default 0,
  -- The start of its last span.
  add column last_started_at timestamptz(3) not null default '-infinity',
  add column latencies bigint[] not null default '{}';

update trace_sessions s set
  span_count = n.spans, error_count = n.errors, prompt_tokens = n.prompt, completion_tokens = n.completion,
  last_started_at = n.last_started_at, latencies = n.latencies
from (
  select team_id, session_id, sum(span_count) as spans, sum(error_count) as errors, sum(prompt_tokens) as prompt,
    sum(completion_tokens) as completion, max(coalesce(last_started_at, started_at)) as last_started_at,
    sum_latencies(latencies) as latencies
  from traces where session_id is not null group by team_id, session_id
) n
where n.team_id = s.team_id and n.session_id = s.session_id;
