// The timeline of a device: time to the right; its kernels above, its collectives below them, and what of these nothing hides.
import type { Bar, Interval, PanelData, TimelineData } from "./data";
import { type Column, costRows, type Direction, distinctKeys, type Figure, type Hit, type Item, type Look, type Section, shortOp, titleOf } from "./figure";
import { figureKeys } from "./help";
import { fitText, hatch, type Pen, textWidth } from "./pen";
import { markOf, markTable, paperTheme, type Theme } from "./theme";
import { at, clamp, duration, el, ticks } from "./util";
import type { Box, View } from "./view";

/** Where the lanes are, from 0 at the top to 1. */
const lanes = { compute: { y: 0.02, h: 0.4 }, communication: { y: 0.46, h: 0.4 }, exposed: { y: 0.9, h: 0.08 } };

export class TimelineFigure implements Figure {
  readonly name = "Timeline";
  readonly plan: TimelineData | undefined;
  readonly bars: Bar[];
  readonly exposed: Interval[];
  readonly length: number;
  readonly items: Item[];
  readonly classes: string[];
  readonly uniform: number = 0;
  readonly level: boolean = true;
  readonly minimap: boolean = false;
  readonly cardSide: Figure["cardSide"] = "beside";
  readonly empty: string;
  readonly summary: string;
  readonly note: string;
  readonly about = "A device computes and communicates at the same time: kernels run one after the other in the order of the text, collectives as soon as what they send is there. The part of a collective in which no kernel runs is exposed: it is hatched, and marked again below.";
  readonly keys: string[][];
  readonly columns: Column[];

  constructor(data: PanelData) {
    this.plan = data.timeline;
    const t = data.timeline;
    this.bars = t?.bars ?? [];
    this.exposed = t?.exposed ?? [];
    this.length = Math.max(1, t?.time_ns ?? 1);
    const keys = distinctKeys(this.bars.map((b) => `${b.op} ${b.result}`));
    this.items = this.bars.map((b, i) => ({
      key: at(keys, i),
      title: titleOf(b.result, b.op),
      sub: b.detail,
      cls: b.class,
      place: b,
      search: `${b.origin ?? ""} ${b.result} ${b.op} ${b.class} ${markOf(paperTheme, b.class).name} ${b.detail} ${b.stream} ${b.exposed_ns > 0 ? "exposed" : ""}`.toLowerCase(),
      rows: this.rows(b),
      why: b.why ?? [],
      weight: b.end_ns - b.start_ns,
    }));
    const order = markTable.map(([cls]) => cls);
    this.classes = order.filter((cls) => this.items.some((item) => item.cls === cls));
    this.empty = t?.reason ? `There is no timeline: ${t.reason}.` : this.bars.length === 0 ? "This function takes no time." : "";
    const devices = t?.devices === 1 ? "1 device" : `${t?.devices ?? 0} devices`;
    this.summary = this.empty || `${this.bars.length} steps of each of ${devices} in ${t?.time_label ?? ""}: compute ${t?.compute_label ?? ""}, communication ${t?.communication_label ?? ""}, of which ${t?.exposed_label ?? ""} exposed`;
    this.note = this.empty ? "" : `${t?.devices === 1 ? "The one device" : `One of ${devices}, which all run alike`} · hatched: exposed communication`;
    this.keys = [["← →", "earlier and later steps of a stream"], ["↑ ↓", "the other stream, at the same time"], ...figureKeys];
    const bar = (i: number) => at(this.bars, i);
    this.columns = [
      { name: "Op", text: (i) => at(this.items, i).title, by: (i) => at(this.items, i).title },
      { name: "Line", text: (i) => (bar(i).line > 0 ? String(bar(i).line) : ""), by: (i) => bar(i).line, numeric: true },
      { name: "Stream", text: (i) => bar(i).stream, by: (i) => bar(i).stream },
      { name: "From", text: (i) => duration(bar(i).start_ns), by: (i) => bar(i).start_ns, numeric: true },
      { name: "To", text: (i) => duration(bar(i).end_ns), by: (i) => bar(i).end_ns, numeric: true },
      { name: "Time", text: (i) => bar(i).time_label, by: (i) => bar(i).end_ns - bar(i).start_ns, numeric: true },
      { name: "Share", text: (i) => bar(i).time_share_label, by: (i) => bar(i).time_share, numeric: true },
      { name: "Exposed", text: (i) => bar(i).exposed_label, by: (i) => bar(i).exposed_ns, numeric: true },
      { name: "Sent", text: (i) => sentText(bar(i)), by: (i) => sentBytes(bar(i)), numeric: true },
      { name: "Algorithm", text: (i) => bar(i).collective?.algorithm ?? "", by: (i) => bar(i).collective?.algorithm ?? "" },
      { name: "Link", text: (i) => bar(i).collective?.link ?? "", by: (i) => bar(i).collective?.link ?? "" },
      { name: "FLOP", text: (i) => (isComm(bar(i)) ? "" : bar(i).flop_label), by: (i) => bar(i).flop ?? -Infinity, numeric: true },
      { name: "Moved", text: (i) => (isComm(bar(i)) ? "" : bar(i).moved_label), by: (i) => bar(i).moved_bytes ?? -Infinity, numeric: true },
    ];
  }

