-- Teams, people, sessions, invites and API keys (spec 4, section 3). team_id leads every key and index of team data.

create table teams (
  id uuid primary key,
  name text not null,
  -- Moves with every change that a proxy caches; see control-plane/gateway/publish.ts.
  epoch bigint not null default 1,
  capture_payloads boolean not null default false,
  redact_keys text[] not null default '{}',
  retention_days integer not null default 90 check (retention_days between 1 and 3650),
  created_at timestamptz(3) not null
);

create table users (
  id uuid primary key,
  -- Lower-cased by the application; kept after removal from a team so that audit can name people.
  email text not null unique,
  name text,
  password_hash text not null,
  created_at timestamptz(3) not null
);

create table members (
  team_id uuid not null references teams (id),
  user_id uuid not null references users (id),
  role text not null check (role in ('owner', 'admin', 'editor', 'viewer')),
  joined_at timestamptz(3) not null,
  primary key (team_id, user_id)
);
create index members_by_user on members (user_id);

create table sessions (
  id uuid primary key,
  token_hash text not null unique,
  user_id uuid not null references users (id),
  team_id uuid not null references teams (id),
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null
);
create index sessions_by_user on sessions (user_id);

create table invites (
  id uuid primary key,
  team_id uuid not null references teams (id),
  email text not null,
  role text not null check (role in ('owner', 'admin', 'editor', 'viewer')),
  token_hash text not null unique,
  invited_by uuid not null references users (id),
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  accepted_at timestamptz(3)
);
create index invites_by_team on invites (team_id, created_at desc);

create table api_keys (
  team_id uuid not null references teams (id),
  id uuid not null,
  name text not null,
  key_hash text not null unique,
  last_four text not null,
  -- null: a team-scoped key, which carries no user identity.
  user_id uuid references users (id),
  created_by uuid references users (id),
  created_at timestamptz(3) not null,
  revoked_at timestamptz(3),
  primary key (team_id, id)
);

-- One row per failed or spent sign-in attempt; counted over 15 minutes per account and 1 minute per address.
create table sign_in_attempts (
  id bigint generated always as identity primary key,
  account text not null,
  address text not null,
  failed boolean not null,
  at timestamptz(3) not null
);
create index sign_in_attempts_by_account on sign_in_attempts (account, at);
create index sign_in_attempts_by_address on sign_in_attempts (address, at);
