-- The team audit trail (spec 1, audit; spec 4, section 6): a row in the transaction of the change that it records,
-- never changed and never deleted.

create table audit_events (
  team_id uuid not null references teams (id),
  -- The order of writing, for events of one millisecond.
  position bigint generated always as identity,
  id uuid not null,
  event text not null,
  -- null: a team-scoped key acted, which carries no user identity.
  actor_id uuid references users (id),
  metadata jsonb not null,
  prompt_id uuid,
  tool_id uuid,
  -- The person an event was performed on.
  target_id uuid references users (id),
  created_at timestamptz(3) not null,
  primary key (team_id, id)
);
create index audit_events_by_team on audit_events (team_id, created_at desc, position desc);
create index audit_events_by_actor on audit_events (team_id, actor_id, created_at desc, position desc);
create index audit_events_by_event on audit_events (team_id, event, created_at desc, position desc);
create index audit_events_by_prompt on audit_events (team_id, prompt_id, created_at desc, position desc)
  where prompt_id is not null;
create index audit_events_by_tool on audit_events (team_id, tool_id, created_at desc, position desc)
  where tool_id is not null;

create function refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'audit_events is append-only';
end $$;
create trigger audit_events_append_only before update or delete on audit_events
  for each row execute function refuse_audit_change();
create trigger audit_events_never_truncated before truncate on audit_events
  for each statement execute function refuse_audit_change();
