// The memory plan: time to the right, addresses upwards, a rectangle per buffer.
import type { MemoryBuffer, MemoryData, MemoryStep, PanelData } from "./data";
import { type Column, type Direction, distinctKeys, type Figure, type Hit, type Item, type Look, type Section, shortOp, titleOf } from "./figure";
import { figureKeys } from "./help";
import { fitText, hatch, type Pen, textWidth } from "./pen";
import { markOf, markTable, type Theme } from "./theme";
import { at, clamp, duration, el, quantity, ticks } from "./util";
import type { Box, View } from "./view";

export class MemoryFigure implements Figure {
  readonly name = "Memory plan";
  readonly plan: MemoryData | undefined;
  readonly buffers: MemoryBuffer[];
  readonly steps: MemoryStep[];
  readonly timed: boolean;
  readonly length: number;
  readonly items: Item[];
  readonly classes: string[];
  readonly uniform: number = 0;
  readonly minimap: boolean = false;
  readonly cardSide: Figure["cardSide"] = "beside";
  readonly empty: string;
  readonly summary: string;
  readonly note: string;
  readonly about = "A rectangle is a range of memory for the time in which it is in use. Arguments are live throughout, results to the end. The dashed line is the step with the most live bytes, the solid line the highest address in use.";
  readonly keys: string[][];
  readonly columns: Column[];

  constructor(data: PanelData) {
    this.plan = data.memory;
    const m = data.memory;
    this.buffers = m?.buffers ?? [];
    this.steps = m?.steps ?? [];
    // Without times, all steps have the same length.
    this.timed = (m?.duration_ns ?? 0) > 0;
    this.length = this.timed ? (m?.duration_ns ?? 1) : Math.max(1, this.steps.length);
    const keys = distinctKeys(this.buffers.map((b) => `${b.kind} ${b.name}`));
    this.items = this.buffers.map((b, i) => ({
      key: at(keys, i),
      title: b.name,
      sub: b.type,
      cls: b.kind === "argument" ? "" : b.class,
      place: b,
      search: `${b.origin ?? ""} ${(b.values ?? []).join(" ")} ${b.name} ${b.op} ${b.class} ${b.kind} ${b.type}`.toLowerCase(),
      rows: this.rows(b),
      why: [],
      weight: b.bytes,
    }));
    const order = markTable.map(([cls]) => cls);
    this.classes = order.filter((cls) => this.items.some((item) => item.cls === cls));
    this.empty = m?.reason ? `There is no plan: it ${m.reason}.` : this.buffers.length === 0 ? "This function holds nothing in memory." : "";
    this.summary = this.empty || `${this.buffers.length} buffers, peak ${m?.peak_label ?? ""}, at least ${m?.bound_label ?? ""} at line ${this.peakLine()}`;
    this.note = m && !m.reason ? `Peak ${m.peak_label} · any plan needs ${m.bound_label} · ${m.over_bytes === 0 ? "none above that" : `${m.over_label} (${m.over_share_label}) above`} · hatched: arguments and results` : "";
    this.keys = [["← →", "earlier and later buffers"], ["↑ ↓", "buffers at higher and lower addresses"], ...figureKeys];
    const buffer = (i: number) => at(this.buffers, i);
    this.columns = [
      { name: "Buffer", text: (i) => buffer(i).name, by: (i) => buffer(i).name },
      { name: "Line", text: (i) => (buffer(i).line > 0 ? String(buffer(i).line) : ""), by: (i) => buffer(i).line, numeric: true },
      { name: "Kind", text: (i) => buffer(i).kind, by: (i) => buffer(i).kind },
      { name: "Op", text: (i) => shortOp(buffer(i).op), by: (i) => buffer(i).op },
      { name: "Bytes", text: (i) => buffer(i).bytes_label, by: (i) => buffer(i).bytes, numeric: true },
      { name: "Address", text: (i) => buffer(i).offset_label, by: (i) => buffer(i).offset_bytes, numeric: true },
      { name: "From", text: (i) => this.when(buffer(i), true), by: (i) => buffer(i).first_step, numeric: true },
      { name: "To", text: (i) => this.when(buffer(i), false), by: (i) => buffer(i).last_step, numeric: true },
      { name: "At the peak", text: (i) => (buffer(i).at_peak ? "yes" : ""), by: (i) => (buffer(i).at_peak ? 1 : 0) },
      { name: "Type", text: (i) => buffer(i).type, by: (i) => buffer(i).type },
      { name: "Values", text: (i) => (buffer(i).values ?? []).join(" "), by: (i) => (buffer(i).values ?? []).join(" ") },
    ];
  }

  when(b: MemoryBuffer, start: boolean) {
    return this.timed ? duration(start ? b.start_ns : b.end_ns) : `step ${(start ? b.first_step : b.last_step) + 1}`;
  }

