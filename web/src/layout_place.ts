// Layered layout, step 3: horizontal coordinates. Brandes and Köpf, "Fast and simple horizontal coordinate
// assignment" (2001): four alignments of nodes with their median neighbours, each packed, and the mean of the middle two.
import { layoutGap, type Ranked } from "./layout_rank";
import { at } from "./util";

/** Returns the centre of each node, and the left and right edge of each column in the column's own coordinates. */
export function placeNodes(g: Ranked, pos: Int32Array): { x: Float64Array; left: number[]; right: number[] } {
  const x = new Float64Array(g.rank.length);
  const left: number[] = [];
  const right: number[] = [];
  for (let start = 0; start < g.layers.length; ) {
    let end = start;
    while (end < g.layers.length && g.columnOf[end] === g.columnOf[start]) end++;
    const layers = g.layers.slice(start, end);
    placeColumn(g, pos, layers, start, x);
    let lo = Infinity;
    let hi = -Infinity;
    for (const layer of layers) {
      for (const v of layer) {
        lo = Math.min(lo, at(x, v) - at(g.width, v) / 2);
        hi = Math.max(hi, at(x, v) + at(g.width, v) / 2);
      }
    }
    left.push(lo);
    right.push(hi);
    start = end;
  }
  return { x, left, right };
}

/**
 * @param layers layers of one column
 * @param start first rank of the column
 */
function placeColumn(g: Ranked, pos: Int32Array, layers: number[][], start: number, x: Float64Array) {
  const inside = (list: number[]) =>
    list
      .filter((u) => g.columnOf[at(g.rank, u)] === g.columnOf[start])
      .sort((a, b) => at(pos, a) - at(pos, b));
  const above = new Map<number, number[]>();
  const below = new Map<number, number[]>();
  for (const layer of layers) {
    for (const v of layer) {
      above.set(v, inside(at(g.above, v)));
      below.set(v, inside(at(g.below, v)));
    }
  }
  const conflicts = findConflicts(g, pos, layers, above);
  const clash = (u: number, v: number) =>
    conflicts.size > 0 && conflicts.has(at(g.rank, u) < at(g.rank, v) ? u * g.rank.length + v : v * g.rank.length + u);
  const all: Map<number, number>[] = [];
  for (const down of [true, false]) {
    for (const flip of [false, true]) {
      const order = (down ? layers : [...layers].reverse()).map((l) => (flip ? [...l].reverse() : l));
      const root = alignBlocks(order, down ? above : below, pos, clash, flip);
      all.push(packBlocks(g, order, root, flip));
    }
  }
  balance(g, layers, all, x);
}

/**
 * The edges that cross an inner segment of a long edge; they are not aligned, so that the long edge is straight.
 * @returns upper node · number of nodes + lower node
 */
function findConflicts(g: Ranked, pos: Int32Array, layers: number[][], above: Map<number, number[]>): Set<number> {
  const conflicts = new Set<number>();
  const passes = (v: number) => v >= g.nodes;
  for (let i = 1; i < layers.length; i++) {
    const layer = at(layers, i);
    let from = 0;
    let scanned = 0;
    for (let j = 0; j < layer.length; j++) {
      const inner = passes(at(layer, j)) ? above.get(at(layer, j))?.find(passes) : undefined;
      if (inner === undefined && j < layer.length - 1) continue;
      const to = inner === undefined ? at(layers, i - 1).length : at(pos, inner);
      for (; scanned <= j; scanned++) {
        const v = at(layer, scanned);
        for (const u of above.get(v) ?? []) {
          if ((at(pos, u) < from || at(pos, u) > to) && !(passes(u) && passes(v))) conflicts.add(u * g.rank.length + v);
        }
      }
      from = to;
    }
  }
  return conflicts;
}

/**
 * Joins each node with its median neighbour into vertical blocks.
 * @param layers layers in the order of traversal
 * @param neighbours neighbours in the previous layer
 * @param flip traverse each layer from the right
 * @returns the block of each node, named by its first node
 */