  rows(b: Bar): [string, string][] {
    const rows: [string, string][] = [["of the time", b.time_share_label], ["from", duration(b.start_ns)], ["to", duration(b.end_ns)]];
    if (b.exposed_label) rows.push(["exposed", b.exposed_label]);
    for (const s of b.sent ?? []) rows.push([`sent along ${s.axes}`, s.label]);
    const c = b.collective;
    if (c) {
      rows.push(["devices in a group", String(c.devices)], ["buffer", c.buffer_label]);
      if (c.algorithm) rows.push(["algorithm", c.algorithm]);
      if (c.link) rows.push(["link", c.link]);
      return [["time", b.time_label], ...rows];
    }
    return [...costRows(b), ...rows];
  }

  world() {
    return { x: 0, y: 0, w: 1, h: 1 };
  }

  margins(w: number) {
    return { left: w < 700 ? 34 : 130, top: 10, right: 18, bottom: 46 };
  }

  boxOf(i: number): Box | null {
    const b = this.bars[i];
    if (!b) return null;
    const lane = isComm(b) ? lanes.communication : lanes.compute;
    return { x: b.start_ns / this.length, y: lane.y, w: (b.end_ns - b.start_ns) / this.length, h: lane.h };
  }

  draw(pen: Pen, view: View, look: Look) {
    const { theme } = look;
    const a = view.area;
    if (this.empty) return 0;
    this.drawAxes(pen, view, theme);
    pen.clip(a.x, a.y, a.w, a.h);
    let drawn = 0;
    this.bars.forEach((b, i) => {
      const box = this.boxOf(i);
      if (!box || !view.touches(box)) return;
      const opacity = look.hidden.has(b.class) ? 0.08 : look.found && !look.found.has(i) ? 0.22 : 1;
      this.drawBar(pen, view, look, i, box, opacity);
      drawn++;
    });
    this.drawExposed(pen, view, look);
    this.bars.forEach((b, i) => {
      const box = this.boxOf(i);
      if (box && view.touches(box) && !look.hidden.has(b.class)) this.drawName(pen, view, theme, b, box, look.found && !look.found.has(i) ? 0.22 : 1);
    });
    const chosen = look.selected >= 0 ? this.boxOf(look.selected) : null;
    if (chosen) pen.rect(view.sx(chosen.x) - 1, view.sy(chosen.y) - 1, Math.max(3, chosen.w * view.kx + 2), chosen.h * view.ky + 2, { stroke: theme.accent, width: 3 });
    pen.unclip();
    return drawn;
  }

  drawBar(pen: Pen, view: View, look: Look, i: number, box: Box, opacity: number) {
    const { theme } = look;
    const mark = markOf(theme, at(this.items, i).cls);
    const [x, y] = [view.sx(box.x), view.sy(box.y)];
    const [w, h] = [Math.max(1, box.w * view.kx), box.h * view.ky];
    const thin = w < 4;
    pen.rect(x, y, w, h, { fill: thin ? mark.color : mark.fill, opacity });
    const hover = i === look.hover;
    if (!thin) pen.rect(x, y, w, h, { stroke: hover ? theme.accent : mark.color, width: hover ? 2.5 : 1, opacity });
  }

