-- One row for each execution of an http tool, written with its span: what tool analytics counts. A span has all of it
-- too, but no index that finds the spans of one tool.

create table tool_executions (
  team_id uuid not null,
  -- No foreign key: checking it would wait for whoever commits a version of the tool at that moment.
  tool_id uuid not null,
  started_at timestamptz(3) not null,
  span_id uuid not null,
  version_number integer not null,
  duration_ms integer not null,
  -- Null: it went well.
  error_type text,
  error_code text,
  primary key (team_id, tool_id, started_at, span_id)
);
-- Rows leave with the team's traces, by age.
create index tool_executions_by_age on tool_executions (team_id, started_at);
