-- Feedback on traces and spans (spec 2, feedback row). Goes with its trace when retention deletes it.

create table feedback (
  team_id uuid not null references teams (id),
  id uuid not null,
  trace_id uuid not null,
  -- The trace's own receipt time, which never changes: a join with traces or spans opens one partition.
  trace_received_at timestamptz(3) not null,
  -- The caller's reference; null: on the whole trace.
  span_id text,
  rating smallint check (rating between -1 and 5),
  label text,
  comment text,
  source text not null check (source in ('user', 'developer', 'end_user', 'api')),
  -- null: posted with a team-scoped key; nobody can edit it.
  created_by uuid references users (id),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (team_id, id),
  check (rating is not null or label is not null or comment is not null)
);
create index feedback_newest on feedback (team_id, created_at desc, id desc);
create index feedback_by_trace on feedback (team_id, trace_id, created_at desc, id desc);
