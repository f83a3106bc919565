// The interface of a figure, and the state that it shares with the frame of the page.
import type { Cost, Place } from "./data";
import type { Pen } from "./pen";
import type { Theme } from "./theme";
import type { Box, View } from "./view";

/** Something that can be selected: an op, a value, a buffer. */
export interface Item {
  /** Identifies the item in the next version of the program. */
  key: string;
  title: string;
  sub: string;
  /** Class of the op; "" for values. */
  cls: string;
  place: Place;
  /** The text that the search looks at, in lower case. */
  search: string;
  /** Names and numbers. */
  rows: [string, string][];
  /** The terms that the time is the sum or maximum of. */
  why: string[];
  /** Sort key of the printed table, largest first. */
  weight: number;
}

/** A column of the table of all items. */
export interface Column {
  name: string;
  text(i: number): string;
  /** The sort key of item i. */
  by(i: number): number | string;
  numeric?: boolean;
}

/** A list of related items in the card. */
export interface Section {
  name: string;
  items: { index: number; text: string; amount: string }[];
}

/** A part of the picture that a button and a key switch on and off. */
export interface Switch {
  key: string;
  name: string;
  title: string;
  on(): boolean;
  flip(): void;
}

/** Everything beside the view that a drawing depends on. */
export interface Look {
  theme: Theme;
  /** -1 for none. */
  selected: number;
  hover: number;
  /** Classes that are filtered out. */
  hidden: Set<string>;
  /** Items that match the search; null without a search. */
  found: Set<number> | null;
  paper: boolean;
}

export type Direction = "up" | "down" | "left" | "right" | "first" | "last";

export interface Figure {
  /** For example "Movement graph". */
  name: string;
  items: Item[];
  /** One sentence for screen readers. */
  summary: string;
  /** Why the figure is empty; "" if it is not. */
  empty: string;
  columns: Column[];
  /** Classes that occur, in the order of the legend. */
  classes: string[];
  /** The largest scale at which the whole figure is shown; 0 if each axis has a scale of its own. */
  uniform: number;
  /** Only the horizontal axis is zoomed and panned. */
  level?: boolean;
  minimap: boolean;
  /**
   * Where the card stands: "clear" is right, with the figure moved so that the item stays visible; "beside" is on the other
   * side than the item; "low" is right and below.
   */
  cardSide: "clear" | "beside" | "low";
  margins(w: number, h: number): { left: number; top: number; right: number; bottom: number };
  world(): Box;
  /** The box of an item in world coordinates; null if it is not drawn. */
  boxOf(i: number): Box | null;
  /** Draws the figure and returns the number of items drawn. */
  draw(pen: Pen, view: View, look: Look): number;
  /** Draws the figure for the minimap. */
  drawSmall?(pen: Pen, view: View, theme: Theme): void;
  /** Sets the preferred width / height. */
  prefer?(aspect: number): void;
  /** A number that changes with the layout. */
  stamp?(): number;
  hit(x: number, y: number, view: View): Hit | null;
  /** Scrolls a list at a position by a distance; false if there is none. */
  scroll?(x: number, y: number, by: number, view: View): boolean;
  /** The next item from i in a direction, i itself if there is none; i is -1 for no item. */
  walk(i: number, to: Direction): number;
  sections(i: number): Section[];
  /** The item that is selected at first, -1 for none. */
  first?(): number;
  /** Whether a stage of that width has room for the card of the first item beside the picture; absent, it has. */
  roomy?(width: number): boolean;
  /** Opens the groups around item i if asked to, and returns the innermost item that is drawn: i or a closed group. */
  show(i: number, open: boolean): number;
  /** Opens or closes a group; false if the item is none. */
  toggle?(i: number): boolean;
  /** The name of what toggle would do; "" if the item is no group. */
  toggleName?(i: number): string;
  toggleAll?(open: boolean): void;
  /** Parts of the picture that can be switched on and off. */
  switches?: Switch[];
  /** Opens a group that has become large on the screen, or closes one that was so opened and has become small. */
  zoomed?(view: View, closer: boolean, px: number, py: number): boolean;
  /** Takes over the open and closed groups of a figure of the version before. */
  adopt?(before: Figure): void;
  remember?(): unknown;
  recall?(state: unknown): void;
  /** Content below the figure. */
  notes?(theme: Theme): HTMLElement[];
  /** The note beside the legend. */
  note: string;
  /** How to read the figure, for the help. */
  about: string;
  /** Keys and their actions, for the help. */
  keys: string[][];
}

/** What is under the pointer: an item, or something that only has a tooltip. */
export interface Hit {
  /** Index of the item; -1 for something else. */
  index: number;
  /** The pointer is on the handle that opens and closes the item. */
  handle?: boolean;
  other?: Item;
}

/** The rows that the card of every op has. */
export function costRows(c: Cost): [string, string][] {
  const rows: [string, string][] = [];
  if (c.time_label) rows.push(["time", c.bound ? `${c.time_label} · ${c.bound}` : c.time_label]);
  rows.push(["FLOP", c.flop_label], ["read", c.read_label], ["written", c.written_label], ["moved", c.moved_label]);
  if (c.intensity_label) rows.push(["intensity", c.intensity_label]);
  return rows;
}

export function shortOp(op: string) {
  return op.startsWith("dm.") ? op.slice(3) : op;
}

export function titleOf(result: string, op: string) {
  if (op === "") return result;
  return result ? `${result} = ${shortOp(op)}` : shortOp(op);
}

export function known(n: number | null) {
  return n ?? -Infinity;
}

/** Keys that identify items across versions: their names, numbered if several are equal. */
export function distinctKeys(names: string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const n = seen.get(name) ?? 0;
    seen.set(name, n + 1);
    return n === 0 ? name : `${name} ${n}`;
  });
}
