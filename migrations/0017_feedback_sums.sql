-- What the feedback summary adds up, by the UTC day of the feedback: a piece of feedback counts once for every distinct
-- model and once for every distinct prompt version of its trace's llm spans (control-plane/feedback/sum-queries.ts).
-- As with the sums of traces: whoever writes feedback or spans appends what that changes to the deltas, which waits for
-- nobody; a job folds them into the sums; whoever reads adds both up.
-- breaking: the version before writes feedback and spans without adding to these sums.
create table feedback_sums (
  team_id uuid not null,
  dimension text not null check (dimension in ('model', 'prompt_version')),
  day date not null,
  -- The model's name, or the version's id.
  key text not null,
  count bigint not null,
  -- How many of them have a rating, the sum of those, and how many are below 0.
  rated bigint not null,
  rating_sum bigint not null,
  down bigint not null,
  primary key (team_id, dimension, day, key)
);
create table feedback_sum_deltas (like feedback_sums);
create index feedback_sum_deltas_by_day on feedback_sum_deltas (team_id, dimension, day);

-- What is stored already.
insert into feedback_sums (team_id, dimension, day, key, count, rated, rating_sum, down)
select j.team_id, k.dimension, j.day, k.key, sum(j.count), sum(j.rated), sum(j.rating_sum), sum(j.down)
from (
  select team_id, trace_received_at, trace_id, (created_at at time zone 'UTC')::date as day, count(*) as count,
    count(rating) as rated, coalesce(sum(rating), 0) as rating_sum, count(*) filter (where rating < 0) as down
  from feedback group by 1, 2, 3, 4
) j
cross join lateral (
  select distinct d.dimension, d.key
  from spans s
  cross join lateral (values ('model', s.model), ('prompt_version', s.prompt_version_id::text)) as d(dimension, key)
  where s.team_id = j.team_id and s.trace_received_at = j.trace_received_at and s.trace_id = j.trace_id
    and s.kind = 'llm' and d.key is not null
) k
group by 1, 2, 3, 4;
