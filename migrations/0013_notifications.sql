-- Notification mails: what people switched off, and which mails were sent (spec 1, Notifications; spec 4, section 9).

-- No row: switched on. It ends with the membership, so somebody who comes back starts anew.
create table notification_preferences (
  team_id uuid not null,
  user_id uuid not null,
  category text not null check (category in ('budget_alerts', 'eval_runs', 'membership', 'weekly_digest')),
  enabled boolean not null,
  updated_at timestamptz(3) not null,
  primary key (team_id, user_id, category),
  foreign key (team_id, user_id) references members (team_id, user_id) on delete cascade
);

-- Inserted in the transaction that queues the mails: a threshold is told once per budget and period.
create table budget_alerts (
  team_id uuid not null,
  budget_id uuid not null,
  -- As shared/ledger/period.ts writes it: d20778, w2969, m682, a.
  period_key text not null,
  -- Percent of the limit.
  threshold smallint not null check (threshold in (80, 100)),
  alerted_at timestamptz(3) not null,
  primary key (team_id, budget_id, period_key, threshold),
  foreign key (team_id, budget_id) references budgets (team_id, id) on delete cascade
);

-- The same for the digest of a week, which begins on a Monday.
create table weekly_digests (
  team_id uuid not null references teams (id),
  week_start date not null,
  sent_at timestamptz(3) not null,
  primary key (team_id, week_start)
);
