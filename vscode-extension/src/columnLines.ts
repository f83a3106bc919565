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

/** Lines on each side of what is on the screen that are drawn as well, so that scrolling and unfolding show no gaps. */
export const margin = 200;

/** The lines to draw, in order and apart: the visible ranges of one editor or several, with the margin around each. */
export function linesToDraw(lineCount: number, visible: readonly Lines[]): { first: number; last: number }[] {
  const parts: { first: number; last: number }[] = [];
  for (const { start, end } of [...visible].sort((a, b) => a.start.line - b.start.line)) {
    // An editor may not have followed an edit yet: its lines may be none of the document's.
    const first = Math.max(Math.min(start.line, lineCount - 1) - margin, 0);
    const last = Math.min(end.line + margin, lineCount - 1);
    const before = parts.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else parts.push({ first, last });
  }
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
