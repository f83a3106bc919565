// The pipelines of one plan or two on one time axis: a row for each device, its tasks in the colours of their kinds.
import type { PlanRow } from "./data";
import { Tooltip } from "./card";
import type { Item } from "./figure";
import { type Block, Lane, type Pipelines, type Spot, taskClasses, titleHeight } from "./pipeline_lane";
import { CanvasPen, type Pen, SvgPen } from "./pen";
import { partsOf, PipelineDrawing, planTitle } from "./pipeline_draw";
import { markOf, paperTheme, type Theme } from "./theme";
import { at, clamp, duration, el } from "./util";
import { View } from "./view";

const blockGap = 12;
const axisHeight = 44;

export class PipelineView implements Pipelines {
  readonly canvas = el("canvas", { id: "figure", tabindex: 0, role: "application", "aria-describedby": "task" });
  /** The selected task in words. */
  readonly task = el("p", { id: "task", class: "note", "aria-live": "polite" });
  readonly paper = el("div", { class: "onpaper", "aria-hidden": "true" });
  readonly element = el("div", { class: "pipelines" }, el("div", { class: "canvas" }, this.canvas), this.task, this.paper);
  readonly tip = new Tooltip();
  readonly view = new View();
  blocks: Block[] = [];
  chosen: Spot | null = null;
  private fitted = true;
  private pending = 0;
  private grip: { x: number; travel: number } | null = null;

  /** @param theme the colours at the time */
  constructor(readonly theme: () => Theme, readonly reveal: (plan: PlanRow, stage: number) => void) {
    this.view.level = true;
    this.canvas.addEventListener("pointerdown", (e) => { this.press(e); });
    this.canvas.addEventListener("pointermove", (e) => { this.move(e); });
    this.canvas.addEventListener("pointerup", (e) => { this.release(e); });
    this.canvas.addEventListener("pointercancel", () => { this.grip = null; });
    this.canvas.addEventListener("pointerleave", () => { this.tip.hide(); });
    this.canvas.addEventListener("wheel", (e) => { this.wheel(e); }, { passive: false });
    this.canvas.addEventListener("keydown", (e) => { this.key(e); });
    new ResizeObserver(() => { this.resize(); }).observe(this.element);
    window.addEventListener("beforeprint", () => { this.print(); });
    window.addEventListener("afterprint", () => { this.paper.replaceChildren(); });
  }

  show(plans: PlanRow[]) {
    this.blocks = plans.map((plan) => ({
      plan,
      lanes: (plan.pipeline?.lanes ?? []).map((lane) => new Lane(lane, plan.pipeline?.time_ns ?? 1)),
      total: plan.pipeline?.time_ns ?? plan.time_ns,
    }));
    this.fitted = true;
    this.choose(null);
    this.canvas.setAttribute("aria-label", this.blocks.map((b) => `${planTitle(b.plan)}: ${b.lanes.length > 0 ? `${b.lanes.length} devices` : "no pipeline"}, ${b.plan.time_label}`).join(". "));
    this.resize();
  }

  /** The time that the axis ends at, in nanoseconds. */
  get length() {
    return Math.max(1, ...this.blocks.map((b) => b.total));
  }

  /** The height of the row of a device: less where there are many. */
  get rowHeight() {
    const rows = this.blocks.reduce((sum, b) => sum + Math.max(1, b.lanes.length), 0);
    return clamp(Math.floor(560 / Math.max(1, rows)), 5, 28);
  }

  height() {
    const rows = this.blocks.reduce((sum, b) => sum + this.blockHeight(b), 0);
    return rows + blockGap * Math.max(0, this.blocks.length - 1) + axisHeight + 4;
  }

  blockHeight(b: Block) {
    return titleHeight + (b.lanes.length === 0 ? 34 : b.lanes.length * this.rowHeight);
  }

  /** The top of the first row of each block. */
  tops() {
    let y = 0;
    return this.blocks.map((b) => {
      const top = y + titleHeight;
      y += this.blockHeight(b) + blockGap;
      return top;
    });
  }

  resize() {
    const w = this.element.clientWidth;
    if (w === 0) return;
    const h = this.height();
    const density = window.devicePixelRatio || 1;
    this.canvas.style.height = `${h}px`;
    this.canvas.width = Math.round(w * density);
    this.canvas.height = Math.round(h * density);
    this.view.area = areaOf(w, h);
    if (this.fitted) this.fit();
    this.drawNow();
  }

