// The roofline: FLOP/s over intensity, both axes logarithmic; a dot for each op, with the area of its time.
import type { Dot, PanelData, Roof, RooflineData, Target } from "./data";
import { type Column, costRows, type Direction, distinctKeys, type Figure, type Hit, type Item, known, type Look, type Section, shortOp, titleOf } from "./figure";
import { figureKeys } from "./help";
import { fitText, type Pen, type Stroke, textWidth } from "./pen";
import { markOf, markTable, paperTheme, type Theme } from "./theme";
import { at, clamp, el, quantity } from "./util";
import type { Box, View } from "./view";

export class RooflineFigure implements Figure {
  readonly name = "Roofline";
  readonly target: Target;
  readonly roofs: Roof[];
  readonly rest: Dot[];
  readonly dots: Dot[];
  readonly items: Item[];
  readonly classes: string[];
  readonly uniform: number = 0;
  readonly minimap: boolean = false;
  readonly cardSide: Figure["cardSide"] = "low";
  readonly empty: string;
  readonly summary: string;
  readonly note: string;
  readonly about = "Each op is at its intensity and its predicted FLOP/s. On the slope it is limited by memory bandwidth, on a level line by the unit that the line is labelled with. Ops that compute or move nothing are listed below.";
  readonly keys: string[][];
  readonly columns: Column[];
  readonly extent: { x0: number; x1: number; y0: number; y1: number };

  constructor(data: PanelData) {
    this.target = data.target;
    const r = data.roofline;
    this.roofs = r?.roofs ?? [];
    this.rest = r?.rest ?? [];
    // The longest first: it is drawn below the others and is first in navigation.
    this.dots = [...(r?.dots ?? [])].sort((a, b) => b.time_share - a.time_share || known(b.time_ns) - known(a.time_ns));
    const keys = distinctKeys(this.dots.map((d) => `${d.op} ${d.result}`));
    this.items = this.dots.map((d, i) => ({
      key: at(keys, i),
      title: titleOf(d.result, d.op),
      sub: d.detail,
      cls: d.class,
      place: d,
      search: `${d.origin ?? ""} ${d.result} ${d.op} ${d.class} ${markOf(paperTheme, d.class).name} ${d.detail} ${d.bound}`.toLowerCase(),
      rows: this.rows(d),
      why: d.why ?? [],
      weight: d.time_share > 0 ? d.time_share : known(d.time_ns),
    }));
    const order = markTable.map(([cls]) => cls);
    this.classes = order.filter((cls) => this.dots.some((d) => d.class === cls));
    this.empty = this.dots.length > 0 ? "" : this.rest.length > 0 ? "No op has a place on the axes." : "This function has no ops that take time.";
    const count = this.dots.length === 1 ? "1 op" : `${this.dots.length} ops`;
    this.summary = `${count} under ${this.roofs.map((roof) => `${roof.unit} ${roof.elem} ${roof.label}, ridge at ${roof.ridge_label}`).join("; ") || "no roof"}; memory ${this.target.reach_label}`;
    this.note = `Size of a dot: its time · roofs of ${this.target.title}`;
    this.keys = [["↑ ↓", "ops by time: longer, shorter"], ...figureKeys];
    const dot = (i: number) => at(this.dots, i);
    this.columns = [
      { name: "Op", text: (i) => at(this.items, i).title, by: (i) => at(this.items, i).title },
      { name: "Line", text: (i) => String(dot(i).line), by: (i) => dot(i).line, numeric: true },
      { name: "Class", text: (i) => markOf(paperTheme, dot(i).class).name, by: (i) => dot(i).class },
      { name: "Time", text: (i) => dot(i).time_label, by: (i) => known(dot(i).time_ns), numeric: true },
      { name: "Share", text: (i) => dot(i).time_share_label, by: (i) => dot(i).time_share, numeric: true },
      { name: "Bound", text: (i) => dot(i).bound, by: (i) => dot(i).bound },
      { name: "Intensity", text: (i) => dot(i).intensity_label, by: (i) => known(dot(i).intensity_flop_per_byte), numeric: true },
      { name: "Achieved", text: (i) => dot(i).achieved_label, by: (i) => known(dot(i).achieved_flop_per_s), numeric: true },
      { name: "Of roof", text: (i) => dot(i).roof_label, by: (i) => dot(i).roof_share, numeric: true },
      { name: "FLOP", text: (i) => dot(i).flop_label, by: (i) => known(dot(i).flop), numeric: true },
      { name: "Moved", text: (i) => dot(i).moved_label, by: (i) => known(dot(i).moved_bytes), numeric: true },
    ];
    this.extent = this.extentOf(r);
  }

