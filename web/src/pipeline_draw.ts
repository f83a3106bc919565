// Draws the rows of PipelineView.
import type { PlanRow } from "./data";
import { fitText, type Pen, textWidth } from "./pen";
import { type Block, type Lane, type Pipelines, type Spot, taskClasses, titleHeight } from "./pipeline_lane";
import { markOf, type Theme } from "./theme";
import { at, duration, ticks } from "./util";
import type { View } from "./view";

/** Narrower tasks are drawn as shares of columns of pixels. */
const narrow = 3;
const column = 2;

export class PipelineDrawing {
  constructor(readonly of: Pipelines, readonly pen: Pen, readonly view: View, readonly theme: Theme, readonly selected: Spot | null) {}

  /** Draws everything and returns the number of tasks and parts drawn; a device drawn as shares is one part. */
  paint() {
    const { pen, view, theme } = this;
    const a = view.area;
    this.paintAxis();
    const tops = this.of.tops();
    let drawn = 0;
    this.of.blocks.forEach((b, i) => {
      const top = at(tops, i);
      const style = { size: 12.5, fill: theme.text, bold: true };
      pen.text(fitText(`${planTitle(b.plan)} · ${b.plan.time_label}`, style, a.x + a.w - 8), 8, top - titleHeight / 2, style);
      this.paintNames(b, top, a.x);
      pen.clip(a.x, top, a.w, this.of.blockHeight(b) - titleHeight);
      if (b.lanes.length === 0) drawn += this.paintParts(b, top);
      b.lanes.forEach((lane, l) => { drawn += this.paintLane(lane, top + l * this.of.rowHeight, i, l); });
      const end = view.sx(b.total / this.of.length);
      pen.line([end, top, end, top + this.of.blockHeight(b) - titleHeight], { stroke: theme.text, width: 1.5 });
      pen.unclip();
    });
    return drawn;
  }

  paintAxis() {
    const { pen, view, theme } = this;
    const a = view.area;
    const from = Math.max(0, view.x) * this.of.length;
    const to = Math.min(1, view.x + a.w / view.kx) * this.of.length;
    for (const t of ticks(from, to, a.w / 110)) {
      const x = view.sx(t / this.of.length);
      pen.line([x, 0, x, a.y + a.h], { stroke: theme.line, width: 1 });
      pen.text(duration(t), x, a.y + a.h + 14, { size: 11.5, fill: theme.muted, align: "middle" });
    }
    pen.line([a.x, a.y + a.h, a.x + a.w, a.y + a.h], { stroke: theme.edge, width: 1 });
    pen.text("predicted time", a.x + a.w / 2, a.y + a.h + 32, { size: 12, fill: theme.text, align: "middle" });
  }

  /** The names of devices, as many as there is room for. */
  paintNames(b: Block, top: number, right: number) {
    const { pen, theme } = this;
    const style = { size: 11, fill: theme.muted, align: "end" as const };
    if (b.lanes.length === 0) pen.text(right < 80 ? "all" : "all devices", right - 7, top + 17, style);
    const every = Math.ceil(12 / this.of.rowHeight);
    b.lanes.forEach((lane, l) => {
      if (l % every !== 0) return;
      const name = right < 80 ? String(l) : lane.stages.length > 3 ? `${l} · ${lane.stages.length} stages` : `${l} · stage ${lane.stages.join(", ")}`;
      pen.text(name, right - 7, top + l * this.of.rowHeight + (every > 1 ? 6 : this.of.rowHeight / 2), style);
    });
  }

  paintLane(lane: Lane, y: number, block: number, l: number) {
    const { pen, view, theme } = this;
    const a = view.area;
    const h = this.of.rowHeight - (this.of.rowHeight > 8 ? 2 : 1);
    const x0 = Math.max(a.x, view.sx(0));
    const x1 = Math.min(a.x + a.w, view.sx(lane.total / this.of.length));
    if (x1 <= x0) return 0;
    pen.rect(x0, y, x1 - x0, h, { fill: theme.line, opacity: 0.35 });
    const time = (px: number) => view.wx(px) * this.of.length;
    const once = [view.sx(lane.data.once_start_ns / this.of.length), view.sx(lane.data.once_end_ns / this.of.length)];
    if (at(once, 1) - at(once, 0) > 0.5) pen.rect(at(once, 0), y + h * 0.3, at(once, 1) - at(once, 0), h * 0.4, { fill: markOf(theme, "once").color });
    const [from, to] = [lane.after(time(x0)), lane.data.shares ? 0 : lane.after(time(x1))];
    if (lane.data.shares || (x1 - x0) / Math.max(1, to - from) < narrow) return this.paintShares(lane, time, x0, x1, y, h);
    let drawn = 0;
    for (let i = from; i < lane.count && i <= to; i++) {
      this.paintTask(lane, i, y, h, block, l);
      drawn++;
    }
    return drawn;
  }

