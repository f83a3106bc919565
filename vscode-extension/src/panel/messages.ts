import { field } from "./page";

/** A place in the text that a page wants shown; numbers from 1, the end exclusive. */
export interface Reveal {
  line: number;
  column: number;
  endColumn: number;
}

/** What a page asks for by `{type: "reveal", line, column, endColumn}`; undefined for any other message. */
export function revealOf(message: unknown): Reveal | undefined {
  if (field(message, "type") !== "reveal") return undefined;
  const line = whole(field(message, "line"));
  if (line === undefined) return undefined;
  const column = whole(field(message, "column")) ?? 1;
  return { line, column, endColumn: Math.max(column, whole(field(message, "endColumn")) ?? column) };
}

/** The function that a page asks for by `{type: "function", name}`, "" for all of them; undefined for any other message. */
export function functionOf(message: unknown): string | undefined {
  const name = field(message, "type") === "function" ? field(message, "name") : undefined;
  return typeof name === "string" ? name : undefined;
}

/** A number from 1 on; a panel's 0 says that there is no such place. */
function whole(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}