  rows(d: Dot): [string, string][] {
    const roof = this.roofs[d.roof];
    const rows = costRows(d);
    if (d.time_share_label) rows.unshift(["of the time", d.time_share_label]);
    if (d.runs !== 1) rows.unshift(["runs", `×${d.runs}`]);
    if (d.achieved_label) rows.push(["predicted", d.achieved_label]);
    if (roof && d.roof_label) rows.push([`of the roof (${roof.unit} ${roof.elem})`, d.roof_label]);
    return rows;
  }

  /** The ranges of the axes, as logarithms. */
  extentOf(r: RooflineData | undefined) {
    const log = (x: number, otherwise: number) => (x > 0 ? Math.log10(x) : otherwise);
    const x0 = log(r?.min_x ?? 0, -1);
    const x1 = Math.max(x0 + 1, log(r?.max_x ?? 0, 3));
    const y0 = log(r?.min_y ?? 0, 10);
    const y1 = Math.max(y0 + 1, log(r?.max_y ?? 0, 15));
    return { x0: x0 - 0.06, x1: x1 + 0.06, y0: y0 - 0.16, y1: y1 + 0.3 }; // room for dots and labels at the ends
  }

  /** World coordinates; y is the negative logarithm, since y grows downwards on the screen. */
  world() {
    const { x0, x1, y0, y1 } = this.extent;
    return { x: x0, y: -y1, w: x1 - x0, h: y1 - y0 };
  }

  margins() {
    return { left: 84, top: 18, right: 22, bottom: 48 };
  }

  point(d: Dot): [number, number] | null {
    if (d.intensity_flop_per_byte === null || d.achieved_flop_per_s === null || d.intensity_flop_per_byte <= 0 || d.achieved_flop_per_s <= 0) return null;
    return [Math.log10(d.intensity_flop_per_byte), -Math.log10(d.achieved_flop_per_s)];
  }

  boxOf(i: number) {
    const d = this.dots[i];
    const p = d && this.point(d);
    return p ? { x: p[0], y: p[1], w: 0, h: 0 } : null;
  }

  radius(d: Dot) {
    return 5 + 22 * Math.sqrt(clamp(d.time_share, 0, 1));
  }

  draw(pen: Pen, view: View, look: Look) {
    this.drawAxes(pen, view, look.theme);
    const a = view.area;
    pen.clip(a.x, a.y, a.w, a.h);
    this.drawRoofs(pen, view, look.theme);
    let drawn = 0;
    this.dots.forEach((d, i) => {
      const p = this.point(d);
      if (!p) return;
      const mark = markOf(look.theme, d.class);
      const opacity = look.hidden.has(d.class) ? 0 : look.found && !look.found.has(i) ? 0.2 : 1;
      if (opacity === 0) return;
      const r = this.radius(d);
      const [x, y] = [view.sx(p[0]), view.sy(p[1])];
      const chosen = i === look.selected;
      const hover = i === look.hover || (look.found?.has(i) ?? false);
      if (chosen) pen.circle(x, y, r + 4, { stroke: look.theme.accent, width: 2.5 });
      dotShape(pen, mark.shape, x, y, r, { fill: mark.color, stroke: hover ? look.theme.text : look.theme.background, width: hover ? 2 : 1.2, opacity: opacity * 0.82 });
      if (r > 9) pen.text(mark.letter, x, y + 0.5, { size: Math.min(14, r), fill: mark.ink, align: "middle", bold: true, opacity });
      drawn++;
    });
    this.drawNames(pen, view, look);
    pen.unclip();
    return drawn;
  }

