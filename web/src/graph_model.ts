// Layout of the movement graph. An open group is laid out by itself and is one node of the group around it.
import type { GraphData, GraphEdge, GraphNode } from "./data";
import { shortOp } from "./figure";
import { Bundles, isSection, isValue, outside, ValueEdges } from "./graph_fold";
import { end, type Layout, layoutGraph, movePath, type Path } from "./layout";
import type { LayoutInput } from "./layout_rank";
import { textWidth } from "./pen";
import { at } from "./util";
import type { Box } from "./view";

export interface Line {
  edge: GraphEdge;
  index: number;
  path: Path | null;
  bounds: Box;
  from: [number, number];
  to: [number, number];
  width: number;
  dash: boolean;
}

/** A label beside a line. */
interface Label {
  text: string;
  x: number;
  y: number;
  line: Line;
}

export interface Scene {
  /** Box of each node; null if the node is not shown. */
  boxes: (Box | null)[];
  lines: Line[];
  labels: Label[];
  width: number;
  height: number;
}

export const groupInset = { side: 18, top: 50, bottom: 4 };
export const titleFont = { size: 13, fill: "", bold: true };
export const nameFont = { size: 12, fill: "", mono: true };
export const numberFont = { size: 11.5, fill: "" };

export function nodeTitle(n: GraphNode) {
  if (n.op === "func.call") return n.detail || "call";
  if (n.kind === "call") return `${shortOp(n.op)} ${n.detail}`;
  if (n.kind === "kernel" && n.detail !== "") return n.detail;
  return isValue(n) ? n.result : shortOp(n.op);
}

export function nodeName(n: GraphNode) {
  return n.kind === "argument" ? "argument" : n.kind === "result" ? "returned" : n.result;
}

/** The second line of a node. */
export function nodeNumbers(n: GraphNode, inKernel: boolean) {
  if (isValue(n)) return n.type;
  if (inKernel) return n.flop === 0 ? n.type : n.flop_label;
  if (n.kind === "opaque" && n.moved_bytes === null) return "not known";
  const parts = [n.time_label, n.moved_label].filter((label) => label !== "" && label !== "?" && label !== "0 s");
  return [n.trips_label, parts.join(" · ") || n.type].filter((s) => s !== "").join("  ");
}

/** The width of the text at the head of an open group. */
function headWidth(n: GraphNode) {
  const title = textWidth(nodeTitle(n), titleFont) + 8 + Math.min(150, textWidth(n.result, nameFont));
  return 42 + Math.max(title, textWidth(nodeNumbers(n, false), numberFont));
}

export class GraphModel {
  readonly nodes: GraphNode[];
  readonly edges: GraphEdge[];
  readonly members: number[][];
  top: number[] = [];
  /** Edges directly inside each group; the last list has those outside all groups. */
  readonly inside: number[][];
  readonly bundles: Bundles;
  readonly values: ValueEdges;
  readonly valueCount: number;
  readonly outs: number[][];
  readonly ins: number[][];
  /** Whether arguments and results are part of the ops that use and make them, rather than nodes of their own. */
  folded = false;
  readonly mostBytes: number;
  readonly mostShare: number;

  constructor(data: GraphData) {
    this.nodes = data.nodes ?? [];
    this.edges = [...(data.edges ?? [])];
    this.members = this.nodes.map(() => []);
    for (const n of this.nodes) (this.members[n.parent] ?? this.top).push(n.id);
    this.inside = Array.from({ length: this.nodes.length + 1 }, () => []);
    this.outs = this.nodes.map(() => []);
    this.ins = this.nodes.map(() => []);
    let bytes = 0;
    this.edges.forEach((e, i) => {
      const from = at(this.nodes, e.from);
      const to = at(this.nodes, e.to);
      const group = to.parent === e.from ? e.from : from.parent === e.to ? e.to : from.parent;
      at(this.inside, group < 0 ? this.nodes.length : group).push(i);
      at(this.outs, e.from).push(i);
      at(this.ins, e.to).push(i);
      bytes = Math.max(bytes, this.bytes(e) ?? 0);
    });
    this.mostBytes = bytes;
    this.values = new ValueEdges(this.nodes, [...this.edges]);
    this.bundles = new Bundles(this.edges);
    this.valueCount = this.nodes.filter(isValue).length;
    this.mostShare = this.nodes.reduce((m, n) => (this.isGroup(n.id) && n.kind !== "kernel" && n.kind !== "layer" ? m : Math.max(m, n.time_share)), 0);
  }