  rows(b: MemoryBuffer): [string, string][] {
    const rows: [string, string][] = [["size", b.bytes_label], ["address", b.offset_label], ["kind", b.kind]];
    if (b.op) rows.push(["taken by", shortOp(b.op)]);
    rows.push(["from", this.when(b, true)], ["to", this.when(b, false)], ["at the peak", b.at_peak ? "yes" : "no"]);
    const others = (b.values ?? []).filter((v) => v !== b.name);
    if (others.length > 0) rows.push(["shared with", others.slice(0, 12).join(" ") + (others.length > 12 ? " …" : "")]);
    return rows;
  }

  peakLine() {
    return this.steps[this.plan?.peak_step ?? 0]?.line ?? 0;
  }

  /** The world is a unit square, whatever the sizes and times of the buffers. */
  world() {
    return { x: 0, y: 0, w: 1, h: 1.02 };
  }

  margins() {
    return { left: 74, top: 14, right: 18, bottom: 46 };
  }

  boxOf(i: number): Box | null {
    const b = this.buffers[i];
    if (!b) return null;
    const [from, to] = this.timed ? [b.start_ns, b.end_ns] : [b.first_step, b.last_step + 1];
    const high = Math.max(1, this.plan?.peak_bytes ?? 1);
    const h = b.bytes / high;
    return { x: from / this.length, y: 1.02 - b.offset_bytes / high - h, w: Math.max(0, to - from) / this.length, h };
  }

  draw(pen: Pen, view: View, look: Look) {
    const { theme } = look;
    const a = view.area;
    if (this.empty) return 0;
    this.drawAxes(pen, view, theme);
    pen.clip(a.x, a.y, a.w, a.h);
    let drawn = 0;
    this.buffers.forEach((b, i) => {
      const box = this.boxOf(i);
      if (!box || !view.touches(box)) return;
      const opacity = look.hidden.has(at(this.items, i).cls) ? 0.08 : look.found && !look.found.has(i) ? 0.22 : 1;
      this.drawBuffer(pen, view, look, b, i, box, opacity);
      drawn++;
    });
    const chosen = look.selected >= 0 ? this.boxOf(look.selected) : null;
    if (chosen) pen.rect(view.sx(chosen.x) - 1, view.sy(chosen.y) - 1, chosen.w * view.kx + 2, chosen.h * view.ky + 2, { stroke: theme.accent, width: 3 });
    this.drawPeak(pen, view, theme);
    pen.unclip();
    return drawn;
  }

  drawBuffer(pen: Pen, view: View, look: Look, b: MemoryBuffer, i: number, box: Box, opacity: number) {
    const { theme } = look;
    const mark = markOf(theme, at(this.items, i).cls);
    const a = view.area;
    const [x, y] = [view.sx(box.x), view.sy(box.y)];
    const [w, h] = [Math.max(1.5, box.w * view.kx), Math.max(1, box.h * view.ky)];
    const thin = h < 3 || w < 3;
    pen.rect(x, y, w, h, { fill: thin ? mark.color : mark.fill, opacity });
    if (b.kind === "argument" || b.kind === "result") hatch(pen, x, y, w, h, a, { stroke: mark.color, width: 1, opacity: opacity * 0.4 }, b.kind === "argument");
    const hover = i === look.hover;
    if (!thin) pen.rect(x, y, w, h, { stroke: hover ? theme.accent : mark.color, width: hover ? 2.5 : 1, opacity });
    // The label is in the part of the buffer that is on the screen.
    const left = Math.max(x, a.x);
    const right = Math.min(x + w, a.x + a.w);
    const top = Math.max(y, a.y);
    const bottom = Math.min(y + h, a.y + a.h);
    if (bottom - top < 15 || right - left < 26) return;
    const name = { size: 12, fill: theme.text, mono: true, opacity, halo: b.kind === "value" ? undefined : mark.fill };
    const numbers = { size: 11.5, fill: theme.muted, opacity, halo: name.halo };
    const middle = (top + bottom) / 2;
    const room = right - left - 12;
    const full = textWidth(b.name, name);
    if (full + 10 + textWidth(b.bytes_label, numbers) <= room) {
      pen.text(b.name, left + 6, middle, name);
      pen.text(b.bytes_label, left + 6 + full + 10, middle, numbers);
    } else if (bottom - top > 32 && textWidth(b.bytes_label, numbers) <= room) {
      pen.text(fitText(b.name, name, room), left + 6, middle - 8, name);
      pen.text(b.bytes_label, left + 6, middle + 8, numbers);
    } else pen.text(fitText(b.name, name, room), left + 6, middle, name);
  }

