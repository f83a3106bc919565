/** A range of lines; a vscode.Range is one. */
export interface Lines {
  readonly start: { readonly line: number };
  readonly end: { readonly line: number };
}

/** Files of up to this number of lines are requested as a whole, so that the overview ruler is complete. */
export const wholeLines = 5000;

/**
 * The lines of a long file to request: those on the screen and as many on either side, so that scrolling a little shows no
 * gaps. Undefined for the whole file.
 */
export function linesInView(lineCount: number, visible: readonly Lines[]): { first: number; last: number } | undefined {
  if (lineCount <= wholeLines || visible.length === 0) return undefined;
  const first = Math.min(...visible.map((range) => range.start.line));
  const last = Math.max(...visible.map((range) => range.end.line));
  const around = last - first + 1;
  return { first: Math.max(first - around, 0), last: Math.min(last + around, lineCount - 1) };
}
