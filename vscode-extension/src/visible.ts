/** What is taken of an editor's lines; a range of VS Code is one. */
export interface Lines {
  readonly start: { readonly line: number };
  readonly end: { readonly line: number };
}

/** Up to so many lines a file is asked about as a whole, so that the overview ruler knows all of it. */
export const wholeLines = 5000;

/**
 * The lines of a long file to ask about: those on the screen and as many on either side, so that a little scrolling shows
 * nothing bare. Undefined for the whole file.
 */
export function linesInView(lineCount: number, visible: readonly Lines[]): { first: number; last: number } | undefined {
  if (lineCount <= wholeLines || visible.length === 0) return undefined;
  const first = Math.min(...visible.map((range) => range.start.line));
  const last = Math.max(...visible.map((range) => range.end.line));
  const around = last - first + 1;
  return { first: Math.max(first - around, 0), last: Math.min(last + around, lineCount - 1) };
}