  isGroup(i: number) {
    return at(this.members, i).length > 0;
  }

  /** The bytes of an edge: those read of the value; for a result of the function, those written. */
  bytes(e: GraphEdge) {
    return this.nodes[e.to]?.kind === "result" ? e.size_bytes : e.moved_bytes;
  }

  amount(e: GraphEdge) {
    return this.nodes[e.to]?.kind === "result" ? e.size_label : e.moved_label;
  }

  inKernel(i: number) {
    for (let p = at(this.nodes, i).parent; p >= 0; p = at(this.nodes, p).parent) if (at(this.nodes, p).kind === "kernel") return true;
    return false;
  }

  /** How many arguments a node reads and how many results it returns that are not drawn as nodes: "+2 →1". */
  foldedAt(i: number) {
    if (!this.folded || isValue(at(this.nodes, i))) return "";
    const distinct = (edges: number[], of: (e: number) => boolean) => new Set(edges.filter(of).map((e) => at(this.edges, e).value)).size;
    const args = distinct(at(this.ins, i), (e) => this.values.isArgument(e));
    const results = distinct(at(this.outs, i), (e) => this.values.isResult(e));
    return [args > 0 ? `+${args}` : "", results > 0 ? `→${results}` : ""].filter((s) => s !== "").join(" ");
  }

  /** Width and height of a node other than an open group: the size of its text, enlarged by its share of the time. */
  size(i: number): [number, number] {
    const n = at(this.nodes, i);
    const name = nodeName(n);
    const title = textWidth(nodeTitle(n), titleFont) + (name ? 8 + Math.min(110, textWidth(name, nameFont)) : 0);
    const folded = this.foldedAt(i);
    const text = Math.max(title, textWidth(nodeNumbers(n, this.inKernel(i)), numberFont) + (folded ? 8 + textWidth(folded, numberFont) : 0));
    const big = this.mostShare > 0 ? Math.sqrt(Math.min(1, n.time_share / this.mostShare)) : 0;
    const pad = isValue(n) ? 26 : 56;
    return [Math.min(Math.ceil(text), 210) + pad + Math.round(50 * big), (isValue(n) ? 40 : 44) + Math.round(44 * big)];
  }

  /** The boxes and lines; placeLabels adds the labels. */
  scene(open: (i: number) => boolean, aspect: number): Scene {
    const scene: Scene = { boxes: this.nodes.map(() => null), lines: [], labels: [], width: 0, height: 0 };
    const whole = this.layoutOf(-1, open, aspect);
    scene.width = whole.layout.width;
    scene.height = whole.layout.height;
    this.place(whole, 0, 0, scene);
    return scene;
  }

