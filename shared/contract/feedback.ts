import { z } from 'zod'
import { id, idParams, instant, pageOf, pageQuery } from './common.js'
import { endpoint } from './endpoint.js'
import { feedbackRow, traceFilters } from './traces.js'

const group = 'feedback'
const RANGE = 'rating must be between -1 and 5.'

/** Blank text is no text; at least one of the three must be left (spec 2, feedback row). */
const content = {
  // The range first: it names what is wrong with 1e300, which is no safe integer either.
  rating: z.number().min(-1, RANGE).max(5, RANGE).int().nullish(),
  label: z.string().max(200).nullish(),
  comment: z.string().max(5000).nullish(),
}

export const feedbackSource = feedbackRow.shape.source
export type FeedbackRow = z.infer<typeof feedbackRow>

export const createFeedback = endpoint({
  method: 'POST',
  path: '/traces/:id/feedback',
  summary: 'Rates, labels or comments on a trace or on one of its spans.',
  group,
  access: 'member',
  params: idParams,
  body: z.object({
    ...content,
    /** The caller's own reference of a span of the trace; none: the whole trace. */
    spanId: z.string().nullish(),
    source: feedbackSource.default('user'),
  }),
  status: 201,
  response: feedbackRow,
})

export const updateFeedback = endpoint({
  method: 'PATCH',
  path: '/traces/:id/feedback/:feedbackId',
  summary: 'Edits feedback, by its author only. What is left out stays, null clears.',
  group,
  access: 'member',
  params: z.object({ id: z.string(), feedbackId: z.string() }),
  body: z.object(content),
  response: feedbackRow,
})

export const listTraceFeedback = endpoint({
  method: 'GET',
  path: '/traces/:id/feedback',
  summary: 'The feedback on a trace and its spans, newest first.',
  group,
  access: 'member',
  params: idParams,
  response: z.object({ data: z.array(feedbackRow) }),
})

/** What the feed asks of the feedback row itself, beside what it asks of the row's trace. */
export const feedbackFilters = z.object({
  /** `up` is above 0, `down` below 0, `none` without a rating. */
  rating: z.enum(['up', 'down', 'none']).optional(),
  source: feedbackSource.optional(),
  label: z.string().optional(),
  has_comment: z
    .enum(['true', 'false'])
    .transform(text => text === 'true')
    .optional(),
})
export type FeedbackFilters = z.output<typeof feedbackFilters>

export const listFeedback = endpoint({
  method: 'GET',
  path: '/traces/feedback',
  summary:
    'The team’s feedback, newest first. `from` and `to` are the feedback’s own time; every other filter of GET /traces asks about its trace.',
  group,
  access: 'member',
  // Loose: `metadata[key]` has names that no schema can list.
  query: z.looseObject({ ...pageQuery.shape, ...traceFilters.shape, ...feedbackFilters.shape }),
  response: pageOf(feedbackRow),
})

export const feedbackGroups = ['model', 'prompt_version'] as const
export type FeedbackGroup = (typeof feedbackGroups)[number]

/** Spec 2, feedback summary bucket. */
export const feedbackBucket = z.object({
  /** A model's name or a prompt version's id. */
  key: z.string(),
  label: z.string(),
  promptId: id.nullable(),
  count: z.number().int(),
  avgRating: z.number().nullable(),
  downCount: z.number().int(),
})
export type FeedbackBucket = z.infer<typeof feedbackBucket>

export const summarizeFeedback = endpoint({
  method: 'GET',
  path: '/traces/feedback/summary',
  summary:
    'Feedback of a window, by the models or prompt versions of the llm spans of the traces that it is on.',
  group,
  access: 'member',
  query: z.object({
    group_by: z.enum(feedbackGroups).default('prompt_version'),
    from: instant.optional(),
    to: instant.optional(),
  }),
  response: z.object({ groupBy: z.enum(feedbackGroups), buckets: z.array(feedbackBucket) }),
})
