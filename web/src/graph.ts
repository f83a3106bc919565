// The movement graph as a figure: selection, groups and navigation.
import type { GraphEdge, GraphNode, PanelData } from "./data";
import { type Column, costRows, type Direction, distinctKeys, type Figure, type Hit, type Item, known, type Look, type Section, type Switch, titleOf } from "./figure";
import { drawGraph, type GraphPicture, titleScale } from "./graph_draw";
import { curvePoint, placeLabels } from "./graph_labels";
import { isSection, isValue } from "./graph_fold";
import { GraphModel, groupInset, nodeTitle, type Scene } from "./graph_model";
import { openFirst, opensFirst } from "./graph_open";
import { boxAt, zoomGroups } from "./graph_zoom";
import { totalRows } from "./header";
import { figureKeys } from "./help";
import type { Path } from "./layout";
import type { Pen } from "./pen";
import { markOf, markTable, paperTheme, type Theme } from "./theme";
import { at, clamp } from "./util";
import type { Box, View } from "./view";

/** Graphs up to this number of nodes start with their groups open. */
const openAtFirst = 250;
/** From this number on arguments and results start folded. */
const manyValues = 9;
const valuesKey = "arguments and results";
const heavyKey = "heaviest path";
const zoomKey = "zoom opens groups";
/** The number of values that the tooltip of a line that stands for many lists. */
const listed = 8;

export class GraphFigure implements Figure {
  readonly name = "Movement graph";
  readonly model: GraphModel;
  readonly items: Item[];
  readonly classes: string[];
  readonly uniform: number = 1.25;
  readonly cardSide: Figure["cardSide"] = "clear";
  readonly minimap: boolean;
  readonly empty: string;
  readonly summary: string;
  readonly note = "Size of a node: its time · width of a line: bytes read · dashed: stays on the chip";
  readonly about = "Values flow downwards, and from the bottom of a column to the top of the next. The width of a line is the number of bytes read through it; a dashed line moves nothing: its value stays on the chip or is only reshaped. A line that ends in a bar continues far away: select the node at either end to see all of it. The path that takes longest has a strong outline. The phases of a training step, the modules of a traced program and layers that are equal are groups, found by what the ops need, by where they were traced, and by repetition; a call and a gradient hold what they run, and in a backward pass ∂ mul %y holds what the derivative of that op computes. +2 →1 in a node are arguments that it reads and results that it returns, while they are folded.";
  readonly keys: string[][];
  readonly switches: Switch[];
  choice = new Map<string, boolean>();
  /** The groups that a zoom has opened. */
  zoomOpened = new Set<number>();
  laid: Scene | null = null;
  stamps = 0;
  aspect = 1.5;
  readonly openFirst: Set<number>;
  readonly columns: Column[];
  bounds: { x: number; y: number; w: number; h: number } | undefined;

  constructor(data: PanelData) {
    this.model = new GraphModel(data.graph ?? { nodes: [], edges: [] });
    this.openFirst = openFirst(this.model);
    const { nodes } = this.model;
    const keys = distinctKeys(nodes.map((n) => `${n.kind} ${n.op} ${n.result} ${nodes[n.parent]?.result ?? ""}`));
    this.items = nodes.map((n, i) => ({
      key: at(keys, i),
      title: n.kind === "result" ? `return ${n.result}` : titleOf(n.result, n.op),
      sub: [n.detail, n.type].filter((s) => s !== "").join("  ·  "),
      cls: isValue(n) ? "" : isSection(n) ? "section" : n.class,
      place: n,
      search: `${n.origin ?? ""} ${n.result} ${n.op} ${n.class} ${markOf(paperTheme, n.class).name} ${n.kind} ${n.type} ${n.kind === "kernel" ? "" : n.detail} ${n.heavy ? heavyKey : ""}`.toLowerCase(),
      rows: this.rows(n),
      why: n.why ?? [],
      weight: this.model.inKernel(i) || isValue(n) ? -Infinity : (n.time_ns ?? n.moved_bytes ?? 0),
    }));
    const order = markTable.map(([cls]) => cls);
    this.classes = order.filter((cls) => this.items.some((item) => item.cls === cls));
    this.minimap = nodes.length > 8;
    this.empty = nodes.length === 0 ? "This function has no ops." : "";
    const ops = nodes.filter((n) => !isValue(n) && !isSection(n)).length;
    this.summary = `${ops === 1 ? "1 op" : `${ops} ops`} of ${data.function ? `@${data.function}` : "the program"}: ${totalRows(data).map(([n, v]) => `${n} ${v}`).join(", ")}`;
    this.switches = this.makeSwitches();
    this.keys = [["↑ ↓", "follow the line with the most bytes"], ["← →", "next node to the side"], ["Space", "open or close a kernel, loop or branch; so does a double click"], ["e c", "open or close all"], ...this.switches.map((s) => [s.key, s.title]), ...figureKeys];
    this.columns = this.tableColumns();
  }

