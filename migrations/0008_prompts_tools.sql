-- Prompts, tools, their versions and aliases, bindings between them, and secrets (spec 1; spec 4, sections 4 and 6).
-- What a version holds is `json`, not `jsonb`: the order of a schema's properties is part of what a model reads.

create table prompts (
  team_id uuid not null references teams (id),
  id uuid not null,
  -- Need not be unique: a reference by name takes the newest active prompt.
  name text not null,
  description text,
  created_by uuid references users (id),
  created_at timestamptz(3) not null,
  deleted_at timestamptz(3),
  primary key (team_id, id)
);
create index prompts_active on prompts (team_id, created_at desc, id desc) where deleted_at is null;
create index prompts_by_name on prompts (team_id, name, created_at desc, id desc) where deleted_at is null;

create table prompt_versions (
  team_id uuid not null,
  id uuid not null,
  prompt_id uuid not null,
  version_number integer not null,
  messages json not null,
  variables text[] not null,
  -- The bound default model; a model that was deleted since reads as unbound.
  model_id uuid,
  created_by uuid references users (id),
  created_at timestamptz(3) not null,
  primary key (team_id, id),
  unique (team_id, prompt_id, version_number),
  foreign key (team_id, prompt_id) references prompts (team_id, id)
);

create table prompt_aliases (
  team_id uuid not null,
  prompt_id uuid not null,
  alias text not null,
  id uuid not null,
  version_id uuid not null,
  updated_at timestamptz(3) not null,
  primary key (team_id, prompt_id, alias),
  foreign key (team_id, prompt_id) references prompts (team_id, id),
  foreign key (team_id, version_id) references prompt_versions (team_id, id)
);

create table tools (
  team_id uuid not null references teams (id),
  id uuid not null,
  name text not null,
  description text,
  created_by uuid references users (id),
  created_at timestamptz(3) not null,
  deleted_at timestamptz(3),
  primary key (team_id, id)
);
-- A deleted tool releases its name (spec 1, tool).
create unique index tools_active_name on tools (team_id, name) where deleted_at is null;
create index tools_active on tools (team_id, created_at desc, id desc) where deleted_at is null;

create table tool_versions (
  team_id uuid not null,
  id uuid not null,
  tool_id uuid not null,
  version_number integer not null,
  description text,
  changelog text,
  source text not null check (source in ('code', 'dashboard', 'api')),
  parameters_schema json not null,
  executor json not null,
  created_by uuid references users (id),
  created_at timestamptz(3) not null,
  primary key (team_id, id),
  unique (team_id, tool_id, version_number),
  foreign key (team_id, tool_id) references tools (team_id, id)
);

create table tool_aliases (
  team_id uuid not null,
  tool_id uuid not null,
  alias text not null,
  id uuid not null,
  version_id uuid not null,
  updated_at timestamptz(3) not null,
  primary key (team_id, tool_id, alias),
  foreign key (team_id, tool_id) references tools (team_id, id),
  foreign key (team_id, version_id) references tool_versions (team_id, id)
);

create table prompt_tool_bindings (
  team_id uuid not null,
  prompt_id uuid not null,
  -- '' is the default row, which every alias without a row of its own for the tool inherits.
  prompt_alias text not null,
  tool_id uuid not null,
  -- At most one of the two; neither: off.
  tool_alias text,
  pinned_version_number integer,
  -- The order in which tools are offered to the model; given once, when the row is made.
  position integer not null,
  updated_at timestamptz(3) not null,
  primary key (team_id, prompt_id, prompt_alias, tool_id),
  foreign key (team_id, prompt_id) references prompts (team_id, id),
  foreign key (team_id, tool_id) references tools (team_id, id),
  check (tool_alias is null or pinned_version_number is null)
);
create index prompt_tool_bindings_by_tool on prompt_tool_bindings (team_id, tool_id);

create table secrets (
  team_id uuid not null references teams (id),
  name text not null,
  -- Bound into the seal with the team's id: see shared/secrets/vault.ts.
  id uuid not null,
  sealed_value text not null,
  updated_at timestamptz(3) not null,
  primary key (team_id, name)
);