  fit() {
    this.view.fit({ x: 0, y: 0, w: 1, h: 1 }, 0);
    this.fitted = true;
    this.draw();
  }

  draw() {
    this.pending ||= requestAnimationFrame(() => { this.drawNow(); });
  }

  drawNow() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const density = window.devicePixelRatio || 1;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    // What is on the screen, for tests.
    this.canvas.dataset["drawn"] = String(this.paint(new CanvasPen(context), this.view, this.theme()));
    this.canvas.dataset["view"] = [this.view.x, this.view.y, this.view.kx].map((n) => n.toFixed(3)).join(" ");
  }

  /** Draws everything and returns the number of tasks and parts drawn. */
  paint(pen: Pen, view: View, theme: Theme, chosen = this.chosen) {
    return new PipelineDrawing(this, pen, view, theme, chosen).paint();
  }

  print() {
    const [w, h] = [1100, this.height()];
    const pen = new SvgPen(w, h);
    const view = new View();
    view.area = areaOf(w, h);
    view.fit({ x: 0, y: 0, w: 1, h: 1 }, 0);
    this.paint(pen, view, paperTheme, null);
    this.paper.replaceChildren(pen.root);
  }

  spot(px: number, py: number): Spot | null {
    const a = this.view.area;
    const time = this.view.wx(px) * this.length;
    if (px < a.x || px > a.x + a.w) return null;
    const tops = this.tops();
    for (let block = 0; block < this.blocks.length; block++) {
      const b = at(this.blocks, block);
      const y = py - at(tops, block);
      if (y < 0 || y >= this.blockHeight(b) - titleHeight || time < 0 || time > b.total) continue;
      const lane = b.lanes.length === 0 ? 0 : Math.floor(y / this.rowHeight);
      return { block, lane, task: b.lanes[lane]?.when(time) ?? -1, time };
    }
    return null;
  }

  /** What is at a spot, for the tooltip and for screen readers. */
  describe(s: Spot): Item {
    const b = at(this.blocks, s.block);
    const lane = b.lanes[s.lane];
    const item: Item = { key: "", title: "", sub: planTitle(b.plan), cls: "", place: { line: 0, column: 0, end_column: 0 }, search: "", rows: [], why: [], weight: 0 };
    if (!lane) {
      item.title = "all devices";
      item.rows = partsOf(b.plan).map((part) => [part.name, part.label]);
      return item;
    }
    if (s.task >= 0) {
      const [from, to] = [at(lane.start, s.task), at(lane.end, s.task)];
      const before = s.task > 0 ? at(lane.end, s.task - 1) : 0;
      item.title = `${markOf(paperTheme, at(taskClasses, lane.kind(s.task))).name}, micro-batch ${lane.micro(s.task)}`;
      item.rows = [["stage", String(lane.stage(s.task))], ["device", String(s.lane)], ["from", duration(from)], ["to", duration(to)], ["time", duration(to - from)], ["idle before", duration(Math.max(0, from - before))]];
      return item;
    }
    const updating = s.time >= lane.data.once_start_ns && s.time < lane.data.once_end_ns;
    item.title = updating ? "gradients reduced, parameters updated" : `device ${s.lane}${lane.data.shares ? "" : ", idle"}`;
    if (lane.data.shares) lane.shares(s.time - this.length / 400, s.time + this.length / 400).forEach((share, kind) => { item.rows.push([markOf(paperTheme, at(taskClasses, kind)).name, `${Math.round(share * 100)} %`]); });
    item.rows.push(["stages", lane.stages.join(", ")], ["idle in the step", `${lane.data.idle_label} · ${lane.data.bubble_label}`], ["of it for transfers", lane.data.exposed_label], ["micro-batches held", String(lane.data.in_flight)]);
    return item;
  }

  choose(s: Spot | null) {
    this.chosen = s;
    if (s) {
      const item = this.describe(s);
      this.task.textContent = [item.title, item.sub, ...item.rows.map(([n, v]) => `${n} ${v}`)].join(" · ");
    } else this.task.textContent = "← → ↑ ↓ walk along tasks and devices, + − 0 zoom, dragging pans; Enter shows the stage in the text.";
    this.draw();
  }

  press(e: PointerEvent) {
    if (e.button !== 0) return;
    this.canvas.setPointerCapture(e.pointerId);
    this.grip = { x: e.offsetX, travel: 0 };
  }

  move(e: PointerEvent) {
    if (!this.grip) {
      const s = this.spot(e.offsetX, e.offsetY);
      if (s) this.tip.show(this.describe(s), e.clientX, e.clientY);
      else this.tip.hide();
      return;
    }
    const dx = e.offsetX - this.grip.x;
    this.grip = { x: e.offsetX, travel: this.grip.travel + Math.abs(dx) };
    if (this.grip.travel > 3) this.pan(dx);
  }

  release(e: PointerEvent) {
    const clicked = this.grip !== null && this.grip.travel <= 3;
    this.grip = null;
    if (clicked) this.choose(this.spot(e.offsetX, e.offsetY));
  }

  pan(dx: number) {
    this.view.pan(dx, 0);
    this.fitted = false;
    this.tip.hide();
    this.draw();
  }

  zoom(factor: number, px = this.view.area.x + this.view.area.w / 2) {
    const least = this.view.area.w * 0.6;
    this.view.zoom(px, 0, clamp(this.view.kx * factor, least, this.view.area.w * 5000) / this.view.kx);
    this.fitted = false;
    this.tip.hide();
    this.draw();
  }

  /** The wheel zooms with Control, as a pinch does, and pans with Shift or sideways; else it scrolls the page. */
  wheel(e: WheelEvent) {
    if (!e.ctrlKey && !e.shiftKey && e.deltaX === 0) return;
    e.preventDefault();
    if (e.ctrlKey) this.zoom(Math.exp(-clamp(e.deltaY, -240, 240) * 0.01), e.offsetX);
    else this.pan(-(e.deltaX || e.deltaY));
  }

  key(e: KeyboardEvent) {
    if (e.altKey || e.ctrlKey || e.metaKey) return;
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[e.key];
    if (step && e.shiftKey) this.pan(-60 * step[0]);
    else if (step) this.walk(step[0], step[1]);
    else if (e.key === "Home" || e.key === "End") this.walk(e.key === "Home" ? -Infinity : Infinity, 0);
    else if (e.key === "+" || e.key === "=") this.zoom(1.3);
    else if (e.key === "-") this.zoom(1 / 1.3);
    else if (e.key === "0") this.fit();
    else if (e.key === "Escape") this.choose(null);
    else if (e.key === "Enter" && this.chosen) this.open(this.chosen);
    else return;
    e.preventDefault();
  }

  open(s: Spot) {
    const b = at(this.blocks, s.block);
    const lane = b.lanes[s.lane];
    this.reveal(b.plan, !lane ? 0 : s.task >= 0 ? lane.stage(s.task) : (lane.stages[0] ?? 0));
  }

  /** Selects another task of the device, or what another device does at the time. */
  walk(tasks: number, lanes: number) {
    const all = this.blocks.flatMap((b, block) => (b.lanes.length === 0 ? [{ block, lane: 0 }] : b.lanes.map((_, lane) => ({ block, lane }))));
    const here = all.findIndex((p) => p.block === this.chosen?.block && p.lane === this.chosen.lane);
    const place = all[here < 0 ? 0 : clamp(here + lanes, 0, all.length - 1)];
    if (!place) return;
    const lane = this.blocks[place.block]?.lanes[place.lane];
    const count = lane?.count ?? 0;
    let time = this.chosen?.time ?? 0;
    let task = -1;
    if (lane && count > 0) {
      const near = clamp(lane.after(time), 0, count - 1);
      task = clamp(lanes === 0 && here >= 0 && this.chosen && this.chosen.task >= 0 ? this.chosen.task + tasks : near, 0, count - 1);
      time = (at(lane.start, task) + at(lane.end, task)) / 2;
    } else time = clamp(time + (Number.isFinite(tasks) ? tasks * this.length / 100 : tasks > 0 ? this.length : -this.length), 0, at(this.blocks, place.block).total);
    const x = this.view.sx(time / this.length);
    const a = this.view.area;
    if (x < a.x || x > a.x + a.w) {
      this.view.centre(time / this.length, 0);
      this.fitted = false;
    }
    this.choose({ ...place, task, time });
  }
}

function areaOf(w: number, h: number) {
  const left = w < 640 ? 34 : 118;
  return { x: left, y: 0, w: Math.max(1, w - left - 26), h: Math.max(1, h - axisHeight) };
}