  makeSwitches(): Switch[] {
    const flag = (key: string, name: string, title: string, choice: string, on: () => boolean) => ({
      key,
      name,
      title,
      on,
      flip: () => {
        this.choice.set(choice, !on());
        if (choice === valuesKey) this.laid = null;
      },
    });
    const { nodes, valueCount } = this.model;
    return [
      ...(nodes.some((n) => n.heavy) ? [flag("h", "Heaviest path", "mark the path that takes longest", heavyKey, () => this.choice.get(heavyKey) ?? true)] : []),
      ...(valueCount > 0 ? [flag("a", "Arguments", "show arguments and results, or fold them into their ops", valuesKey, () => !this.folded)] : []),
      ...(nodes.some((n) => this.model.isGroup(n.id)) ? [flag("z", "Zoom opens", "open groups by zooming in, close them by zooming out", zoomKey, () => this.choice.get(zoomKey) ?? true)] : []),
    ];
  }

  rows(n: GraphNode): [string, string][] {
    if (isValue(n)) return [["size", this.valueSize(n)]];
    if (this.model.inKernel(n.id)) return [["FLOP", n.flop_label], ["moved", "nothing: stays on the chip"]];
    const rows = costRows(n);
    if (n.time_share > 0) rows.unshift(["of the time", percent(n.time_share)]);
    if (n.trips_label) rows.unshift(["runs", n.trips_label]);
    if (n.heavy) rows.push([heavyKey, "on it"]);
    if (n.idle) rows.unshift(["counted", "no: the other branch costs more"]);
    return rows;
  }

  valueSize(n: GraphNode) {
    const { outs, ins, edges } = this.model;
    const e = at(outs, n.id)[0] ?? at(ins, n.id)[0];
    return e === undefined ? "not used" : at(edges, e).size_label;
  }

  tableColumns(): Column[] {
    const node = (i: number) => at(this.model.nodes, i);
    const cost = (i: number, label: string) => (isValue(node(i)) || (this.model.inKernel(i) && /^0 (B|s)$/.test(label)) ? "" : label);
    return [
      { name: "Op", text: (i) => "  ".repeat(this.depth(i)) + at(this.items, i).title, by: (i) => at(this.items, i).title },
      { name: "Line", text: (i) => (node(i).line > 0 ? String(node(i).line) : ""), by: (i) => node(i).line, numeric: true },
      { name: "Class", text: (i) => (isValue(node(i)) ? node(i).kind : markOf(paperTheme, node(i).class).name), by: (i) => node(i).class },
      { name: "Time", text: (i) => cost(i, node(i).time_label), by: (i) => known(node(i).time_ns), numeric: true },
      { name: "Share", text: (i) => (node(i).time_share > 0 ? percent(node(i).time_share) : ""), by: (i) => node(i).time_share, numeric: true },
      { name: "Path", text: (i) => (node(i).heavy ? "heaviest" : ""), by: (i) => (node(i).heavy ? 0 : 1) },
      { name: "Bound", text: (i) => node(i).bound, by: (i) => node(i).bound },
      { name: "FLOP", text: (i) => cost(i, node(i).flop_label), by: (i) => known(node(i).flop), numeric: true },
      { name: "Read", text: (i) => cost(i, node(i).read_label), by: (i) => known(node(i).read_bytes), numeric: true },
      { name: "Written", text: (i) => cost(i, node(i).written_label), by: (i) => known(node(i).written_bytes), numeric: true },
      { name: "Type", text: (i) => node(i).type, by: (i) => node(i).type },
    ];
  }

  depth(i: number) {
    let depth = 0;
    for (let p = at(this.model.nodes, i).parent; p >= 0; p = at(this.model.nodes, p).parent) depth++;
    return depth;
  }

  isOpen(i: number) {
    const chosen = this.choice.get(at(this.items, i).key);
    if (chosen !== undefined) return chosen;
    const { kind } = at(this.model.nodes, i);
    if (opensFirst.has(kind)) return this.openFirst.has(i);
    return kind !== "stack" && kind !== "rule" && this.model.nodes.length <= openAtFirst && at(this.model.members, i).length <= 16;
  }

  get folded() {
    return !(this.choice.get(valuesKey) ?? this.model.valueCount < manyValues);
  }

  scene(): Scene {
    if (!this.laid) {
      this.model.folded = this.folded;
      this.laid = this.model.scene((i) => this.isOpen(i), this.aspect);
      placeLabels(this.model, this.laid);
      this.stamps++;
      this.bounds = { x: -24, y: -24, w: this.laid.width + 48, h: this.laid.height + 48 };
    }
    return this.laid;
  }