  /** Labels the ops that take longest where there is room. */
  drawNames(pen: Pen, view: View, look: Look) {
    const taken: Box[] = this.roofLabels(view).flatMap((l) => l.boxes ?? [l.box]);
    const spots = this.dots.map((d) => {
      const p = this.point(d);
      return p && { x: view.sx(p[0]), y: view.sy(p[1]), r: this.radius(d) };
    });
    for (const s of spots.slice(0, 300)) if (s) taken.push({ x: s.x - s.r, y: s.y - s.r, w: 2 * s.r, h: 2 * s.r });
    const style = { size: 12, fill: look.theme.text, mono: true, halo: look.theme.background };
    const a = view.area;
    let named = 0;
    for (let i = 0; i < this.dots.length && named < 40 && i < 400; i++) {
      const d = at(this.dots, i);
      const s = spots[i];
      if (!s || look.hidden.has(d.class) || (look.found && !look.found.has(i))) continue;
      const text = fitText(d.result || shortOp(d.op), style, 130);
      const w = textWidth(text, style);
      const place = [
        { x: s.x + s.r + 5, y: s.y - 8 },
        { x: s.x - s.r - 5 - w, y: s.y - 8 },
        { x: s.x - w / 2, y: s.y - s.r - 20 },
        { x: s.x - w / 2, y: s.y + s.r + 4 },
      ].map((c) => ({ ...c, w, h: 16 })).find((b) => b.x > a.x && b.x + b.w < a.x + a.w && b.y > a.y && b.y + b.h < a.y + a.h && taken.every((o) => b.x >= o.x + o.w || o.x >= b.x + b.w || b.y >= o.y + o.h || o.y >= b.y + b.h));
      if (!place) continue;
      taken.push(place);
      pen.text(text, place.x, place.y + 8, style);
      named++;
    }
  }

  drawAxes(pen: Pen, view: View, theme: Theme) {
    const a = view.area;
    const grid = (px: number, upright: boolean, strong: boolean) => {
      pen.line(upright ? [px, a.y, px, a.y + a.h] : [a.x, px, a.x + a.w, px], { stroke: theme.line, width: 1, opacity: strong ? 1 : 0.45 });
    };
    const label = { size: 11.5, fill: theme.muted };
    for (const t of logTicks(view.x, view.x + a.w / view.kx, view.kx)) {
      const px = view.sx(t.at);
      grid(px, true, t.decade);
      if (t.label) pen.text(t.at < 6 ? String(Number((10 ** t.at).toPrecision(1))) : quantity(10 ** t.at, ""), px, a.y + a.h + 14, { ...label, align: "middle" });
    }
    for (const t of logTicks(-view.y - a.h / view.ky, -view.y, view.ky)) {
      const py = view.sy(-t.at);
      grid(py, false, t.decade);
      if (t.label) pen.text(quantity(10 ** t.at, "FLOP/s"), a.x - 7, py, { ...label, align: "end" });
    }
    pen.rect(a.x, a.y, a.w, a.h, { stroke: theme.edge, width: 1 });
    pen.text("intensity in FLOP/B", a.x + a.w / 2, a.y + a.h + 35, { size: 12, fill: theme.text, align: "middle" });
  }

  drawRoofs(pen: Pen, view: View, theme: Theme) {
    const a = view.area;
    const beta = Math.log10(this.target.reach_bytes_per_s);
    const left = view.x - 1;
    const right = view.x + a.w / view.kx + 1;
    this.roofs.forEach((roof, i) => {
      const ridge = Math.log10(roof.ridge_flop_per_byte);
      const y = -Math.log10(roof.flop_per_s);
      pen.line([view.sx(ridge), view.sy(y), view.sx(right), view.sy(y)], { stroke: theme.text, width: i === 0 ? 2 : 1.5, dash: roofDash(i) });
      pen.line([view.sx(ridge), view.sy(y), view.sx(ridge), a.y + a.h], { stroke: theme.muted, width: 1, dash: [2, 4] });
    });
    const top = Math.max(...this.roofs.map((roof) => Math.log10(roof.flop_per_s)), -Infinity);
    if (top === -Infinity) return;
    pen.line([view.sx(left), view.sy(-(left + beta)), view.sx(top - beta), view.sy(-top)], { stroke: theme.text, width: 2 });
    for (const l of this.roofLabels(view)) pen.text(l.text, l.x, l.y, { size: 12, fill: l.strong ? theme.text : theme.muted, align: l.align, halo: theme.background, turn: l.turn });
  }