  /** Lays out the members of a group; -1 is the function. */
  layoutOf(group: number, open: (i: number) => boolean, aspect: number): GroupLayout {
    const members = (group < 0 ? this.top : at(this.members, group)).filter((m) => !this.folded || !isValue(at(this.nodes, m)));
    members.sort((a, b) => at(this.nodes, a).rank - at(this.nodes, b).rank || a - b);
    const local = new Map(members.map((m, i) => [m, i]));
    const groups = new Map<number, GroupLayout>();
    const g: LayoutInput = { width: [], height: [], from: [], to: [], first: [], last: [], aspect };
    for (const m of members) {
      if (!this.isGroup(m) || !open(m)) {
        const [w, h] = this.size(m);
        g.width.push(w);
        g.height.push(h);
        continue;
      }
      const inner = this.layoutOf(m, open, aspect);
      groups.set(m, inner);
      g.width.push(Math.max(inner.layout.width + 2 * groupInset.side, headWidth(at(this.nodes, m)) + 16));
      g.height.push(inner.layout.height + groupInset.top + groupInset.bottom);
    }
    const entries = new Map<string, number>();
    const exits = new Map<string, number>();
    const gate = (gates: Map<string, number>, value: string, row: number[]) => {
      let i = gates.get(value);
      if (i === undefined) {
        i = g.width.length;
        g.width.push(10);
        g.height.push(0);
        gates.set(value, i);
        row.push(i);
      }
      return i;
    };
    const edges: number[] = [];
    const drawn = at(this.inside, group < 0 ? this.nodes.length : group).filter((e) => !this.folded || !(this.values.isArgument(e) || this.values.isResult(e)));
    for (const e of this.bundles.of(drawn, (i) => isSection(at(this.nodes, i)) && !groups.has(i))) {
      const edge = at(this.edges, e);
      if (edge.back && edge.to !== group) continue;
      const from = edge.from === group ? gate(entries, outside(edge), g.first) : local.get(edge.from);
      const to = edge.to === group ? gate(exits, outside(edge), g.last) : local.get(edge.to);
      if (from === undefined || to === undefined || from === to) continue;
      g.from.push(from);
      g.to.push(to);
      edges.push(e);
    }
    orderForward(g);
    this.gridOf(g, members.length);
    const layout = layoutGraph(g, {
      leave: (i) => this.port("exits", edges[i], at(g.width, at(g.from, i)), groups),
      enter: (i) => this.port("entries", edges[i], at(g.width, at(g.to, i)), groups),
    });
    return new GroupLayout(group, members, edges, layout, g, groups, entries, exits);
  }

  /** Where an edge crosses the border of the group at one of its ends; undefined if free. */
  port(side: "entries" | "exits", e: number | undefined, width: number, groups: Map<number, GroupLayout>) {
    if (e === undefined) return undefined;
    const edge = at(this.edges, e);
    return groups.get(side === "exits" ? edge.from : edge.to)?.port(side, edge.value, width, this.nodes);
  }

  /** Adds edges that are not drawn, so that many nodes without edges between them stand in rows. */
  gridOf(g: LayoutInput, members: number) {
    const many = 6;
    const between = g.from.some((f, i) => f < members && at(g.to, i) < members);
    if (members <= many || between) return;
    const columns = Math.max(many, Math.ceil(Math.sqrt(2 * members)));
    for (let i = columns; i < members; i++) {
      g.from.push(i - columns);
      g.to.push(i);
    }
  }

  /** Adds the boxes and lines of a group to the scene, with the group's inside at (x, y). */
  place(laid: GroupLayout, x: number, y: number, scene: Scene) {
    const { layout, input } = laid;
    laid.members.forEach((m, i) => {
      const box = { x: x + at(layout.x, i), y: y + at(layout.y, i), w: at(input.width, i), h: at(input.height, i) };
      scene.boxes[m] = box;
      const inner = laid.groups.get(m);
      if (inner) this.place(inner, box.x + (box.w - inner.layout.width) / 2, box.y + groupInset.top, scene);
    });
    laid.edges.forEach((index, i) => {
      const edge = at(this.edges, index);
      const path = this.throughBorder(laid, edge, layout.paths[i] ?? null, x, y, scene);
      const f = at(input.from, i);
      const t = at(input.to, i);
      const bytes = this.bytes(edge);
      const line: Line = {
        edge,
        index,
        path,
        bounds: { x: 0, y: 0, w: 0, h: 0 },
        from: [x + at(layout.x, f) + at(input.width, f) / 2, y + at(layout.y, f) + at(input.height, f)],
        to: [x + at(layout.x, t) + at(input.width, t) / 2, y + at(layout.y, t)],
        width: bytes === null || this.mostBytes === 0 ? 1.4 : bytes === 0 ? 1 : 1.2 + 7.8 * Math.sqrt(Math.min(1, bytes / this.mostBytes)),
        dash: bytes === 0,
      };
      if (!line.path) {
        // Beside the lines that are drawn whole.
        line.from[0] += at(input.width, f) / 2 - 18;
        line.to[0] -= at(input.width, t) / 2 - 18;
      } else {
        const first = at(line.path, 0);
        if (first[0] === "M") line.from = [first[1], first[2]];
        line.to = end(line.path);
      }
      line.bounds = boundsOf(line);
      scene.lines.push(line);
    });
  }

