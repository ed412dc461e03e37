-- Traces and spans (spec 2), partitioned by week of the trace's receipt; retention drops whole weeks.
-- A trace's receipt time never changes, so it is part of the key: (team, received_at, id) for a trace, and the same
-- received_at leads its spans' key, which keeps "one row per (trace, span)" true inside one partition and lets every
-- query by trace touch exactly one.

-- Who owns a trace id, over all teams (a foreign id answers 404), and in which partition its rows are.
create table trace_owners (
  id uuid primary key,
  team_id uuid not null,
  received_at timestamptz(3) not null
);

create table traces (
  team_id uuid not null,
  -- The server's clock when it first heard of the trace: the time that `from` and `to` of GET /traces compare.
  received_at timestamptz(3) not null,
  id uuid not null,
  -- null: nobody has named it; it is shown as `Trace <ISO start time>`.
  name text,
  -- 'explicit' (x-trace-name, POST /traces), 'if_unset' (x-trace-name-if-unset) or 'derived' (OTLP root span).
  name_source text check (name_source in ('explicit', 'if_unset', 'derived')),
  -- Start times of the spans that said so: what makes the result the same in whatever order spans arrive.
  name_at timestamptz(3),
  session_id text,
  session_at timestamptz(3),
  metadata jsonb not null default '{}',
  metadata_at timestamptz(3),
  -- Derived from its spans by ingestion: error if any is error, else ok if any is ok, else unset.
  status text not null check (status in ('ok', 'error', 'unset')),
  started_at timestamptz(3) not null,
  ended_at timestamptz(3),
  duration_ms double precision,
  span_count bigint not null,
  error_count bigint not null,
  ok_count bigint not null,
  warning_count bigint not null,
  -- null: no span has a cost.
  total_cost_nano bigint,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  total_tokens bigint not null,
  -- Distinct values over its spans, at most 1,000 each, so that filters read one row.
  tags text[] not null default '{}',
  models text[] not null default '{}',
  providers text[] not null default '{}',
  error_types text[] not null default '{}',
  error_codes text[] not null default '{}',
  prompt_version_ids text[] not null default '{}',
  primary key (team_id, received_at, id)
) partition by range (received_at);
-- The key serves the plain list and its window. A filter on an array or a total reads the rows of the window: a GIN
-- index cannot lead with team_id without an extension, and one over all teams finds everybody's most used model.
create index traces_by_session on traces (team_id, session_id, received_at) where session_id is not null;
create index traces_by_error on traces (team_id, received_at) where status = 'error';

create table spans (
  team_id uuid not null,
  trace_received_at timestamptz(3) not null,
  trace_id uuid not null,
  span_id text not null,
  parent_span_id text,
  name text not null,
  kind text not null,
  status text not null check (status in ('ok', 'error', 'unset')),
  start_time timestamptz(3) not null,
  end_time timestamptz(3),
  duration_ms double precision,
  model text,
  provider text,
  prompt_tokens bigint,
  completion_tokens bigint,
  total_tokens bigint,
  cost_nano bigint,
  prompt_version_id uuid,
  error_type text,
  error_code text,
  has_warning boolean not null,
  attributes jsonb not null,
  -- All null when the payload was not captured.
  input jsonb,
  output jsonb,
  variables jsonb,
  -- Order of arrival (milliseconds times 4096, plus the place in its batch); ties of start_time keep it.
  position bigint not null,
  primary key (team_id, trace_received_at, trace_id, span_id)
) partition by range (trace_received_at);

-- Whatever no week holds lands here, so that nothing is ever refused; creating the week moves it out.
create table traces_default partition of traces default;
create table spans_default partition of spans default;

-- Creates the partitions of the week that starts at `monday` (00:00 UTC), unless they exist. Built beside the parent
-- and attached, because attaching lets reads and writes of the other weeks go on, and "create ... partition of" does not.
create function create_trace_week(monday date) returns boolean language plpgsql as $$
declare
  starts timestamptz := monday::timestamp at time zone 'UTC';
  ends timestamptz := (monday + 7)::timestamp at time zone 'UTC';
  parent text;
  clock text;
  week text;
  created boolean := false;
begin
  foreach parent in array array['traces', 'spans'] loop
    week := parent || '_' || to_char(monday, 'YYYYMMDD');
    clock := case parent when 'traces' then 'received_at' else 'trace_received_at' end;
    continue when to_regclass(week) is not null;
    -- A trace's row is rewritten by every later span: room on the page keeps those updates off the indexes.
    execute format('create table %I (like %I including all) with (fillfactor = 85)', week, parent);
    execute format('lock table %I in access exclusive mode', parent || '_default');
    execute format(
      'with strays as (delete from %1$I where %2$I >= %3$L and %2$I < %4$L returning *) insert into %5$I select * from strays',
      parent || '_default', clock, starts, ends, week);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, week, starts, ends);
    created := true;
  end loop;
  return created;
end $$;

select create_trace_week(date_trunc('week', now() at time zone 'UTC')::date + 7 * week)
from generate_series(-1, 8) as week;

-- Whether a new name of a trace replaces the one it has. A name that somebody set replaces any other, and of two of
-- those the later one stays; a fallback or derived name only ever fills a gap, and of two of those the earlier one
-- stays (spec 2, OTLP rule 6; spec 4, section 9).
create function trace_name_wins(source text, at timestamptz, held_source text, held_at timestamptz)
  returns boolean language sql immutable as $$
  select case
    when source is null then false
    when held_source is null then true
    when source = 'explicit' then held_source <> 'explicit' or at >= held_at
    else held_source <> 'explicit' and at < held_at
  end
$$;

-- The union of two sorted sets, sorted; at most 1,000 values, so that one endless trace cannot grow without bound.
create function merge_distinct(held text[], added text[]) returns text[] language sql immutable as $$
  select case
    when held @> added then held
    else (array(select distinct value collate "C" from unnest(held || added) as value order by 1))[1:1000]
  end
$$;
