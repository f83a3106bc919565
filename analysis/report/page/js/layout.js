// Layered layout, step 4: all of it together, and the lines of the edges.

/**
 * A path as commands: "M" x y, "L" x y, "C" x1 y1 x2 y2 x y.
 * @typedef {(["M" | "L", number, number] | ["C", number, number, number, number, number, number])[]} Path
 */

/**
 * @typedef {object} Layout
 * @property {number} width
 * @property {number} height
 * @property {Float64Array} x left edge of each node
 * @property {Float64Array} y top of each node
 * @property {(Path | null)[]} paths of each edge; null where it is too long to be drawn whole
 */

/**
 * Where an edge leaves its source and enters its target, from the centre of the node; undefined: the layout chooses.
 * @typedef {{leave: (edge: number) => number | undefined, enter: (edge: number) => number | undefined}} Ports
 */

/**
 * @param {LayoutInput} g
 * @param {Ports} ports
 * @returns {Layout}
 */
function layoutGraph(g, ports) {
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

/**
 * Where the ranks and columns are.
 * @typedef {object} Bands
 * @property {number[]} top of each rank
 * @property {number[]} height of each rank
 * @property {number[]} shift of each column
 * @property {number[]} right edge of each column
 * @property {number[]} floor of each column
 * @property {Map<string, number>} lanes of the values that go on in the next column
 * @property {number} head where the columns begin
 * @property {number} width
 * @property {number} bottom
 */

/**
 * @param {LayoutInput} g
 * @param {Ranked} ranked
 * @param {number[]} left
 * @param {number[]} right
 * @returns {Bands}
 */
function stackRanks(g, ranked, left, right) {
  const ranks = ranked.layers.length;
  /** @type {number[]} */
  const height = new Array(ranks).fill(0);
  for (let v = 0; v < ranked.nodes; v++) {
    const r = at(ranked.rank, v);
    height[r] = Math.max(at(height, r), at(g.height, v));
  }
  /** @type {Map<string, number>} */
  const lanes = new Map();
  /** @type {number[]} */
  const used = left.map(() => 0);
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
  /** @type {number[]} */
  const top = [];
  /** @type {number[]} */
  const floor = left.map(() => head);
  for (let r = 0; r < ranks; r++) {
    const c = at(ranked.columnOf, r);
    const first = r === 0 || ranked.columnOf[r - 1] !== c;
    top.push(first ? head : at(top, r - 1) + at(height, r - 1) + gapAfter(ranked, r - 1));
    floor[c] = at(top, r) + at(height, r);
  }
  /** @type {number[]} */
  const shift = [];
  /** @type {number[]} */
  const edge = [];
  let width = 0;
  for (let c = 0; c < left.length; c++) {
    if (c > 0) width += layoutGap.column / 2 + at(used, c - 1) * 8 + 24;
    shift.push(width - at(left, c));
    width += at(right, c) - at(left, c);
    edge.push(width);
  }
  return { top, height, shift, right: edge, floor, lanes, head, width, bottom: Math.max(...floor) + (most === 0 ? 0 : 18 + most * 8) };
}

/**
 * @param {number} column
 * @param {number} source
 */
function laneKey(column, source) {
  return `${column} ${source}`;
}

/**
 * The more edges lead from a rank to the next, the more room they get to turn.
 * @param {Ranked} ranked
 * @param {number} r
 */
function gapAfter(ranked, r) {
  return layoutGap.rank + Math.min(64, at(ranked.layers, r).length * 1.5);
}

/**
 * Edges enter a node side by side, in the order in which they come; values leave it side by side.
 * @param {LayoutInput} g
 * @param {Ranked} ranked
 * @param {Float64Array} centre
 * @param {Ports} ports
 */
function choosePorts(g, ranked, centre, ports) {
  /** @type {number[]} */
  const enter = g.to.map(() => 0);
  /** @type {number[]} */
  const leave = g.from.map((_, e) => ports.leave(e) ?? 0);
  /** @type {number[][]} */
  const into = g.width.map(() => []);
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

/**
 * @param {LayoutInput} g
 * @param {Ranked} ranked
 * @param {Bands} bands
 * @param {Float64Array} centre
 * @param {Float64Array} y
 * @param {number[]} chain
 * @param {number} leave
 * @param {number} enter
 * @returns {Path}
 */
function route(g, ranked, bands, centre, y, chain, leave, enter) {
  const source = at(chain, 0);
  const target = at(chain, chain.length - 1);
  let px = at(centre, source) + leave;
  /** @type {Path} */
  const path = [["M", px, at(y, source) + at(g.height, source)]];
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

/**
 * From the foot of a column to the head of the next.
 * @param {Path} path
 * @param {Bands} bands
 * @param {number} c
 * @param {number} lane
 * @param {number} px
 * @param {number} qx
 * @param {number} qy
 */
function gutter(path, bands, c, lane, px, qx, qy) {
  const foot = at(bands.floor, c) + 14 + lane * 8;
  const gx = at(bands.right, c) + 24 + lane * 8;
  const head = bands.head - 14 - lane * 8;
  roundedLine(path, [px, foot, gx, foot, gx, head, qx, head, qx, qy]);
}

/**
 * Straight lines through points, their corners rounded.
 * @param {Path} path
 * @param {number[]} points
 */
function roundedLine(path, points) {
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

/**
 * @param {Path} path
 * @returns {[number, number]}
 */
function end(path) {
  const last = at(path, path.length - 1);
  return last[0] === "C" ? [last[5], last[6]] : [last[1], last[2]];
}

/**
 * The point r from (x, y) towards (tx, ty).
 * @param {number} x
 * @param {number} y
 * @param {number} tx
 * @param {number} ty
 * @param {number} r
 * @returns {[number, number]}
 */
function toward(x, y, tx, ty, r) {
  const d = Math.hypot(tx - x, ty - y) || 1;
  return [x + ((tx - x) * r) / d, y + ((ty - y) * r) / d];
}

/**
 * @param {Path} path
 * @param {number} dx
 * @param {number} dy
 * @returns {Path}
 */
function movePath(path, dx, dy) {
  return path.map((c) =>
    c[0] === "C"
      ? ["C", c[1] + dx, c[2] + dy, c[3] + dx, c[4] + dy, c[5] + dx, c[6] + dy]
      : [c[0], c[1] + dx, c[2] + dy],
  );
}