  /**
   * The path of a line inside a group, extended to the group's border where it enters or leaves.
   * @param x left edge of the group's inside
   */
  throughBorder(laid: GroupLayout, edge: GraphEdge, path: Path | null, x: number, y: number, scene: Scene): Path | null {
    if (!path) return null;
    const moved = movePath(path, x, y);
    const border = scene.boxes[laid.group];
    const [first] = moved;
    if (border && first?.[0] === "M" && edge.from === laid.group) {
      // The line starts below the text at the head of the group.
      const written = border.x + headWidth(at(this.nodes, laid.group));
      moved.splice(0, 1, ["M", first[1], border.y + (first[1] < written ? groupInset.top - 6 : 0)], ["L", first[1], first[2]]);
    }
    if (border && edge.to === laid.group) moved.push(["L", end(moved)[0], border.y + border.h]);
    return moved;
  }
}

/** The layout of one group. */
class GroupLayout {
  /**
   * @param groups layouts of the open groups among the members
   * @param entries nodes where values enter, by name
   * @param exits nodes where values leave, by name
   */
  constructor(
    readonly group: number,
    readonly members: number[],
    readonly edges: number[],
    readonly layout: Layout,
    readonly input: LayoutInput,
    readonly groups: Map<number, GroupLayout>,
    readonly entries: Map<string, number>,
    readonly exits: Map<string, number>,
  ) {}

  /**
   * Where a value crosses the border, relative to the centre of the group.
   * @param width width of the group
   */
  port(side: "entries" | "exits", value: string, width: number, nodes: GraphNode[]): number | undefined {
    const gates = this[side];
    // Outside, a value that leaves has the name of the group's result at the same position.
    const names = side === "exits" ? (nodes[this.group]?.result ?? "").split(", ") : [];
    const position = names.length === gates.size ? names.indexOf(value) : -1;
    const gate = gates.get(value) ?? [...gates.values()][gates.size === 1 ? 0 : position];
    if (gate === undefined) return undefined;
    return (width - this.layout.width) / 2 + at(this.layout.x, gate) + at(this.input.width, gate) / 2 - width / 2;
  }
}

/**
 * Reverses edges from a larger to a smaller number, which invalid programs may have. Edges from the entries of a group stay:
 * entries have the largest numbers and the first rank.
 */
function orderForward(g: LayoutInput) {
  const first = new Set(g.first);
  for (let e = 0; e < g.from.length; e++) {
    const f = at(g.from, e);
    const t = at(g.to, e);
    if (f <= t || first.has(f)) continue;
    g.from[e] = t;
    g.to[e] = f;
  }
}

function boundsOf(line: Line): Box {
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  const add = (x: number, y: number) => {
    x0 = Math.min(x0, x);
    x1 = Math.max(x1, x);
    y0 = Math.min(y0, y);
    y1 = Math.max(y1, y);
  };
  add(...line.from);
  add(...line.to);
  for (const c of line.path ?? []) {
    add(c[1], c[2]);
    if (c[0] === "C") {
      add(c[3], c[4]);
      add(c[5], c[6]);
    }
  }
  const pad = line.width / 2 + 4;
  return { x: x0 - pad, y: y0 - pad, w: x1 - x0 + 2 * pad, h: y1 - y0 + 2 * pad };
}