function alignBlocks(
  layers: number[][],
  neighbours: Map<number, number[]>,
  pos: Int32Array,
  clash: (u: number, v: number) => boolean,
  flip: boolean,
): Map<number, number> {
  const root = new Map<number, number>();
  const taken = new Set<number>();
  for (const layer of layers) for (const v of layer) root.set(v, v);
  for (const layer of layers) {
    let reached = -Infinity;
    for (const v of layer) {
      const list = neighbours.get(v) ?? [];
      const middle = (list.length - 1) / 2;
      const two = list.length === 0 ? [] : [Math.floor(middle), Math.ceil(middle)];
      if (flip) two.reverse();
      for (const i of two) {
        const u = at(list, i);
        const p = flip ? -at(pos, u) : at(pos, u);
        if (taken.has(u) || p <= reached || clash(u, v)) continue;
        taken.add(u);
        root.set(v, root.get(u) ?? u);
        reached = p;
        break;
      }
    }
  }
  return root;
}

/**
 * Packs the blocks as closely as the widths of their nodes allow.
 * @returns centre of each node
 */
function packBlocks(g: Ranked, layers: number[][], root: Map<number, number>, flip: boolean): Map<number, number> {
  /** For each block, the blocks to its right and their minimum distances. */
  const next = new Map<number, [number, number][]>();
  const waiting = new Map<number, number>();
  for (const block of root.values()) next.set(block, next.get(block) ?? []);
  for (const layer of layers) {
    for (let i = 1; i < layer.length; i++) {
      const u = at(layer, i - 1);
      const v = at(layer, i);
      const to = root.get(v) ?? v;
      next.get(root.get(u) ?? u)?.push([to, separation(g, u, v)]);
      waiting.set(to, (waiting.get(to) ?? 0) + 1);
    }
  }
  const x = new Map<number, number>();
  const order = [...next.keys()].filter((b) => !waiting.has(b));
  for (const b of order) x.set(b, 0);
  for (let i = 0; i < order.length; i++) {
    const b = at(order, i);
    for (const [to, by] of next.get(b) ?? []) {
      x.set(to, Math.max(x.get(to) ?? 0, (x.get(b) ?? 0) + by));
      const left = (waiting.get(to) ?? 0) - 1;
      waiting.set(to, left);
      if (left === 0) order.push(to);
    }
  }
  for (let i = order.length - 1; i >= 0; i--) {
    const b = at(order, i);
    let room = Infinity;
    for (const [to, by] of next.get(b) ?? []) room = Math.min(room, (x.get(to) ?? 0) - by);
    if (room !== Infinity) x.set(b, Math.max(x.get(b) ?? 0, room));
  }
  const centre = new Map<number, number>();
  for (const [v, b] of root) centre.set(v, (flip ? -1 : 1) * (x.get(b) ?? 0));
  return centre;
}

function separation(g: Ranked, u: number, v: number) {
  const points = (u >= g.nodes ? 1 : 0) + (v >= g.nodes ? 1 : 0);
  const gap = points === 2 ? layoutGap.pass : points === 1 ? (layoutGap.pass + layoutGap.node) / 2 : layoutGap.node;
  return (at(g.width, u) + at(g.width, v)) / 2 + gap;
}

/**
 * Aligns the four placements with the narrowest of them and takes, for each node, the mean of the middle two.
 * @param all placements: left, right, left, right
 */
function balance(g: Ranked, layers: number[][], all: Map<number, number>[], x: Float64Array) {
  const nodes = layers.flat();
  const extents = all.map((centre) => {
    let lo = Infinity;
    let hi = -Infinity;
    for (const v of nodes) {
      lo = Math.min(lo, (centre.get(v) ?? 0) - at(g.width, v) / 2);
      hi = Math.max(hi, (centre.get(v) ?? 0) + at(g.width, v) / 2);
    }
    return { lo, hi };
  });
  const narrow = extents.reduce((best, e) => (e.hi - e.lo < best.hi - best.lo ? e : best));
  const shift = extents.map((e, i) => (i % 2 === 0 ? narrow.lo - e.lo : narrow.hi - e.hi));
  for (const v of nodes) {
    const four = all.map((centre, i) => (centre.get(v) ?? 0) + at(shift, i)).sort((a, b) => a - b);
    x[v] = (at(four, 1) + at(four, 2)) / 2;
  }
}
