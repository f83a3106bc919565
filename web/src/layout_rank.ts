// Layered layout, step 1: ranks, columns, and the dummy nodes of edges that span ranks.
//
// Nodes have the order of the text, so an edge leads from a smaller to a larger number.
import { at } from "./util";

/** The graph to lay out. */
export interface LayoutInput {
  /** Width of each node. */
  width: number[];
  /** Height of each node. */
  height: number[];
  /** Source of each edge. */
  from: number[];
  /** Target of each edge. */
  to: number[];
  /** Nodes that are fixed in the first rank. */
  first: number[];
  /** Nodes that are fixed in the last rank. */
  last: number[];
  /** Preferred width / height of the drawing; 0 for a single column. */
  aspect: number;
}

/** The ranked graph: nodes 0…nodes-1 are those of the input, the others are dummy nodes. */
export interface Ranked {
  nodes: number;
  rank: number[];
  width: number[];
  layers: number[][];
  /** Neighbours in the rank above. */
  above: number[][];
  /** Neighbours in the rank below. */
  below: number[][];
  /** Source, dummy nodes and target of each edge; empty if the edge is drawn as two stubs. */
  chains: number[][];
  /** Column of each rank. */
  columnOf: number[];
}

export const layoutGap = { rank: 46, node: 28, pass: 14, column: 96 };

/** An edge that spans farSpan ranks is drawn as two stubs; if its value has many uses (weights), farSpanOfMany suffice. */
const farSpan = 32;
const farSpanOfMany = 6;
const manyUses = 12;

/** A rank that is as high, with an open group, may be a column of its own. */
const tallRank = 600;

/** Ranks by longest path from the sources; a node with more consumers than operands moves down to its first consumer. */
function rankNodes(g: LayoutInput): number[] {
  const n = g.width.length;
  const { outs, ins } = adjacency(n, g.from, g.to);
  const rank = new Array<number>(n).fill(0);
  const shift = g.first.length > 0 ? 1 : 0;
  const first = new Set(g.first);
  for (let v = 0; v < n; v++) {
    let r = first.has(v) ? 0 : shift;
    for (const u of at(ins, v)) r = Math.max(r, at(rank, u) + 1);
    rank[v] = r;
  }
  for (let v = n - 1; v >= 0; v--) {
    const down = at(outs, v);
    if (down.length === 0 || first.has(v) || down.length <= at(ins, v).length) continue;
    let r = Infinity;
    for (const u of down) r = Math.min(r, at(rank, u) - 1);
    rank[v] = Math.max(r, at(rank, v));
  }
  if (g.last.length > 0) {
    const last = new Set(g.last);
    let end = 1;
    for (let v = 0; v < n; v++) if (!last.has(v)) end = Math.max(end, at(rank, v) + 1);
    for (const v of g.last) rank[v] = end;
  }
  return rank;
}

function adjacency(n: number, from: number[], to: number[]) {
  const outs: number[][] = Array.from({ length: n }, () => []);
  const ins: number[][] = Array.from({ length: n }, () => []);
  for (let e = 0; e < from.length; e++) {
    at(outs, at(from, e)).push(at(to, e));
    at(ins, at(to, e)).push(at(from, e));
  }
  return { outs, ins };
}

/**
 * Breaks a long graph into columns at ranks that few edges cross.
 * @returns column of each rank
 */
