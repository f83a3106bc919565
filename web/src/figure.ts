// What the frame of a page asks of the figure in it, and the state they share.
import type { Cost, Place } from "./data";
import type { Pen } from "./pen";
import type { Theme } from "./theme";
import type { Box, View } from "./view";

/** Something that can be chosen: an op, a value, a buffer. */
export interface Item {
  /** The same in the next version of the program, as far as one can tell. */
  key: string;
  title: string;
  sub: string;
  /** Class of the op; "" for values. */
  cls: string;
  place: Place;
  /** All that is searched, in lower case. */
  search: string;
  /** Numbers by name. */
  rows: [string, string][];
  /** The terms of the time. */
  why: string[];
  /** What the order of importance goes by. */
  weight: number;
}

/** A column of the table of all items. */
export interface Column {
  name: string;
  text(i: number): string;
  /** What it is sorted by; null sorts last. */
  by(i: number): number | string;
  numeric?: boolean;
}

/** A list of other items in the card of the chosen one. */
export interface Section {
  name: string;
  items: { index: number; text: string; amount: string }[];
}

/** How a figure is to be drawn. */
export interface Look {
  theme: Theme;
  /** -1 for none. */
  selected: number;
  hover: number;
  /** Classes that are switched off. */
  hidden: Set<string>;
  /** Items that the search finds; null without a search. */
  found: Set<number> | null;
  paper: boolean;
}

export type Direction = "up" | "down" | "left" | "right" | "first" | "last";

export interface Figure {
  /** "Movement graph". */
  name: string;
  items: Item[];
  /** One sentence for those who do not see the figure. */
  summary: string;
  /** Why there is nothing to draw; "" where there is. */
  empty: string;
  columns: Column[];
  /** That occur. */
  classes: string[];
  /** Largest scale at which all of it is shown; 0: the axes are scaled each for itself. */
  uniform: number;
  minimap: boolean;
  /**
   * where the card of the chosen item stands: right, the figure moving out of its way; on the other side than the item;
   * right and low
   */
  cardSide: "clear" | "beside" | "low";
  margins(w: number, h: number): { left: number; top: number; right: number; bottom: number };
  world(): Box;
  /** Of an item in the world; null where it is not drawn. */
  boxOf(i: number): Box | null;
  /** Returns how many items it drew. */
  draw(pen: Pen, view: View, look: Look): number;
  /** For the minimap. */
  drawSmall?(pen: Pen, view: View, theme: Theme): void;
  /** Is told the shape of the place where it will be. */
  prefer?(aspect: number): void;
  /** Changes with the layout. */
  stamp?(): number;
  hit(x: number, y: number, view: View): Hit | null;
  /** The item next to i, or i; i is -1 for none. */
  walk(i: number, to: Direction): number;
  sections(i: number): Section[];
  /** Sees to it that the item is drawn, opening what it is in or choosing what stands for it, which it returns. */
  show(i: number, open: boolean): number;
  /** Opens or closes; false where there is nothing to open. */
  toggle?(i: number): boolean;
  /** What toggle would do; "" for nothing. */
  toggleName?(i: number): string;
  toggleAll?(open: boolean): void;
  /** Takes over what is open and closed. */
  adopt?(before: Figure): void;
  remember?(): unknown;
  recall?(state: unknown): void;
  /** What stands beneath the figure. */
  notes?(theme: Theme): HTMLElement[];
  /** Small print of the legend. */
  note: string;
  /** How to read it. */
  about: string;
  /** Of its own: key, what it does. */
  keys: string[][];
}

/** What the pointer is on: an item, or something that only has a tooltip. */
export interface Hit {
  /** Of the item; -1 for something else. */
  index: number;
  /** On what opens and closes the item. */
  handle?: boolean;
  other?: Item;
}

/** What every op's card says. */
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

/** Names that the same item has in another version: its text, numbered where several have the same. */
export function distinctKeys(names: string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const n = seen.get(name) ?? 0;
    seen.set(name, n + 1);
    return n === 0 ? name : `${name} ${n}`;
  });
}
