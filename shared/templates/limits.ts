/** What a template may cost (reliability 5.1). Lengths of text are in UTF-16 units unless the name says bytes. */

/** Of a message that holds at least one tag; text without tags is bounded by the output's limit alone. */
export const SOURCE_MAX_LENGTH = 64 * 1024
/** Nodes of a prompt's trees, all messages together: what it may cost to compile a prompt, some 50 ms. */
export const NODES_MAX = 20_000
/** Tags within tags plus brackets within brackets: keeps parser, compiler and evaluator far from the stack's end. */
export const NESTING_MAX = 60
export const NAME_MAX_LENGTH = 64

/** Of one render, all messages together: a step is one evaluated node, or 64 copied characters, or 8 copied elements. */
export const STEPS_MAX = 200_000
/** Of one render, all messages together: both on the clock and of the processor. */
export const TIME_MAX_MS = 50
/** How many steps pass between two looks at the clock: about 50 µs of work, against 40 ns for the look. */
export const STEPS_PER_LOOK = 1_000
/** All messages of a render together, in UTF-8. */
export const OUTPUT_MAX_BYTES = 1024 * 1024
/** Any text that a template makes on its way. */
export const TEXT_MAX_LENGTH = 1024 * 1024
/** Any list, range or dict that a template makes or walks. */
export const ITEMS_MAX = 10_000
/** Lists within lists, when they are printed, compared or turned into JSON. */
export const VALUE_DEPTH_MAX = 60

/** The variables that a prompt reads: their text, key names included. */
export const VARIABLES_MAX_LENGTH = 1024 * 1024
export const VARIABLES_MAX_VALUES = 20_000
export const VARIABLES_MAX_DEPTH = 32
