-- The gateway's registry: provider connections, models, virtual keys, budgets (specs 3 and 4).

create table connections (
  team_id uuid not null references teams (id),
  id uuid not null,
  provider text not null check (provider in ('openai', 'anthropic', 'google', 'openai_compatible')),
  label text not null,
  -- v1.<kid>.<nonce>.<ciphertext>, bound to team and row; see shared/secrets/vault.ts.
  sealed_key text not null,
  key_last_four text not null,
  config jsonb not null default '{}',
  created_by uuid references users (id),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (team_id, id)
);

create table models (
  team_id uuid not null references teams (id),
  id uuid not null,
  public_name text not null,
  connection_id uuid not null,
  upstream_model text not null,
  -- USD per million tokens; all null: no price.
  input_per_mtok numeric,
  output_per_mtok numeric,
  cached_input_per_mtok numeric,
  cache_write_per_mtok numeric,
  max_output_tokens integer,
  context_window integer,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (team_id, id),
  unique (team_id, public_name),
  foreign key (team_id, connection_id) references connections (team_id, id)
);
create index models_by_connection on models (team_id, connection_id);

create table virtual_keys (
  team_id uuid not null references teams (id),
  id uuid not null,
  name text not null,
  key_hash text not null unique,
  last_four text not null,
  allowed_models text[],
  allowed_providers text[],
  max_rpm integer,
  max_tpm integer,
  cache_ttl_seconds integer,
  created_by uuid references users (id),
  created_at timestamptz(3) not null,
  revoked_at timestamptz(3),
  primary key (team_id, id)
);

create table budgets (
  team_id uuid not null references teams (id),
  id uuid not null,
  -- null: team-wide.
  virtual_key_id uuid,
  period text not null check (period in ('day', 'week', 'month', 'total')),
  limit_usd numeric(20, 4) not null check (limit_usd >= 0),
  created_by uuid references users (id),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  primary key (team_id, id),
  foreign key (team_id, virtual_key_id) references virtual_keys (team_id, id)
);
-- At most one budget per (team, scope, period); spec 3, budgets. An index over an expression instead of "nulls not
-- distinct", which PostgreSQL 14 does not have.
create unique index budgets_scope_period
  on budgets (team_id, coalesce(virtual_key_id, '00000000-0000-0000-0000-000000000000'), period);