  drawPeak(pen: Pen, view: View, theme: Theme) {
    const m = this.plan;
    if (!m || this.buffers.length === 0) return;
    const a = view.area;
    const y = view.sy(0.02);
    pen.line([a.x, y, a.x + a.w, y], { stroke: theme.warning, width: 1.5 });
    const x = view.sx((this.timed ? m.peak_ns : m.peak_step) / this.length);
    pen.line([x, a.y, x, a.y + a.h], { stroke: theme.warning, width: 1.5, dash: [5, 3] });
    const style = { size: 12, fill: theme.warning, bold: true };
    const text = `peak ${m.peak_label} at line ${this.peakLine()}`;
    const w = textWidth(text, style);
    const right = x + 8 + w < a.x + a.w;
    if (y <= a.y - 1 || y >= a.y + a.h) return;
    const left = right ? Math.max(a.x + 6, x + 7) : Math.min(x - 7, a.x + a.w - 6) - w;
    pen.rect(left - 4, y + 3, w + 8, 18, { fill: theme.background, opacity: 0.9, radius: 3 });
    pen.text(text, left, y + 12, style);
  }

  drawAxes(pen: Pen, view: View, theme: Theme) {
    const a = view.area;
    const label = { size: 11.5, fill: theme.muted };
    const line = { stroke: theme.line, width: 1 };
    const high = Math.max(1, this.plan?.peak_bytes ?? 1);
    const address = (y: number) => (1.02 - y) * high;
    for (const bytes of ticks(Math.max(0, address(view.y + a.h / view.ky)), address(view.y), a.h / 70)) {
      const py = view.sy(1.02 - bytes / high);
      pen.line([a.x, py, a.x + a.w, py], line);
      pen.text(quantity(bytes, "B"), a.x - 7, py, { ...label, align: "end" });
    }
    const from = Math.max(0, view.x) * this.length;
    const to = Math.min(1, view.x + a.w / view.kx) * this.length;
    for (const t of ticks(from, to, a.w / 120)) {
      const px = view.sx(t / this.length);
      pen.line([px, a.y, px, a.y + a.h], line);
      if (this.timed || Number.isInteger(t)) pen.text(this.timed ? duration(t) : String(t + 1), px, a.y + a.h + 14, { ...label, align: "middle" });
    }
    pen.rect(a.x, a.y, a.w, a.h, { stroke: theme.edge, width: 1 });
    pen.text(this.timed ? "predicted time" : "step", a.x + a.w / 2, a.y + a.h + 33, { size: 12, fill: theme.text, align: "middle" });
    pen.text("address", a.x - 60, a.y + a.h / 2, { size: 12, fill: theme.text, align: "middle", turn: -90 });
  }

  hit(px: number, py: number, view: View): Hit | null {
    const x = view.wx(px);
    const y = view.wy(py);
    let best = -1;
    this.buffers.forEach((_, i) => {
      const b = this.boxOf(i);
      const slack = 1.5 / view.ky;
      if (b && x >= b.x && x <= b.x + Math.max(b.w, 2 / view.kx) && y >= b.y - slack && y <= b.y + b.h + slack) best = i;
    });
    return best < 0 ? null : { index: best };
  }

  walk(i: number, to: Direction) {
    const n = this.buffers.length;
    if (n === 0) return -1;
    const order = this.buffers.map((_, j) => j).sort((p, q) => at(this.buffers, p).first_step - at(this.buffers, q).first_step || at(this.buffers, p).offset_bytes - at(this.buffers, q).offset_bytes);
    if (to === "first" || i < 0) return at(order, 0);
    if (to === "last") return at(order, n - 1);
    if (to === "left" || to === "right") return at(order, clamp(order.indexOf(i) + (to === "right" ? 1 : -1), 0, n - 1));
    const from = at(this.buffers, i);
    let best = i;
    this.buffers.forEach((b, j) => {
      if (j === i || b.first_step > from.last_step || b.last_step < from.first_step) return;
      const better = to === "up" ? b.offset_bytes > from.offset_bytes && (best === i || b.offset_bytes < at(this.buffers, best).offset_bytes) : b.offset_bytes < from.offset_bytes && (best === i || b.offset_bytes > at(this.buffers, best).offset_bytes);
      if (better) best = j;
    });
    return best;
  }

  sections(): Section[] {
    return [];
  }

  show(i: number) {
    return i;
  }

  notes(): HTMLElement[] {
    const live = this.buffers.filter((b) => b.at_peak).sort((p, q) => q.bytes - p.bytes);
    if (live.length === 0) return [];
    const step = this.steps[this.plan?.peak_step ?? 0];
    const most = 80;
    const rows = live.slice(0, most).map((b) => el("li", {}, el("span", { class: "title" }, b.name), ` ${b.bytes_label}`));
    if (live.length > most) rows.push(el("li", {}, `and ${live.length - most} more`));
    const where = step ? `${titleOf(step.result, step.op)}, line ${step.line}` : "";
    return [el("h2", {}, `Live at the peak (${where}): ${this.plan?.bound_label ?? ""}`), el("ul", {}, ...rows)];
  }
}
