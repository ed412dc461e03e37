-- What was once counted of a day of traces is not counted again (control-plane/traces/day-counts.ts). The day's version
-- is in the facets, as the dimension 'change'; days of before have none until they are written to, which is a version too.

-- Feedback by the receipt of its trace: which traces of some days are rated, and the feed's total by day.
create index feedback_by_receipt on feedback (team_id, trace_received_at, trace_id) include (rating);

-- A filter over the names alone: a word that most payloads hold is in few of them. Null: written before.
alter table trace_signatures add column names bytea;