  /** Hatches the parts of collectives in which nothing computes, and marks them below. */
  drawExposed(pen: Pen, view: View, look: Look) {
    const { theme } = look;
    const mark = markOf(theme, "communication");
    const y = { strip: view.sy(lanes.exposed.y), lane: view.sy(lanes.communication.y) };
    const faint = look.hidden.has("communication");
    for (const e of this.exposed) {
      const box = { x: e.start_ns / this.length, y: 0, w: (e.end_ns - e.start_ns) / this.length, h: 1 };
      if (!view.touches(box)) continue;
      const [x, w] = [view.sx(box.x), Math.max(0.5, box.w * view.kx)];
      pen.rect(x, y.strip, w, lanes.exposed.h * view.ky, { fill: theme.warning });
      if (!faint) hatch(pen, x, y.lane, w, lanes.communication.h * view.ky, view.area, { stroke: mark.color, width: 1, opacity: 0.45 }, true);
    }
  }

  /** Labels a bar, in the part of it that is on the screen; upright in a narrow one. */
  drawName(pen: Pen, view: View, theme: Theme, b: Bar, box: Box, opacity: number) {
    const a = view.area;
    const left = Math.max(view.sx(box.x), a.x);
    const right = Math.min(view.sx(box.x + box.w), a.x + a.w);
    const [top, high] = [view.sy(box.y), box.h * view.ky];
    const room = right - left;
    if (room < 15 || high < 30) return;
    const mark = markOf(theme, b.class);
    const name = { size: 12, fill: theme.text, mono: true, opacity, halo: mark.fill };
    const numbers = { size: 11.5, fill: theme.muted, opacity, halo: mark.fill };
    const full = titleOf(b.result, b.op);
    const title = textWidth(full, name) <= Math.max(room - 10, 0) ? full : shortOp(b.op);
    const lines = isComm(b) && b.collective ? [`along ${b.collective.axes}`, b.time_label, sentText(b)] : [b.time_label];
    const middle = top + high / 2;
    if (room > 74) {
      const first = middle - (lines.length * 16) / 2;
      pen.text(fitText(title, name, room - 10), left + 6, first, name);
      lines.forEach((line, i) => { pen.text(fitText(line, numbers, room - 10), left + 6, first + 16 * (i + 1), numbers); });
      return;
    }
    const x = left + room / 2;
    const along = b.collective ? ` ${b.collective.axes}` : "";
    const upright = { ...name, size: 11 };
    if (room < 34) pen.text(fitText(`${title}${along}  ${b.time_label}`, upright, high - 10), x, middle, { ...upright, align: "middle", turn: -90 });
    else {
      pen.text(fitText(title, name, high - 14), x - 8, middle, { ...name, align: "middle", turn: -90 });
      pen.text(fitText(lines.join("  "), numbers, high - 14), x + 8, middle, { ...numbers, align: "middle", turn: -90 });
    }
  }

  drawAxes(pen: Pen, view: View, theme: Theme) {
    const a = view.area;
    const label = { size: 11.5, fill: theme.muted };
    const from = Math.max(0, view.x) * this.length;
    const to = Math.min(1, view.x + a.w / view.kx) * this.length;
    for (const [, lane] of Object.entries(lanes)) pen.rect(a.x, view.sy(lane.y), a.w, lane.h * view.ky, { fill: theme.line, opacity: 0.28 });
    for (const t of ticks(from, to, a.w / 120)) {
      const px = view.sx(t / this.length);
      pen.line([px, a.y, px, a.y + a.h], { stroke: theme.line, width: 1 });
      pen.text(duration(t), px, a.y + a.h + 14, { ...label, align: "middle" });
    }
    pen.rect(a.x, a.y, a.w, a.h, { stroke: theme.edge, width: 1 });
    pen.text("predicted time", a.x + a.w / 2, a.y + a.h + 33, { size: 12, fill: theme.text, align: "middle" });
    const t = this.plan;
    const names: [string, string, { y: number; h: number }][] = [
      ["compute", t?.compute_label ?? "", lanes.compute],
      ["communication", t?.communication_label ?? "", lanes.communication],
      ["exposed", t?.exposed_label ?? "", lanes.exposed],
    ];
    for (const [name, total, lane] of names) {
      const y = view.sy(lane.y + lane.h / 2);
      if (a.x < 110) {
        if (lane.h > 0.1) pen.text(`${name} ${total}`, a.x - 16, y, { size: 12, fill: theme.text, align: "middle", turn: -90 });
        continue;
      }
      pen.text(name, a.x - 9, y - 8, { size: 12.5, fill: theme.text, align: "end", bold: true });
      pen.text(total, a.x - 9, y + 9, { ...label, align: "end" });
    }
  }