  paintTask(lane: Lane, i: number, y: number, h: number, block: number, l: number) {
    const { pen, view, theme } = this;
    const x = view.sx(at(lane.start, i) / this.of.length);
    const w = Math.max(1, view.sx(at(lane.end, i) / this.of.length) - x);
    const kind = lane.kind(i);
    const mark = markOf(theme, at(taskClasses, kind));
    // Kinds differ in more than colour: forward is light with an outline, backward solid, the gradient of weights lower.
    const [top, high] = kind === 2 ? [y + h * 0.28, h * 0.72] : [y, h];
    const seam = w > 4 ? 0.75 : 0;
    pen.rect(x, top, w - seam, high, kind === 0 && w > 4 && h > 7 ? { fill: mark.fill, stroke: mark.color, width: 1 } : { fill: mark.color });
    const size = Math.min(11, high - 1);
    const name = String(lane.micro(i));
    // The number is in the part of the task that is on the screen.
    const [left, right] = [Math.max(x, view.area.x), Math.min(x + w, view.area.x + view.area.w)];
    if (size >= 7.5 && textWidth(name, { size, fill: "" }) + 3 <= right - left) pen.text(name, (left + right) / 2, top + high / 2 + 0.5, { size, fill: kind === 0 && h > 7 ? theme.text : mark.ink, align: "middle" });
    const c = this.selected;
    if (c?.block !== block || c.task < 0) return;
    const same = this.of.blocks[c.block]?.lanes[c.lane]?.micro(c.task) === lane.micro(i);
    if (same) pen.rect(x, top, w - seam, high, { stroke: theme.text, width: c.lane === l && c.task === i ? 3 : 1.5 });
  }

  /** Draws how much of each column of pixels the kinds have, one above the other, as one polygon for each kind. */
  paintShares(lane: Lane, time: (px: number) => number, x0: number, x1: number, y: number, h: number) {
    const { pen, theme } = this;
    const outlines: number[][] = taskClasses.map(() => [x0, y + h]);
    for (let x = x0; x < x1; x += column) {
      const right = Math.min(x1, x + column);
      let top = y + h;
      lane.shares(time(x), time(right)).forEach((share, kind) => {
        top -= share * h;
        at(outlines, kind).push(x, top, right, top);
      });
    }
    // Each outline has the kinds below it inside: the uppermost is drawn first.
    for (let kind = outlines.length - 1; kind >= 0; kind--) pen.polygon([...at(outlines, kind), x1, y + h], { fill: markOf(theme, at(taskClasses, kind)).color });
    return 1;
  }

  /** The parts of the time of a plan without a pipeline. */
  paintParts(b: Block, top: number) {
    const { pen, view, theme } = this;
    let now = 0;
    let drawn = 0;
    for (const part of partsOf(b.plan)) {
      const [x, w] = [view.sx(now / this.of.length), (part.ns / this.of.length) * view.kx];
      now += part.ns;
      const mark = markOf(theme, part.cls);
      pen.rect(x, top, w, 32, { fill: mark.fill, stroke: mark.color, width: 1 });
      const style = { size: 11.5, fill: theme.text };
      pen.text(fitText(`${part.name} ${part.label}`, style, w - 10), x + 6, top + 16, style);
      drawn++;
    }
    return drawn;
  }
}

export function planTitle(p: PlanRow) {
  return `Plan ${p.rank}: ${p.axes}${p.schedule ? `, ${p.schedule}` : ""}`;
}

/** The parts that the time of a plan is the sum of. */
export function partsOf(p: PlanRow): { name: string; cls: string; ns: number; label: string }[] {
  return [
    { name: "compute", cls: "compute", ns: p.compute_ns, label: p.compute_label },
    { name: "exposed communication", cls: "communication", ns: p.exposed_ns, label: p.exposed_label },
    { name: "bubble", cls: "idle", ns: p.bubble_ns, label: p.bubble_label },
    { name: "other", cls: "unknown", ns: p.other_ns, label: p.other_label },
  ].filter((part) => part.ns > 0);
}
