-- The trace store at scale: replaced spans, sessions, rollups, search.

-- The distinct values of a span column, sorted, nulls left out; at most 1,000, as `merge_distinct` keeps.
create function distinct_of(found text[]) returns text[] language sql immutable as $$
  select (array(select distinct value collate "C" from unnest(found) as value where value is not null order by 1))[1:1000]
$$;
