// Layered layout, step 4: coordinates of ranks and columns, and the paths of edges.
import { orderLayers } from "./layout_order";
import { placeNodes } from "./layout_place";
import { layoutGap, type LayoutInput, type Ranked, rankGraph } from "./layout_rank";
import { at } from "./util";

/** A path as commands: "M" x y, "L" x y, "C" x1 y1 x2 y2 x y. */
export type Path = (["M" | "L", number, number] | ["C", number, number, number, number, number, number])[];

export interface Layout {
  width: number;
  height: number;
  /** Left edge of each node. */
  x: Float64Array;
  /** Top of each node. */
  y: Float64Array;
  /** Path of each edge; null if it spans too many ranks to be drawn whole. */
  paths: (Path | null)[];
}

/** Where an edge leaves its source and enters its target, relative to the centre of the node; undefined if free. */
interface Ports {
  leave(edge: number): number | undefined;
  enter(edge: number): number | undefined;
}

export function layoutGraph(g: LayoutInput, ports: Ports): Layout {
  const n = g.width.length;
  const x = new Float64Array(n);
  const y = new Float64Array(n);
  if (n === 0) return { width: 0, height: 0, x, y, paths: [] };
  const ranked = rankGraph(g);
  const pos = orderLayers(ranked);
  const placed = placeNodes(ranked, pos);
  const bands = stackRanks(g, ranked, placed.left, placed.right);
  const centre = placed.x.map((c, v) => c + at(bands.shift, at(ranked.columnOf, at(ranked.rank, v))));
  for (let v = 0; v < n; v++) {
    const r = at(ranked.rank, v);
    x[v] = at(centre, v) - at(g.width, v) / 2;
    y[v] = at(bands.top, r) + (at(bands.height, r) - at(g.height, v)) / 2;
  }
  const ends = choosePorts(g, ranked, centre, ports);
  const paths = ranked.chains.map((chain, e) =>
    chain.length === 0 ? null : route(g, ranked, bands, centre, y, chain, at(ends.leave, e), at(ends.enter, e)),
  );
  return { width: bands.width, height: bands.bottom, x, y, paths };
}

/** The coordinates of ranks and columns. */
interface Bands {
  /** Top of each rank. */
  top: number[];
  /** Height of each rank. */
  height: number[];
  /** Offset of each column. */
  shift: number[];
  /** Right edge of each column. */
  right: number[];
  /** Bottom of each column. */
  floor: number[];
  /** Lanes of the values that continue in the next column, by laneKey. */
  lanes: Map<string, number>;
  /** Top of the columns. */
  head: number;
  width: number;
  bottom: number;
}

function stackRanks(g: LayoutInput, ranked: Ranked, left: number[], right: number[]): Bands {
  const ranks = ranked.layers.length;
  const height = new Array<number>(ranks).fill(0);
  for (let v = 0; v < ranked.nodes; v++) {
    const r = at(ranked.rank, v);
    height[r] = Math.max(at(height, r), at(g.height, v));
  }
  const lanes = new Map<string, number>();
  const used: number[] = left.map(() => 0);
  for (const chain of ranked.chains) {
    for (let i = 1; i < chain.length; i++) {
      const c = at(ranked.columnOf, at(ranked.rank, at(chain, i - 1)));
      const key = laneKey(c, at(chain, 0));
      if (c === ranked.columnOf[at(ranked.rank, at(chain, i))] || lanes.has(key)) continue;
      lanes.set(key, at(used, c));
      used[c] = at(used, c) + 1;
    }
  }
  const most = Math.max(...used);
  const head = most === 0 ? 0 : 18 + most * 8;
  const top: number[] = [];
  const floor: number[] = left.map(() => head);
  for (let r = 0; r < ranks; r++) {
    const c = at(ranked.columnOf, r);
    const first = r === 0 || ranked.columnOf[r - 1] !== c;
    top.push(first ? head : at(top, r - 1) + at(height, r - 1) + gapAfter(ranked, r - 1));
    floor[c] = at(top, r) + at(height, r);
  }
  const shift: number[] = [];
  const edge: number[] = [];
  let width = 0;
  for (let c = 0; c < left.length; c++) {
    if (c > 0) width += layoutGap.column / 2 + at(used, c - 1) * 8 + 24;
    shift.push(width - at(left, c));
    width += at(right, c) - at(left, c);
    edge.push(width);
  }
  return { top, height, shift, right: edge, floor, lanes, head, width, bottom: Math.max(...floor) + (most === 0 ? 0 : 18 + most * 8) };
}

function laneKey(column: number, source: number) {
  return `${column} ${source}`;
}

/** The gap below a rank, which grows with the number of nodes and edges in the rank. */
function gapAfter(ranked: Ranked, r: number) {
  return layoutGap.rank + Math.min(64, at(ranked.layers, r).length * 1.5);
}