function breakColumns(g: LayoutInput, rank: number[]): number[] {
  let ranks = 0;
  for (const r of rank) ranks = Math.max(ranks, r + 1);
  const height = new Array<number>(ranks).fill(0);
  const width = new Array<number>(ranks).fill(0);
  for (let v = 0; v < rank.length; v++) {
    const r = at(rank, v);
    height[r] = Math.max(at(height, r), at(g.height, v));
    width[r] = at(width, r) + at(g.width, v) + layoutGap.node;
  }
  const column = new Array<number>(ranks).fill(0);
  const total = height.reduce((a, h) => a + h + layoutGap.rank, 0);
  const tall = height.filter((h) => h >= tallRank).length;
  const typical = tall > 1 ? width.reduce((sum, w, r) => sum + w * at(height, r), 0) / height.reduce((a, h) => a + h, 0) : quantile(width, 0.9);
  const wide = typical * 1.25 + layoutGap.column;
  const most = Math.max(Math.floor(ranks / 4), tall);
  const count = Math.min(Math.round(Math.sqrt((g.aspect * total) / wide)), most);
  if (g.aspect === 0 || count < 2 || total < 1400) return column;

  const crossing = new Array<number>(ranks + 1).fill(0);
  for (let e = 0; e < g.from.length; e++) {
    const a = at(rank, at(g.from, e));
    const b = at(rank, at(g.to, e));
    crossing[a] = at(crossing, a) + 1;
    crossing[b] = at(crossing, b) - 1;
  }
  for (let r = 1; r <= ranks; r++) crossing[r] = at(crossing, r) + at(crossing, r - 1);

  const ideal = total / count;
  const top: number[] = [0];
  for (let r = 0; r < ranks; r++) top.push(at(top, r) + at(height, r) + layoutGap.rank);
  for (let start = 0, current = 0; total - at(top, start) > 1.3 * ideal; current++) {
    let best = -1;
    let least = Infinity;
    for (let r = start; r < ranks - 1; r++) {
      const share = (at(top, r + 1) - at(top, start)) / ideal;
      if (share > 1.15 && best >= 0) break;
      const cost = at(crossing, r) + Math.abs(share - 1) * 6;
      if (share < 0.7 || cost >= least || total - at(top, r + 1) < 0.3 * ideal) continue;
      least = cost;
      best = r;
    }
    if (best < 0) break;
    start = best + 1;
    column.fill(current + 1, start);
  }
  return column;
}

function quantile(list: number[], q: number) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
}

/**
 * Adds a dummy node in every rank that an edge passes. The number of dummy nodes is linear in the size of the graph: shorter
 * edges get theirs first, the rest are drawn as stubs.
 */
export function rankGraph(g: LayoutInput): Ranked {
  const rank = rankNodes(g);
  const columnOf = breakColumns(g, rank);
  const nodes = g.width.length;
  const width = [...g.width];
  const chains: number[][] = Array.from({ length: g.from.length }, () => []);
  const span = g.from.map((u, e) => at(rank, at(g.to, e)) - at(rank, u));
  const order = span.map((_, e) => e).sort((a, b) => at(span, a) - at(span, b) || a - b);
  const uses = new Array<number>(nodes).fill(0);
  for (const u of g.from) uses[u] = at(uses, u) + 1;
  let budget = Math.max(4000, 3 * nodes);
  for (const e of order) {
    const u = at(g.from, e);
    const v = at(g.to, e);
    const points = at(span, e) - 1;
    const breaks = at(columnOf, at(rank, v)) - at(columnOf, at(rank, u));
    const far = at(uses, u) > manyUses ? farSpanOfMany : farSpan;
    if (points >= far || points > budget || breaks > 1 || (breaks === 1 && points > 24)) continue;
    budget -= points;
    const chain = [u];
    for (let i = 1; i <= points; i++) {
      chain.push(width.length);
      rank.push(at(rank, u) + i);
      width.push(2);
    }
    chain.push(v);
    chains[e] = chain;
  }
  const layers: number[][] = columnOf.map(() => []);
  for (let v = 0; v < rank.length; v++) at(layers, at(rank, v)).push(v);
  const from: number[] = [];
  const to: number[] = [];
  for (const chain of chains) {
    for (let i = 1; i < chain.length; i++) {
      from.push(at(chain, i - 1));
      to.push(at(chain, i));
    }
  }
  const { outs, ins } = adjacency(rank.length, from, to);
  return { nodes, rank, width, layers, above: ins, below: outs, chains, columnOf };
}
