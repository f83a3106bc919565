import type { ColumnHint } from "./protocol";
import type { Lines } from "./visible";

/** A change of a document's text; a vscode.TextDocumentContentChangeEvent is one. */
export interface Change {
  readonly range: { readonly start: Place; readonly end: Place };
  readonly text: string;
}

interface Place {
  readonly line: number;
  readonly character: number;
}

/** Lines on each side of the screen that are drawn as well, so that scrolling shows no gaps. */
export const margin = 200;

/** The lines to draw: those on the screen, folded ones between them included only if one range has them, and the margin. */
export function linesToDraw(lineCount: number, visible: readonly Lines[]): { first: number; last: number }[] {
  const parts = visible.map((range) => ({ first: range.start.line, last: range.end.line }));
  const [top] = parts;
  const bottom = parts.at(-1);
  if (top === undefined || bottom === undefined) return [];
  top.first = Math.max(top.first - margin, 0);
  bottom.last = Math.min(bottom.last + margin, lineCount - 1);
  return parts;
}

/** The hints after an edit: each stays with its line's text until the server answers. */
export function moved(hints: ReadonlyMap<number, ColumnHint>, { range: { start, end }, text }: Change): Map<number, ColumnHint> {
  const added = text.split("\n").length - 1;
  const by = added - (end.line - start.line);
  const out = new Map<number, ColumnHint>();
  for (const [line, hint] of hints) {
    if (line < start.line) out.set(line, hint);
    else if (line > end.line) out.set(line + by, hint);
    // What follows the change keeps the hint if the line is pushed down as a whole, what precedes it otherwise.
    else if (start.character === 0 ? line === end.line && end.character === 0 : line === start.line)
      out.set(start.character === 0 ? start.line + added : line, hint);
    else if (line === start.line && start.line === end.line) out.set(line, hint);
  }
  return out;
}

const blank = "\u00a0";

/** The text in front of a line: as wide for each line, and of no-break spaces, since a browser would join others. */
export function columnText(label: string): string {
  return `${blank}${label.replaceAll(" ", blank)}${blank}`;
}

/** The characters of columnText. */
export const columnWidth = 14;

export const blankColumn = blank.repeat(columnWidth);
