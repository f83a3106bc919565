// Layered layout, step 2: the order within each rank, with few crossings.
import type { Ranked } from "./layout_rank";
import { at } from "./util";

/**
 * Orders the layers of g in place: barycentre sweeps, of which the best is kept, then exchanges of neighbours.
 * @returns position of each node in its layer
 */
export function orderLayers(g: Ranked): Int32Array {
  const pos = new Int32Array(g.rank.length);
  firstOrder(g, pos);
  let edges = 0;
  for (const list of g.below) edges += list.length;
  const rounds = Math.max(4, Math.min(24, Math.floor(300_000 / (g.rank.length + edges + 1))));
  let best = crossings(g, pos);
  let kept = g.layers.map((l) => [...l]);
  for (let i = 0, idle = 0; i < rounds && best > 0 && idle < 5; i++) {
    sweep(g, pos, i % 2 === 0);
    const count = crossings(g, pos);
    idle = count < best ? 0 : idle + 1;
    if (count < best) {
      best = count;
      kept = g.layers.map((l) => [...l]);
    }
  }
  g.layers = kept;
  for (const layer of kept) number(layer, pos);
  if (best > 0 && edges < 20_000) exchange(g, pos);
  return pos;
}

function number(layer: number[], pos: Int32Array) {
  for (let i = 0; i < layer.length; i++) pos[at(layer, i)] = i;
}

/** Sets the initial order: that of a depth-first traversal from the top. */
function firstOrder(g: Ranked, pos: Int32Array) {
  const seen = new Uint8Array(g.rank.length);
  const layers: number[][] = g.layers.map(() => []);
  for (const layer of g.layers) {
    for (const root of layer) {
      const stack = [root];
      for (let v = stack.pop(); v !== undefined; v = stack.pop()) {
        if (seen[v]) continue;
        seen[v] = 1;
        at(layers, at(g.rank, v)).push(v);
        const next = at(g.below, v);
        for (let i = next.length - 1; i >= 0; i--) stack.push(at(next, i));
      }
    }
  }
  g.layers = layers;
  for (const layer of layers) number(layer, pos);
}

/** Sorts each layer by the mean position of the neighbours in the previous layer; nodes without neighbours stay. */
function sweep(g: Ranked, pos: Int32Array, down: boolean) {
  const key = new Float64Array(g.rank.length);
  const n = g.layers.length;
  for (let i = 1; i < n; i++) {
    const layer = at(g.layers, down ? i : n - 1 - i);
    const neighbours = down ? g.above : g.below;
    const moving: number[] = [];
    for (const v of layer) {
      const list = at(neighbours, v);
      if (list.length === 0) continue;
      let sum = 0;
      for (const u of list) sum += at(pos, u);
      key[v] = sum / list.length;
      moving.push(v);
    }
    moving.sort((a, b) => at(key, a) - at(key, b) || at(pos, a) - at(pos, b));
    let next = 0;
    for (let j = 0; j < layer.length; j++) {
      if (at(neighbours, at(layer, j)).length > 0) layer[j] = at(moving, next++);
    }
    number(layer, pos);
  }
}

function crossings(g: Ranked, pos: Int32Array) {
  let total = 0;
  for (let r = 0; r + 1 < g.layers.length; r++) total += layerCrossings(at(g.layers, r), at(g.layers, r + 1).length, g.below, pos);
  return total;
}

/**
 * The number of inversions among the targets of a layer's edges, counted with a Fenwick tree.
 * @param width number of nodes in the layer below
 */
function layerCrossings(layer: number[], width: number, below: number[][], pos: Int32Array) {
  const tree = new Int32Array(width + 1);
  let total = 0;
  let placed = 0;
  for (const v of layer) {
    const list = at(below, v);
    if (list.length === 0) continue;
    const targets = list.length === 1 ? [at(pos, at(list, 0))] : list.map((u) => at(pos, u)).sort((a, b) => a - b);
    for (const t of targets) {
      let upTo = 0;
      for (let i = t + 1; i > 0; i -= i & -i) upTo += at(tree, i);
      total += placed - upTo;
    }
    for (const t of targets) {
      for (let i = t + 1; i <= width; i += i & -i) tree[i] = at(tree, i) + 1;
    }
    placed += targets.length;
  }
  return total;
}

/** Exchanges neighbours in a layer while that removes crossings. */
function exchange(g: Ranked, pos: Int32Array) {
  for (let round = 0, better = true; better && round < 6; round++) {
    better = false;
    for (const layer of g.layers) {
      for (let i = 0; i + 1 < layer.length; i++) {
        const a = at(layer, i);
        const b = at(layer, i + 1);
        const now = between(g.above, pos, a, b) + between(g.below, pos, a, b);
        const then = between(g.above, pos, b, a) + between(g.below, pos, b, a);
        if (then >= now) continue;
        layer[i] = b;
        layer[i + 1] = a;
        pos[b] = i;
        pos[a] = i + 1;
        better = true;
      }
    }
  }
}

/** The number of crossings between the edges of a and those of b if a is left of b. */
function between(neighbours: number[][], pos: Int32Array, a: number, b: number) {
  const left = at(neighbours, a);
  const right = at(neighbours, b);
  if (left.length * right.length > 4096) return 0;
  let count = 0;
  for (const u of left) for (const v of right) if (at(pos, u) > at(pos, v)) count++;
  return count;
}
