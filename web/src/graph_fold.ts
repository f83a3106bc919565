// What the picture of a graph draws as part of something else: arguments and results in their ops, many lines as one.
import type { GraphEdge, GraphNode } from "./data";
import { at } from "./util";

export function isValue(n: GraphNode) {
  return n.kind === "argument" || n.kind === "result";
}

/** Whether a node is a group that the text does not have: a phase of a training step, a module, equal layers, one of them, or a derivative. */
export function isSection(n: GraphNode) {
  return n.kind === "phase" || n.kind === "scope" || n.kind === "stack" || n.kind === "layer" || n.kind === "rule";
}

/** Whether what goes into a group is what its members use, and what comes out is what they make. */
const passesOn = (n: GraphNode) => isSection(n) || n.kind === "call";

/** What the value of an edge is called on the outer side of the group that the edge enters or leaves. */
export const outside = (e: GraphEdge) => e.outer ?? e.value;

/** The edges by which arguments come to ops and results leave them, through any number of sections and calls. */
export class ValueEdges {
  private readonly entering = new Map<string, number>();
  private readonly leaving = new Map<string, number[]>();
  private readonly known = new Map<number, boolean>();
  private readonly returned = new Map<number, boolean>();

  constructor(readonly nodes: GraphNode[], readonly edges: GraphEdge[]) {
    edges.forEach((e, i) => {
      const from = at(nodes, e.from);
      const to = at(nodes, e.to);
      const into = `${e.to} ${e.value}`;
      if (passesOn(to) && from.parent !== to.id && !this.entering.has(into)) this.entering.set(into, i);
      if (!passesOn(from) || to.parent === from.id) return;
      const out = `${e.from} ${e.value}`;
      const list = this.leaving.get(out);
      if (list) list.push(i);
      else this.leaving.set(out, [i]);
    });
  }

  /** Whether edge i brings an argument of the function. */
  isArgument(i: number): boolean {
    const before = this.known.get(i);
    if (before !== undefined) return before;
    const edge = at(this.edges, i);
    const from = at(this.nodes, edge.from);
    let is = from.kind === "argument";
    if (passesOn(from) && at(this.nodes, edge.to).parent === from.id) {
      const outer = this.entering.get(`${from.id} ${outside(edge)}`);
      is = outer !== undefined && this.isArgument(outer);
    }
    this.known.set(i, is);
    return is;
  }

  /** Whether edge i takes away what is only returned. */
  isResult(i: number): boolean {
    const before = this.returned.get(i);
    if (before !== undefined) return before;
    const edge = at(this.edges, i);
    const to = at(this.nodes, edge.to);
    const is = to.kind === "result" || (passesOn(to) && at(this.nodes, edge.from).parent === to.id && (this.leaving.get(`${to.id} ${outside(edge)}`) ?? []).every((e) => this.isResult(e)));
    this.returned.set(i, is);
    return is;
  }
}

/** The number of lines between the same two closed nodes from which on they are drawn as one, and between any two ends. */
const many = 4;
const tooMany = 24;

/** Edges that stand for many between the same two nodes. */
export class Bundles {
  private readonly made = new Map<string, number>();
  private readonly members = new Map<number, number[]>();

  /** @param edges all edges of the graph, to which bundles are added */
  constructor(readonly edges: GraphEdge[]) {}

  /** Some edges, of which the many between the same two nodes, or a node and the border of its group, are one. */
  of(some: number[], closed: (i: number) => boolean): number[] {
    const between = new Map<string, number[]>();
    for (const i of some) {
      const { from, to, back } = at(this.edges, i);
      const key = back ? `back ${i}` : `${from} ${to}`;
      const list = between.get(key);
      if (list) list.push(i);
      else between.set(key, [i]);
    }
    return [...between].flatMap(([ends, all]) => {
      const { from, to } = at(this.edges, at(all, 0));
      if (all.length < (closed(from) && closed(to) ? many : tooMany)) return all;
      const key = `${ends} ${all.length}`;
      return [this.made.get(key) ?? this.make(key, all)];
    });
  }

  /** The edges that edge i stands for; none if it is no bundle. */
  inside(i: number): GraphEdge[] {
    return (this.members.get(i) ?? []).map((e) => at(this.edges, e));
  }

  private make(key: string, all: number[]) {
    const own = all.map((i) => at(this.edges, i));
    const sum = (of: (e: GraphEdge) => number | null) => own.reduce<number | null>((s, e) => (s === null || of(e) === null ? null : s + (of(e) ?? 0)), 0);
    const label = `${own.length} values`;
    const i = this.edges.length;
    this.edges.push({ ...at(own, 0), value: label, type: "", size_bytes: sum((e) => e.size_bytes), size_label: "", moved_bytes: sum((e) => e.moved_bytes), moved_label: label, heavy: own.some((e) => e.heavy) });
    this.made.set(key, i);
    this.members.set(i, all);
    return i;
  }
}
