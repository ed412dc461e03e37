/** The template's text is wrong; becomes TEMPLATE_PARSE_ERROR. `line` counts from 1. */
export class ParseFault extends Error {
  constructor(
    detail: string,
    readonly line: number,
  ) {
    super(detail)
    this.name = 'ParseFault'
  }
}

/** The template cannot be rendered with these variables, or costs too much; becomes TEMPLATE_RENDER_ERROR. */
export class RenderFault extends Error {
  override name = 'RenderFault'
}
