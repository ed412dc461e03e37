-- Changes of a team's configuration that were committed while the ledger could not be reached, kept in the
-- transaction of the change and announced again until it answers; see control-plane/gateway/publish.ts.

create table ledger_outbox (
  team_id uuid not null references teams (id),
  epoch bigint not null,
  revoked_ids text[] not null default '{}',
  recorded_at timestamptz(3) not null default now(),
  -- A team's epoch is committed once.
  primary key (team_id, epoch)
);
create index ledger_outbox_by_time on ledger_outbox (recorded_at);
