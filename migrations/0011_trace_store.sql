-- The trace store at scale: replaced spans, sessions, rollups, search.

-- The distinct values of a span column, sorted, nulls left out; at most 1,000, as `merge_distinct` keeps.
create function distinct_of(found text[]) returns text[] language sql immutable as $$
  select (array(select distinct value collate "C" from unnest(found) as value where value is not null order by 1))[1:1000]
$$;

-- What a list of traces filters by, as 48-bit hashes of (team, dimension, value): one GIN index finds any combination of
-- a team's models, tags, metadata pairs, error codes and prompt versions without reading another team's rows, and needs
-- no extension for it. A superset (values of metadata that were overwritten stay): the columns themselves are compared
-- as well.
alter table traces add column terms bigint[] not null default '{}';
create index traces_by_term on traces using gin (terms);
-- Distinct names of its spans, at most 1,000.
alter table traces add column span_names text[] not null default '{}';

-- What analytics by session adds up: the start of its last span, and the latencies of its spans as bucket, count and sum,
-- one after the other (control-plane/traces/latency.ts).
alter table traces add column last_started_at timestamptz(3);
alter table traces add column latencies bigint[] not null default '{}';

-- The newest traces of a session, and when it began and ended.
drop index traces_by_session;
create index traces_by_session on traces (team_id, session_id, started_at) where session_id is not null;

-- For the lower bounds on totals: counted and paged from the index alone, ten times faster than from the rows. It costs
-- every update of a trace that changes a total its place on the page, and so an entry in each index.
create index traces_by_totals on traces (team_id, received_at)
  include (id, started_at, duration_ms, total_cost_nano, total_tokens);

-- For the parts of an hour at the ends of an analytics window.
create index spans_by_start on spans (team_id, start_time);

-- The union of two sets of terms.
create function merge_terms(held bigint[], added bigint[]) returns bigint[] language sql immutable as $$
  select case
    when held @> added or cardinality(held) > 8000 then held
    else array(select distinct term from unnest(held || added) as term order by 1)
  end
$$;

-- Histograms in one array, bucket, count and sum after each other, as rows.
create function bars_of(latencies bigint[]) returns table (bucket bigint, n bigint, s bigint)
  language sql immutable rows 5 as $$
  select latencies[i], latencies[i + 1], latencies[i + 2] from generate_series(1, cardinality(latencies), 3) as i
$$;

create function merge_latencies(held bigint[], added bigint[]) returns bigint[] language sql immutable as $$
  select case
    when added = '{}' then held
    when held = '{}' then added
    else array(
      select value from (
        select bucket, array[bucket, sum(n)::bigint, sum(s)::bigint] as bar from bars_of(held || added) group by bucket
      ) bars, unnest(bar) with ordinality as part(value, place)
      order by bucket, place)
  end
$$;

-- A Bloom filter over the trigrams of what a write stored of a trace: names, attributes, captured payload. A search reads
-- these instead of the texts, 20 times less, and compares the texts of what is left. Appended, never changed.
create table trace_signatures (
  team_id uuid not null,
  received_at timestamptz(3) not null,
  trace_id uuid not null,
  signature bytea not null
) partition by range (received_at);
alter table trace_signatures alter column signature set storage external;
create index trace_signatures_by_trace on trace_signatures (team_id, received_at, trace_id);
create table trace_signatures_default partition of trace_signatures default;

create or replace function create_trace_week(monday date) returns boolean language plpgsql as $$
declare
  starts timestamptz := monday::timestamp at time zone 'UTC';
  ends timestamptz := (monday + 7)::timestamp at time zone 'UTC';
  parent text;
  clock text;
  week text;
  created boolean := false;
begin
  foreach parent in array array['traces', 'spans', 'trace_signatures'] loop
    week := parent || '_' || to_char(monday, 'YYYYMMDD');
    clock := case parent when 'spans' then 'trace_received_at' else 'received_at' end;
    continue when to_regclass(week) is not null;
    -- A trace's row is rewritten by every later span: room on the page keeps those updates off the indexes.
    execute format('create table %I (like %I including all) with (fillfactor = %s)', week, parent,
      case parent when 'traces' then 85 else 100 end);
    execute format('lock table %I in access exclusive mode', parent || '_default');
    execute format(
      'with strays as (delete from %1$I where %2$I >= %3$L and %2$I < %4$L returning *) insert into %5$I select * from strays',
      parent || '_default', clock, starts, ends, week);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, week, starts, ends);
    created := true;
  end loop;
  return created;
