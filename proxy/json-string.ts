import { remembered } from './remembered.js'

/** JSON.stringify of a text that comes again with many calls, as ids, models and finish reasons do: a quarter of it. */
export const jsonString = remembered(text => JSON.stringify(text))
