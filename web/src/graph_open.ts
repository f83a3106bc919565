// Which groups of a graph are open at first.
import type { GraphNode } from "./data";
import { isValue } from "./graph_fold";
import { at } from "./util";

/** The number of nodes, beyond which there is no room for their text. */
const room = 56;

/** The kinds of groups that start open where there is room. */
export const opensFirst = new Set(["phase", "call", "scope"]);

interface Nested {
  readonly nodes: GraphNode[];
  readonly members: number[][];
  readonly top: number[];
}

/** The phases, calls and modules that start open: those that take longest, as long as there is room for what they show. */
export function openFirst({ nodes, members, top }: Nested): Set<number> {
  const open = new Set<number>();
  const closed = (some: number[]) => some.filter((i) => opensFirst.has(at(nodes, i).kind) && at(members, i).length > 0);
  let shown = top.filter((i) => !isValue(at(nodes, i))).length;
  for (const waiting = closed(top); waiting.length > 0; ) {
    waiting.sort((a, b) => (at(nodes, a).time_ns ?? 0) - (at(nodes, b).time_ns ?? 0));
    const i = waiting.pop() ?? 0;
    const inside = at(members, i);
    if (shown + inside.length > room) continue;
    shown += inside.length;
    open.add(i);
    waiting.push(...closed(inside));
  }
  return open;
}
