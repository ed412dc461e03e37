-- What calls cost. The charge rows are the truth about spend; every ledger is a cache of them (design D4).

create table charges (
  team_id uuid not null,
  request_id uuid not null,
  virtual_key_id uuid,
  -- The ledger's clock at admission: the charge belongs to the periods of this instant, whenever it arrives.
  admitted_at timestamptz(3) not null,
  provider text not null,
  model text not null,
  upstream_model text not null,
  prompt_version_id uuid,
  input_tokens integer not null,
  cache_read_tokens integer not null,
  cache_write_tokens integer not null,
  output_tokens integer not null,
  cost_nano bigint not null,
  priced boolean not null,
  estimated boolean not null,
  cached boolean not null,
  recorded_at timestamptz(3) not null default now(),
  -- Not partitioned by time: the primary key is what makes a charge count once.
  primary key (team_id, request_id)
);
create index charges_by_time on charges (team_id, admitted_at);
create index charges_by_key on charges (team_id, virtual_key_id, admitted_at) where virtual_key_id is not null;

-- Spend per day and key, kept in the transaction that inserts the charges. Budgets sum days; calls made without a
-- virtual key are kept under the nil uuid.
create table spend_by_day (
  team_id uuid not null,
  virtual_key_id uuid not null,
  day date not null,
  cost_nano bigint not null,
  requests bigint not null,
  primary key (team_id, day, virtual_key_id)
);

-- Records that ingestion could not read, with the reason; the rest of their batch was committed.
create table dead_letters (
  id bigint generated always as identity primary key,
  received_at timestamptz(3) not null default now(),
  reason text not null,
  record text not null
);