  /** Labels the roofs without overlaps. */
  roofLabels(
    view: View,
  ): { text: string; x: number; y: number; align: "start" | "end" | "middle"; turn: number; strong: boolean; box: Box; boxes?: Box[] }[] {
    const a = view.area;
    const style = { size: 12, fill: "" };
    const labels: ReturnType<RooflineFigure["roofLabels"]> = [];
    const add = (text: string, x: number, y: number, align: "start" | "end", strong: boolean) => {
      const w = textWidth(text, style);
      const box = { x: align === "end" ? x - w : x, y: y - 8, w, h: 16 };
      if (box.x < a.x || box.x + w > a.x + a.w || box.y < a.y || y + 8 > a.y + a.h) return;
      if (labels.some((l) => box.x < l.box.x + l.box.w && l.box.x < box.x + w && box.y < l.box.y + 16 && l.box.y < box.y + 16)) return;
      labels.push({ text, x, y, align, turn: 0, strong, box });
    };
    const dots = this.dots.slice(0, 300).map((d) => ({ p: this.point(d), r: this.radius(d) }));
    const clear = (x: number, y: number, w: number) =>
      dots.every(({ p, r }) => !p || view.sx(p[0]) + r < x || view.sx(p[0]) - r > x + w || Math.abs(view.sy(p[1]) - y) > r + 8);
    for (const roof of this.roofs) {
      const y = view.sy(-Math.log10(roof.flop_per_s)) - 11;
      const text = `${roof.unit} ${roof.elem} · ${roof.label}`;
      const w = textWidth(text, style);
      const ridge = Math.max(a.x, view.sx(Math.log10(roof.ridge_flop_per_byte)));
      const spots = [0, -14, -26, 22].flatMap((up) => [a.x + a.w - 8, ridge + 8 + w, (ridge + a.x + a.w + w) / 2].map((x) => ({ x, y: y + up })));
      const spot = spots.find((s) => s.y - 8 >= a.y && s.x <= a.x + a.w && clear(s.x - w, s.y, w)) ?? at(spots, 0);
      add(text, spot.x, spot.y, "end", true);
    }
    for (const roof of this.roofs) {
      const x = view.sx(Math.log10(roof.ridge_flop_per_byte));
      const bottom = a.y + a.h - 12;
      for (const y of [bottom, bottom - 18, bottom - 36]) {
        const before = labels.length;
        add(`ridge ${roof.ridge_label}`, x + 5, y, "start", false);
        if (labels.length > before) break;
      }
    }
    this.memoryLabel(view, labels);
    return labels;
  }

  /** Writes the bandwidth along the slope. */
  memoryLabel(view: View, labels: ReturnType<RooflineFigure["roofLabels"]>) {
    const a = view.area;
    const ridge = Math.min(...this.roofs.map((roof) => Math.log10(roof.ridge_flop_per_byte)), Infinity);
    if (ridge === Infinity) return;
    const beta = Math.log10(this.target.reach_bytes_per_s);
    const text = `memory · ${this.target.reach_label}`;
    const w = textWidth(text, { size: 12, fill: "" });
    const angle = Math.atan2(-view.ky, view.kx);
    // The middle of the visible part of the slope.
    const from = Math.max(view.x, -view.y - a.h / view.ky - beta);
    const to = Math.min(ridge, view.x + a.w / view.kx, -view.y - beta);
    const length = Math.hypot((to - from) * view.kx, (to - from) * view.ky);
    if (to <= from || length < w + 16) return;
    const spots = [0.5, 0.4, 0.6, 0.7, 0.3, 0.8, 0.2].map((part) => {
      const t = from + (to - from) * part;
      return { x: view.sx(t) + 13 * Math.sin(angle), y: view.sy(-(t + beta)) - 13 * Math.cos(angle), part };
    });
    // A place where the label is completely visible and covers no dot.
    const along = (s: { x: number; y: number }) => [-0.5, -0.25, 0, 0.25, 0.5].map((p) => [s.x + p * w * Math.cos(angle), s.y + p * w * Math.sin(angle)]);
    const clear = (s: { x: number; y: number; part: number }) =>
      Math.min(s.part, 1 - s.part) * length > w / 2 + 8 &&
      this.dots.slice(0, 300).every((d) => {
        const p = this.point(d);
        return !p || along(s).every(([x, y]) => Math.hypot(view.sx(p[0]) - (x ?? 0), view.sy(p[1]) - (y ?? 0)) > this.radius(d) + w / 8 + 4);
      });
    const { x, y } = spots.find(clear) ?? at(spots, 0);
    const boxes = along({ x, y }).map(([bx, by]) => ({ x: (bx ?? 0) - w / 8, y: (by ?? 0) - 12, w: w / 4, h: 24 }));
    labels.push({ text, x, y, align: "middle", turn: (angle * 180) / Math.PI, strong: true, box: at(boxes, 2), boxes });
  }

