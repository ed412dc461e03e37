-- The response cache of installations without Redis (spec 4, section 5, cacheTtlSeconds). The key is a hash that team
-- and virtual key lead. Unlogged: a cache may be lost, and its writes cost no WAL.
create unlogged table response_cache (
  key text primary key,
  value text not null,
  expires_at timestamptz not null
);
create index response_cache_by_expiry on response_cache (expires_at);