/** Distributes the edges that enter a node over its top, in the order of their sources. */
function choosePorts(g: LayoutInput, ranked: Ranked, centre: Float64Array, ports: Ports) {
  const enter: number[] = g.to.map(() => 0);
  const leave: number[] = g.from.map((_, e) => ports.leave(e) ?? 0);
  const into: number[][] = g.width.map(() => []);
  for (let e = 0; e < g.to.length; e++) {
    const fixed = ports.enter(e);
    if (fixed !== undefined) enter[e] = fixed;
    else if (at(ranked.chains, e).length > 0) at(into, at(g.to, e)).push(e);
  }
  for (let v = 0; v < into.length; v++) {
    const list = at(into, v);
    const before = new Map(list.map((e) => {
      const chain = at(ranked.chains, e);
      const near = at(centre, at(chain, chain.length - 2));
      const sameColumn = ranked.columnOf[at(ranked.rank, at(chain, chain.length - 2))] === ranked.columnOf[at(ranked.rank, v)];
      return [e, sameColumn ? near : -Infinity];
    }));
    list.sort((a, b) => (before.get(a) ?? 0) - (before.get(b) ?? 0) || a - b);
    const step = list.length < 2 ? 0 : Math.min(22, (at(g.width, v) * 0.62) / (list.length - 1));
    for (let i = 0; i < list.length; i++) enter[at(list, i)] = (i - (list.length - 1) / 2) * step;
  }
  return { enter, leave };
}

function route(
  g: LayoutInput,
  ranked: Ranked,
  bands: Bands,
  centre: Float64Array,
  y: Float64Array,
  chain: number[],
  leave: number,
  enter: number,
): Path {
  const source = at(chain, 0);
  const target = at(chain, chain.length - 1);
  let px = at(centre, source) + leave;
  const path: Path = [["M", px, at(y, source) + at(g.height, source)]];
  for (let i = 1; i < chain.length; i++) {
    const v = at(chain, i);
    const r = at(ranked.rank, v);
    const before = at(ranked.rank, at(chain, i - 1));
    const qx = at(centre, v) + (v === target ? enter : 0);
    const qy = v === target ? Math.max(at(bands.top, r), Math.min(at(y, v), at(bands.top, r) + 4)) : at(bands.top, r);
    const c = at(ranked.columnOf, before);
    const py = at(bands.top, before) + at(bands.height, before);
    if (c === ranked.columnOf[r]) {
      path.push(["L", px, py]);
      if (Math.abs(px - qx) < 0.5) path.push(["L", qx, qy]);
      else path.push(["C", px, py + (qy - py) * 0.55, qx, qy - (qy - py) * 0.55, qx, qy]);
    } else {
      gutter(path, bands, c, bands.lanes.get(laneKey(c, source)) ?? 0, px, qx, qy);
    }
    path.push(v === target ? ["L", qx, at(y, v)] : ["L", qx, at(bands.top, r) + at(bands.height, r)]);
    px = qx;
  }
  return path;
}

/** Adds the path from the bottom of a column to the top of the next. */
function gutter(path: Path, bands: Bands, c: number, lane: number, px: number, qx: number, qy: number) {
  const foot = at(bands.floor, c) + 14 + lane * 8;
  const gx = at(bands.right, c) + 24 + lane * 8;
  const head = bands.head - 14 - lane * 8;
  roundedLine(path, [px, foot, gx, foot, gx, head, qx, head, qx, qy]);
}

/** Adds straight lines through points, with rounded corners. */
function roundedLine(path: Path, points: number[]) {
  for (let i = 0; i + 3 < points.length; i += 2) {
    const [ax, ay] = end(path);
    const [bx, by] = [at(points, i), at(points, i + 1)];
    const [cx, cy] = [at(points, i + 2), at(points, i + 3)];
    const r = Math.min(9, Math.hypot(bx - ax, by - ay) / 2, Math.hypot(cx - bx, cy - by) / 2);
    const a = toward(bx, by, ax, ay, r);
    const b = toward(bx, by, cx, cy, r);
    path.push(["L", a[0], a[1]], ["C", bx, by, bx, by, b[0], b[1]]);
  }
  path.push(["L", at(points, points.length - 2), at(points, points.length - 1)]);
}

export function end(path: Path): [number, number] {
  const last = at(path, path.length - 1);
  return last[0] === "C" ? [last[5], last[6]] : [last[1], last[2]];
}

/** The point at distance r from (x, y) in the direction of (tx, ty). */
function toward(x: number, y: number, tx: number, ty: number, r: number): [number, number] {
  const d = Math.hypot(tx - x, ty - y) || 1;
  return [x + ((tx - x) * r) / d, y + ((ty - y) * r) / d];
}

export function movePath(path: Path, dx: number, dy: number): Path {
  return path.map((c) =>
    c[0] === "C"
      ? ["C", c[1] + dx, c[2] + dy, c[3] + dx, c[4] + dy, c[5] + dx, c[6] + dy]
      : [c[0], c[1] + dx, c[2] + dy],
  );
}