  prefer(aspect: number) {
    this.aspect = aspect;
    this.laid = null;
  }

  stamp() {
    return this.stamps;
  }

  world() {
    this.scene();
    return this.bounds ?? { x: 0, y: 0, w: 1, h: 1 };
  }

  margins() {
    return { left: 0, top: 0, right: 0, bottom: 0 };
  }

  boxOf(i: number) {
    return this.scene().boxes[i] ?? null;
  }

  picture(): GraphPicture {
    return { model: this.model, scene: this.scene(), open: (i) => this.isOpen(i), heavy: this.choice.get(heavyKey) ?? true, items: this.items };
  }

  draw(pen: Pen, view: View, look: Look) {
    return drawGraph(pen, this.picture(), view, look);
  }

  drawSmall(pen: Pen, view: View, theme: Theme) {
    this.scene().boxes.forEach((box, i) => {
      if (!box) return;
      const mark = markOf(theme, at(this.model.nodes, i).class);
      const open = this.model.isGroup(i) && this.isOpen(i);
      pen.rect(view.sx(box.x), view.sy(box.y), Math.max(1, box.w * view.kx), Math.max(1, box.h * view.ky), { fill: mark.color, opacity: open ? 0.25 : 0.85 });
    });
  }

  hit(px: number, py: number, view: View): Hit | null {
    const x = view.wx(px);
    const y = view.wy(py);
    const { boxes } = this.scene();
    const best = boxAt(boxes, x, y);
    if (best < 0) return this.hitLine(x, y, view);
    const box = at(boxes, best);
    if (!box || !this.model.isGroup(best)) return { index: best };
    const handle = x <= box.x + 34 && (!this.isOpen(best) || y <= box.y + 30) && view.kx >= titleScale;
    if (this.isOpen(best) && !handle && y > box.y + groupInset.top) {
      const line = this.hitLine(x, y, view);
      if (line) return line;
    }
    return { index: best, handle };
  }

  hitLine(x: number, y: number, view: View): Hit | null {
    if (view.kx < 0.15) return null;
    const reach = 5 / view.kx;
    for (const line of this.scene().lines) {
      const b = line.bounds;
      if (!line.path || x < b.x || y < b.y || x > b.x + b.w || y > b.y + b.h) continue;
      if (distance(line.path, x, y) > line.width / 2 + reach) continue;
      const e = line.edge;
      const to = at(this.items, e.to).title;
      const many = this.model.bundles.inside(line.index);
      const rows: [string, string][] = many.length > 0 ? many.slice(0, listed).map((m) => [m.value, `${m.type} · ${m.size_label}`]) : [["size", e.size_label], ["read from memory", line.dash ? "nothing" : e.moved_label]];
      if (many.length > listed) rows.push(["and", `${many.length - listed} more`]);
      rows.push(["to", to]);
      return { index: -1, other: { key: "", title: e.value, sub: e.type, cls: "", place: e, search: "", rows, why: [], weight: 0 } };
    }
    return null;
  }

  walk(i: number, to: Direction): number {
    const { boxes } = this.scene();
    const visible = boxes.map((b, j) => (b ? j : -1)).filter((j) => j >= 0);
    const first = visible[0];
    if (first === undefined) return -1;
    if (to === "last") return at(visible, visible.length - 1);
    if (i < 0 || to === "first") return first;
    if (to === "left" || to === "right") return beside(boxes, i, to, (j) => this.model.isGroup(j) && this.isOpen(j));
    const { nodes } = this.model;
    const far = (e: GraphEdge) => (to === "down" ? e.to : e.from);
    const list = (j: number) => (to === "down" ? at(this.model.outs, j) : at(this.model.ins, j)).map((e) => at(this.model.edges, e));
    let edges: GraphEdge[] = list(i).filter((e) => !e.back && boxes[far(e)]);
    if (to === "up") edges = edges.filter((e) => nodes[e.from]?.parent !== i);
    else {
      // An edge out of a group continues to the users of the group's result.
      edges = edges.flatMap((e) => (at(nodes, i).parent === e.to ? list(e.to).filter((f) => nodes[f.to]?.parent !== e.to && boxes[f.to]) : [e]));
      const inner = edges.filter((e) => nodes[e.to]?.parent === i);
      if (inner.length > 0) edges = inner;
    }
    let best = i;
    let most = -1;
    for (const e of edges) {
      const size = e.size_bytes ?? 0;
      if (size > most) {
        most = size;
        best = far(e);
      }
    }
    return best;
  }

