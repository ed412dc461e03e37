-- Traces and spans (spec 2), partitioned by the trace's receipt time; retention drops partitions.
-- A trace's receipt time never changes, so it is part of the key: (team, received_at, id) for a trace, and the same
-- received_at leads its spans' key, which keeps "one row per (trace, span)" true inside one partition and lets every
-- query by trace touch exactly one.

-- Who owns a trace id, over all teams (a foreign id answers 404), and in which partition its rows are.
create table trace_owners (
  id uuid primary key,
  team_id uuid not null,
  received_at timestamptz(3) not null
);
create index trace_owners_by_time on trace_owners (received_at);

create table traces (
  team_id uuid not null,
  received_at timestamptz(3) not null,
  id uuid not null,
  name text not null,
  -- How the name came: 'default', 'if_unset', 'derived' (OTLP root), 'explicit'. A stronger one is never overwritten.
  name_source text not null,
  session_id text,
  -- Derived from its spans by ingestion: error if any is error, else ok if any is ok, else unset.
  status text not null,
  started_at timestamptz(3) not null,
  ended_at timestamptz(3),
  span_count integer not null,
  error_count integer not null,
  ok_count integer not null,
  warning_count integer not null,
  -- null: no span has a cost.
  total_cost_nano bigint,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  total_tokens bigint not null,
  duration_ms double precision,
  tags text[] not null default '{}',
  metadata jsonb not null default '{}',
  -- Distinct values over its spans, so that filters read one row.
  models text[] not null default '{}',
  providers text[] not null default '{}',
  error_types text[] not null default '{}',
  error_codes text[] not null default '{}',
  prompt_version_ids uuid[] not null default '{}',
  primary key (team_id, received_at, id)
) partition by range (received_at);
create index traces_by_session on traces (team_id, session_id, received_at desc) where session_id is not null;
create index traces_by_status on traces (team_id, status, received_at desc);
create index traces_by_models on traces using gin (models);

-- Not an identity column: partitioned tables have those from PostgreSQL 17 only.
create sequence span_positions;

create table spans (
  team_id uuid not null,
  trace_received_at timestamptz(3) not null,
  trace_id uuid not null,
  span_id text not null,
  parent_span_id text,
  name text not null,
  kind text not null,
  status text not null,
  start_time timestamptz(3) not null,
  end_time timestamptz(3),
  duration_ms double precision,
  model text,
  provider text,
  prompt_tokens integer,
  completion_tokens integer,
  total_tokens integer,
  cost_nano bigint,
  prompt_version_id uuid,
  error_type text,
  error_code text,
  has_warning boolean not null default false,
  attributes jsonb not null default '{}',
  input jsonb,
  output jsonb,
  variables jsonb,
  -- Order of arrival; ties of start_time keep it.
  position bigint not null default nextval('span_positions'),
  primary key (team_id, trace_received_at, trace_id, span_id)
) partition by range (trace_received_at);
create index spans_by_time on spans (team_id, start_time);
