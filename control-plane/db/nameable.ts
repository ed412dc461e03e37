/** Whether anything can be called so: PostgreSQL's text holds no NUL, and refuses even to compare one. */
export const isNameable = (text: string): boolean => !text.includes('\u0000')