  sections(i: number): Section[] {
    const { model, items } = this;
    const list = (edges: number[], far: (e: GraphEdge) => number) =>
      edges.map((e) => at(model.edges, e)).map((e) => ({ index: far(e), text: e.value === at(items, far(e)).title ? e.value : `${e.value}  ${at(model.nodes, far(e)).kind === "result" ? "returned" : nodeTitle(at(model.nodes, far(e)))}`, amount: model.amount(e) === "0 B" ? "" : model.amount(e) }));
    const inside = at(model.members, i).map((m) => ({ index: m, text: at(items, m).title, amount: at(model.nodes, m).flop === 0 ? "" : at(model.nodes, m).flop_label }));
    const outer = (e: number) => at(model.nodes, at(model.edges, e).to).parent !== i;
    const from = (e: number) => at(model.nodes, at(model.edges, e).from).parent !== i;
    return [
      { name: "Reads", items: list(at(model.ins, i).filter(from), (e) => e.from) },
      { name: "Read by", items: list(at(model.outs, i).filter(outer), (e) => e.to) },
      { name: "Inside", items: inside },
    ];
  }

  /** @param open open the closed groups around item i */
  show(i: number, open: boolean) {
    let shown = i;
    if (this.folded && isValue(at(this.model.nodes, i))) {
      if (!open) return -1;
      this.choice.set(valuesKey, true);
      this.laid = null;
    }
    for (let p = at(this.model.nodes, i).parent; p >= 0; p = at(this.model.nodes, p).parent) {
      if (this.isOpen(p)) continue;
      if (open) {
        this.choice.set(at(this.items, p).key, true);
        this.laid = null;
      } else shown = p;
    }
    return shown;
  }

  toggle(i: number) {
    if (!this.model.isGroup(i)) return false;
    this.choice.set(at(this.items, i).key, !this.isOpen(i));
    this.zoomOpened.delete(i);
    this.laid = null;
    return true;
  }

  zoomed(view: View, closer: boolean, px: number, py: number) {
    if (!(this.choice.get(zoomKey) ?? true)) return false;
    const figure = {
      world: () => this.world(),
      boxOf: (i: number) => this.boxOf(i),
      isGroup: (i: number) => this.model.isGroup(i),
      isOpen: (i: number) => this.isOpen(i),
      under: (x: number, y: number) => boxAt(this.scene().boxes, view.wx(x), view.wy(y)),
      setOpen: (i: number) => this.toggle(i),
    };
    return zoomGroups(figure, this.zoomOpened, view, closer, px, py);
  }

  toggleName(i: number) {
    return this.model.isGroup(i) ? (this.isOpen(i) ? "Close" : "Open") : "";
  }

  toggleAll(open: boolean) {
    this.items.forEach((item, i) => {
      if (this.model.isGroup(i)) this.choice.set(item.key, open);
    });
    this.zoomOpened.clear();
    this.laid = null;
  }

  adopt(before: Figure) {
    if (!(before instanceof GraphFigure)) return;
    this.choice = new Map(before.choice);
    this.stamps = before.stamps;
  }

  remember() {
    return [...this.choice];
  }

  recall(state: unknown) {
    if (!Array.isArray(state)) return;
    for (const pair of state) if (Array.isArray(pair)) this.choice.set(String(pair[0]), pair[1] === true);
  }
}

function percent(share: number) {
  const p = 100 * share;
  return `${p >= 99.95 ? "100" : p >= 10 ? p.toFixed(1) : p >= 0.1 ? p.toFixed(2) : "<0.1"} %`;
}

/** The index of the nearest box to the left or right of box i. */
function beside(boxes: (Box | null)[], i: number, to: "left" | "right", skip: (i: number) => boolean) {
  const from = boxes[i];
  if (!from) return i;
  let best = i;
  let least = Infinity;
  boxes.forEach((b, j) => {
    if (!b || j === i || skip(j)) return;
    const gap = to === "left" ? from.x - (b.x + b.w) : b.x - (from.x + from.w);
    const off = Math.abs(b.y + b.h / 2 - (from.y + from.h / 2));
    if (gap < -1 || off > gap + from.h) return;
    const far = gap + 3 * off;
    if (far < least) {
      least = far;
      best = j;
    }
  });
  return best;
}

/** The distance of a point from a path. */
function distance(path: Path, x: number, y: number) {
  let [px, py] = [0, 0];
  let least = Infinity;
  const step = (qx: number, qy: number) => {
    const [dx, dy] = [qx - px, qy - py];
    const t = clamp(((x - px) * dx + (y - py) * dy) / (dx * dx + dy * dy || 1), 0, 1);
    least = Math.min(least, Math.hypot(x - px - t * dx, y - py - t * dy));
    [px, py] = [qx, qy];
  };
  for (const c of path) {
    if (c[0] === "C") {
      const [sx, sy] = [px, py];
      for (let i = 1; i <= 12; i++) step(...curvePoint(sx, sy, c, i / 12));
    } else if (c[0] === "L") step(c[1], c[2]);
    else [px, py] = [c[1], c[2]];
  }
  return least;
}
