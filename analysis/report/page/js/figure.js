// What the frame of a page asks of the figure in it, and the state they share.

/**
 * Something that can be chosen: an op, a value, a buffer.
 * @typedef {object} Item
 * @property {string} key the same in the next version of the program, as far as one can tell
 * @property {string} title
 * @property {string} sub
 * @property {string} cls class of the op; "" for values
 * @property {Place} place
 * @property {string} search all that is searched, in lower case
 * @property {[string, string][]} rows numbers by name
 * @property {string[]} why the terms of the time
 * @property {number} weight what the order of importance goes by
 */

/**
 * A column of the table of all items.
 * @typedef {object} Column
 * @property {string} name
 * @property {(i: number) => string} text
 * @property {(i: number) => number | string} by what it is sorted by; null sorts last
 * @property {boolean} [numeric]
 */

/**
 * A list of other items in the card of the chosen one.
 * @typedef {{name: string, items: {index: number, text: string, amount: string}[]}} Section
 */

/**
 * How a figure is to be drawn.
 * @typedef {object} Look
 * @property {Theme} theme
 * @property {number} selected -1 for none
 * @property {number} hover
 * @property {Set<string>} hidden classes that are switched off
 * @property {Set<number> | null} found items that the search finds; null without a search
 * @property {boolean} paper
 */

/**
 * @typedef {"up" | "down" | "left" | "right" | "first" | "last"} Direction
 */

/**
 * @typedef {object} Figure
 * @property {string} name "Movement graph"
 * @property {Item[]} items
 * @property {string} summary one sentence for those who do not see the figure
 * @property {string} empty why there is nothing to draw; "" where there is
 * @property {Column[]} columns
 * @property {string[]} classes that occur
 * @property {number} uniform largest scale at which all of it is shown; 0: the axes are scaled each for itself
 * @property {boolean} minimap
 * @property {"clear" | "beside" | "low"} cardSide where the card of the chosen item stands: right, the figure moving out of
 *   its way; on the other side than the item; right and low
 * @property {(w: number, h: number) => {left: number, top: number, right: number, bottom: number}} margins
 * @property {() => Box} world
 * @property {(i: number) => Box | null} boxOf of an item in the world; null where it is not drawn
 * @property {(pen: Pen, view: View, look: Look) => number} draw returns how many items it drew
 * @property {(pen: Pen, view: View, theme: Theme) => void} [drawSmall] for the minimap
 * @property {(aspect: number) => void} [prefer] is told the shape of the place where it will be
 * @property {() => number} [stamp] changes with the layout
 * @property {(x: number, y: number, view: View) => Hit | null} hit
 * @property {(i: number, to: Direction) => number} walk the item next to i, or i; i is -1 for none
 * @property {(i: number) => Section[]} sections
 * @property {(i: number, open: boolean) => number} show sees to it that the item is drawn, opening what it is in or
 *   choosing what stands for it, which it returns
 * @property {(i: number) => boolean} [toggle] opens or closes; false where there is nothing to open
 * @property {(i: number) => string} [toggleName] what toggle would do; "" for nothing
 * @property {(open: boolean) => void} [toggleAll]
 * @property {(before: Figure) => void} [adopt] takes over what is open and closed
 * @property {() => unknown} [remember]
 * @property {(state: unknown) => void} [recall]
 * @property {(theme: Theme) => HTMLElement[]} [notes] what stands beneath the figure
 * @property {string} note small print of the legend
 * @property {string} about how to read it
 * @property {string[][]} keys of its own: key, what it does
 */

/**
 * What the pointer is on: an item, or something that only has a tooltip.
 * @typedef {object} Hit
 * @property {number} index of the item; -1 for something else
 * @property {boolean} [handle] on what opens and closes the item
 * @property {Item} [other]
 */

/**
 * What every op's card says.
 * @param {Cost} c
 * @returns {[string, string][]}
 */
function costRows(c) {
  /** @type {[string, string][]} */
  const rows = [];
  if (c.time_label) rows.push(["time", c.bound ? `${c.time_label} · ${c.bound}` : c.time_label]);
  rows.push(["FLOP", c.flop_label], ["read", c.read_label], ["written", c.written_label], ["moved", c.moved_label]);
  if (c.intensity_label) rows.push(["intensity", c.intensity_label]);
  return rows;
}

/** @param {string} op */
function shortOp(op) {
  return op.startsWith("dm.") ? op.slice(3) : op;
}

/**
 * @param {string} result
 * @param {string} op
 */
function titleOf(result, op) {
  if (op === "") return result;
  return result ? `${result} = ${shortOp(op)}` : shortOp(op);
}

/** @param {number | null} n */
function known(n) {
  return n ?? -Infinity;
}

/**
 * Names that the same item has in another version: its text, numbered where several have the same.
 * @param {string[]} names
 * @returns {string[]}
 */
function distinctKeys(names) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  return names.map((name) => {
    const n = seen.get(name) ?? 0;
    seen.set(name, n + 1);
    return n === 0 ? name : `${name} ${n}`;
  });
}
