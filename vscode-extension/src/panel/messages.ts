import { field } from "./page";

/** A place in the text to show; numbers from 1, the end exclusive. */
export interface Reveal {
  line: number;
  column: number;
  endColumn: number;
}

/** The place in a page's message `{type: "reveal", line, column, endColumn}`; undefined for any other message. */
export function revealOf(message: unknown): Reveal | undefined {
  if (field(message, "type") !== "reveal") return undefined;
  const line = whole(field(message, "line"));
  if (line === undefined) return undefined;
  const column = whole(field(message, "column")) ?? 1;
  return { line, column, endColumn: Math.max(column, whole(field(message, "endColumn")) ?? column) };
}

/** The function in a page's message `{type: "function", name}`, "" for all functions; undefined for any other message. */
export function functionOf(message: unknown): string | undefined {
  const name = field(message, "type") === "function" ? field(message, "name") : undefined;
  return typeof name === "string" ? name : undefined;
}

/** A positive integer; in a panel's data 0 stands for no place. */
function whole(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}
