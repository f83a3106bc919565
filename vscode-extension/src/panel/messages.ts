import { field } from "./page";

/** A place in the text, or in another version of it, to show; numbers from 1, the end exclusive. */
export interface Reveal {
  line: number;
  column: number;
  endColumn: number;
  version?: string;
}

/** The place in a page's message `{type: "reveal", line, column, endColumn, version}`; undefined for any other message. */
export function revealOf(message: unknown): Reveal | undefined {
  if (field(message, "type") !== "reveal") return undefined;
  const line = whole(field(message, "line"));
  if (line === undefined) return undefined;
  const column = whole(field(message, "column")) ?? 1;
  const version = field(message, "version");
  const place = { line, column, endColumn: Math.max(column, whole(field(message, "endColumn")) ?? column) };
  return typeof version === "string" && version !== "" ? { ...place, version } : place;
}

/** The versions in a page's message `{type: "compare", base, version}`; undefined for any other message. */
export function comparisonOf(message: unknown): { base: string; version: string } | undefined {
  if (field(message, "type") !== "compare") return undefined;
  const base = field(message, "base");
  const version = field(message, "version");
  return typeof base === "string" && typeof version === "string" ? { base, version } : undefined;
}

/** The number of the entry in a page's message `{type: "revert", id}`; undefined for any other message. */
export function revertOf(message: unknown): number | undefined {
  return field(message, "type") === "revert" ? whole(field(message, "id")) : undefined;
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