  hit(px: number, py: number, view: View): Hit | null {
    // The smallest dot under the pointer: a larger one can be reached beside it.
    let best = -1;
    let least = Infinity;
    this.dots.forEach((d, i) => {
      const p = this.point(d);
      if (!p) return;
      const r = this.radius(d);
      if (Math.hypot(view.sx(p[0]) - px, view.sy(p[1]) - py) <= r + 2 && r <= least) {
        best = i;
        least = r;
      }
    });
    return best < 0 ? null : { index: best };
  }

  walk(i: number, to: Direction) {
    const n = this.dots.length;
    if (n === 0) return -1;
    if (to === "last") return n - 1;
    if (to === "first" || i < 0) return 0;
    return clamp(i + (to === "down" || to === "right" ? 1 : -1), 0, n - 1);
  }

  sections(): Section[] {
    return [];
  }

  show(i: number) {
    return i;
  }

  notes(): HTMLElement[] {
    if (this.rest.length === 0) return [];
    const most = 24;
    const rows = this.rest.slice(0, most).map((d) => el("li", {}, el("span", {}, `line ${d.line}  ${titleOf(d.result, d.op)}: ${d.reason}${d.time_label && d.time_label !== "?" ? `, ${d.time_label}` : ""}`)));
    if (this.rest.length > most) rows.push(el("li", {}, `and ${this.rest.length - most} more`));
    return [el("h2", {}, "Not on the axes"), el("ul", {}, ...rows)];
  }
}

function roofDash(i: number) {
  return at([[], [8, 3], [3, 3], [8, 3, 2, 3]], i % 4);
}

function dotShape(pen: Pen, shape: string, x: number, y: number, r: number, s: Stroke) {
  if (shape === "pill") pen.circle(x, y, r, s);
  else if (shape === "hexagon") pen.polygon([x - r, y, x - r / 2, y - r * 0.87, x + r / 2, y - r * 0.87, x + r, y, x + r / 2, y + r * 0.87, x - r / 2, y + r * 0.87], s);
  else if (shape === "slant") pen.polygon([x, y - r * 1.1, x + r * 1.1, y, x, y + r * 1.1, x - r * 1.1, y], s);
  else pen.rect(x - r * 0.88, y - r * 0.88, r * 1.76, r * 1.76, { ...s, radius: 2 });
}

/**
 * Grid lines between two logarithms, with labels at powers of ten where there is room.
 * @param k pixels per decade
 */
function logTicks(lo: number, hi: number, k: number): { at: number; decade: boolean; label: boolean }[] {
  const out = [];
  const every = Math.max(1, Math.ceil(52 / k));
  for (let e = Math.floor(lo); e <= Math.ceil(hi); e++) {
    if (e >= lo - 1e-9 && e <= hi + 1e-9) out.push({ at: e, decade: true, label: e % every === 0 });
    if (k < 60) continue;
    for (let m = 2; m < 10; m++) {
      const t = e + Math.log10(m);
      if (t >= lo && t <= hi) out.push({ at: t, decade: false, label: k > 330 && (m === 2 || m === 5) });
    }
  }
  return out;
}