  hit(px: number, py: number, view: View): Hit | null {
    const a = view.area;
    if (px < a.x - 2 || px > a.x + a.w + 2) return null;
    let best = -1;
    let least = Infinity;
    this.bars.forEach((_, i) => {
      const box = this.boxOf(i);
      if (!box || py < view.sy(box.y) || py > view.sy(box.y + box.h)) return;
      // The nearest, so that bars narrower than a pixel can be reached.
      const far = Math.max(view.sx(box.x) - px, px - view.sx(box.x + box.w), 0);
      if (far <= 2 && far < least) {
        best = i;
        least = far;
      }
    });
    return best < 0 ? null : { index: best };
  }

  walk(i: number, to: Direction) {
    const n = this.bars.length;
    if (n === 0) return -1;
    if (to === "first" || i < 0) return 0;
    if (to === "last") return n - 1;
    const from = at(this.bars, i);
    if (to === "left" || to === "right") {
      const lane = this.bars.map((_, j) => j).filter((j) => isComm(at(this.bars, j)) === isComm(from));
      return at(lane, clamp(lane.indexOf(i) + (to === "right" ? 1 : -1), 0, lane.length - 1));
    }
    if (isComm(from) === (to === "down")) return i;
    const middle = (b: Bar) => (b.start_ns + b.end_ns) / 2;
    let best = i;
    this.bars.forEach((b, j) => {
      if (isComm(b) === isComm(from)) return;
      if (best === i || Math.abs(middle(b) - middle(from)) < Math.abs(middle(at(this.bars, best)) - middle(from))) best = j;
    });
    return best;
  }

  sections(i: number): Section[] {
    const from = at(this.bars, i);
    const beside = this.bars
      .map((b, index) => ({ b, index, both: Math.min(b.end_ns, from.end_ns) - Math.max(b.start_ns, from.start_ns) }))
      .filter(({ b, both }) => isComm(b) !== isComm(from) && both > 0)
      .sort((p, q) => q.both - p.both);
    return [{ name: isComm(from) ? "Hidden behind" : "Hides", items: beside.map(({ b, index, both }) => ({ index, text: titleOf(b.result, b.op), amount: duration(both) })) }];
  }

  show(i: number) {
    return i;
  }

  notes(): HTMLElement[] {
    const open = this.bars.filter((b) => b.exposed_ns > 0).sort((p, q) => q.exposed_ns - p.exposed_ns);
    if (open.length === 0) return [];
    const most = 12;
    const rows = open.slice(0, most).map((b) => el("li", {}, el("span", { class: "title" }, titleOf(b.result, b.op)), ` ${b.exposed_label}${b.line > 0 ? `, line ${b.line}` : ""}`));
    if (open.length > most) rows.push(el("li", {}, `and ${open.length - most} more`));
    return [el("h2", {}, `Exposed: ${this.plan?.exposed_label ?? ""} of ${this.plan?.communication_label ?? ""} of communication, ${this.plan?.exposed_share_label ?? ""} of the time`), el("ul", {}, ...rows)];
  }
}

function isComm(b: Bar) {
  return b.stream === "communication";
}

function sentBytes(b: Bar) {
  return (b.sent ?? []).reduce((sum, s) => sum + s.bytes, 0);
}

function sentText(b: Bar) {
  return (b.sent ?? []).map((s) => s.label).join(" + ");
}