end $$;

select create_trace_week(to_date(right(c.relname, 8), 'YYYYMMDD'))
from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = 'traces'::regclass and c.relname ~ '^traces_[0-9]{8}$';

-- Sums of spans by the hour and the day of their start, from which analytics is answered; `week` is the Monday of their
-- trace's receipt, with which they are deleted. Ingestion appends what each write changes to the deltas, which waits for
-- nobody; a job folds them into the sums. Whoever reads adds both up.
create table span_rollups (
  team_id uuid not null,
  -- 'model_day' is 'day' without prompt versions: fifty times fewer rows for a team with many.
  grain text not null check (grain in ('hour', 'day', 'model_day')),
  at timestamptz not null,
  week date not null,
  kind text not null,
  -- '' and the zero id: none.
  model text not null,
  prompt_version_id uuid not null,
  requests bigint not null,
  errors bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  total_tokens bigint not null,
  cost_nano bigint not null,
  -- Latency histogram, three arrays side by side: bucket (control-plane/traces/latency.ts), spans in it, and the sum of
  -- their durations in microseconds.
  buckets bigint[] not null,
  counts bigint[] not null,
  sums bigint[] not null,
  primary key (team_id, grain, at, week, kind, model, prompt_version_id)
);
create table span_rollup_deltas (like span_rollups);
alter table span_rollup_deltas drop column grain;
create index span_rollup_deltas_by_hour on span_rollup_deltas (team_id, at);

-- The same as `bucketOf` in control-plane/traces/latency.ts.
create function latency_bucket(us bigint) returns bigint language sql immutable as $$
  select case when us <= 0 then 0 else 1 + floor(ln(us::double precision) / ln(1.05::double precision))::bigint end
$$;

create function merge_histograms(
  b1 bigint[], c1 bigint[], s1 bigint[], b2 bigint[], c2 bigint[], s2 bigint[],
  out buckets bigint[], out counts bigint[], out sums bigint[]
) language sql immutable as $$
  select coalesce(array_agg(bucket order by bucket), '{}'), coalesce(array_agg(n order by bucket), '{}'),
    coalesce(array_agg(s order by bucket), '{}')
  from (
    select bucket, sum(n)::bigint as n, sum(s)::bigint as s
    from unnest(b1 || b2, c1 || c2, s1 || s2) as h(bucket, n, s)
    group by bucket having sum(n) <> 0
  ) merged
$$;

-- Traces by the hour and the day of their receipt and by what they hold: the facets, and the exact total of a list with
-- one filter or none. Deltas as above.
create table trace_facets (
  team_id uuid not null,
  grain text not null check (grain in ('hour', 'day')),
  at timestamptz not null,
  -- 'all', 'status', 'warning', 'model', 'provider', 'tag', 'metadata_key', 'error_type', 'error_code', 'prompt_version'
  dimension text not null,
  value text not null,
  traces bigint not null,
  primary key (team_id, grain, dimension, at, value)
);
create table trace_facet_deltas (like trace_facets);
alter table trace_facet_deltas drop column grain;
create index trace_facet_deltas_by_hour on trace_facet_deltas (team_id, dimension, at);

-- A session's traces, summed up.
create table trace_sessions (
  team_id uuid not null,
  session_id text not null,
  trace_count bigint not null,
  total_cost_nano bigint not null,
  total_tokens bigint not null,
  first_at timestamptz(3) not null,
  last_at timestamptz(3) not null,
  primary key (team_id, session_id)
);
create index trace_sessions_by_activity on trace_sessions (team_id, last_at, session_id);

-- Scores that evaluation rules gave (spec 3, rule score).
create table trace_scores (
  team_id uuid not null references teams (id),
  id uuid not null,
  rule_id uuid not null,
  trace_id uuid not null,
  trace_received_at timestamptz(3) not null,
  -- The caller's reference; null: the whole trace.
  span_id text,
  -- 0 to 100; null: the judge's answer could not be read.
  score smallint check (score between 0 and 100),
  passed boolean,
  reason text,
  judge_trace_id uuid,
  cost_nano bigint,
  created_at timestamptz(3) not null,
  primary key (team_id, id)
);
create index trace_scores_by_trace on trace_scores (team_id, trace_id);
create index trace_scores_by_score on trace_scores (team_id, score);
create index trace_scores_by_rule on trace_scores (team_id, rule_id, created_at);
