// The mesh: its devices along its axes, and which piece of the selected value each of them has; the values are listed beside it.
import type { MeshData, MeshLayout, MeshValue, PanelData } from "./data";
import { type Column, type Direction, distinctKeys, type Figure, type Hit, type Item, type Look, type Section, shortOp } from "./figure";
import { figureKeys } from "./help";
import { type Cell, cellSize, MeshGrid } from "./mesh_grid";
import { fitText, type Pen } from "./pen";
import { markOf, markTable, type Theme } from "./theme";
import { at, clamp } from "./util";
import type { Box, View } from "./view";
import { drawCell } from "./mesh_cell";

const rowHeight = 22;
/** The width from which on there is room for the card beside the grid. */
const cardFrom = 1180;

export class MeshFigure implements Figure {
  readonly name = "Mesh";
  readonly mesh: MeshData | undefined;
  readonly values: MeshValue[];
  readonly grid: MeshGrid;
  readonly items: Item[];
  readonly classes: string[];
  readonly uniform: number = 1.25;
  readonly minimap: boolean = false;
  readonly cardSide: Figure["cardSide"] = "beside";
  readonly empty: string;
  readonly summary: string;
  readonly note: string;
  readonly about = "Each box is a device; its picture is the whole tensor with the device's piece filled in, with the range of elements in each dimension. Dashed: padding. Devices with the same elements have copies, or, where the value is partial, parts of a reduction. The list has all values of the function with their shardings; the pieces are those of the one under the pointer, else of the selected one.";
  readonly keys: string[][];
  readonly columns: Column[];
  /** The first row of the list, in pixels. */
  from = 0;
  /** The selection that the list has been scrolled to. */
  seen = -1;

  constructor(data: PanelData) {
    this.mesh = data.mesh;
    const m = data.mesh;
    this.values = m?.values ?? [];
    this.grid = new MeshGrid(m?.axes ?? [], m?.shown_devices ?? 0);
    const keys = distinctKeys(this.values.map((v) => `${v.kind} ${v.name}`));
    this.items = this.values.map((v, i) => ({
      key: at(keys, i),
      title: v.name,
      sub: v.type,
      cls: v.op === "" ? "" : v.class,
      place: v,
      search: `${v.name} ${v.op} ${v.class} ${v.kind} ${v.type} ${v.sharding} ${v.padding ? "padded" : ""} ${v.partial ? "partial" : ""} ${v.stated ? "stated" : ""}`.toLowerCase(),
      rows: this.rows(v),
      why: [],
      weight: v.bytes ?? -Infinity,
    }));
    const order = markTable.map(([cls]) => cls);
    this.classes = order.filter((cls) => this.items.some((item) => item.cls === cls));
    this.empty = this.values.length === 0 ? "This function has no tensors." : "";
    const axes = (m?.axes ?? []).map((a) => `${a.name} ${a.size}`).join(" × ");
    const divided = this.values.filter((v) => this.layoutOf(v).some((d) => d.axes !== "")).length;
    this.summary = `${m?.devices ?? 0} devices, ${axes}; ${divided} of ${this.values.length} values are divided`;
    this.note = [
      m?.local ? "Each device has values of its own: the text is of one" : `${divided} of ${this.values.length} values are divided`,
      (m?.devices ?? 0) > (m?.shown_devices ?? 0) ? `the first ${m?.shown_devices ?? 0} of ${m?.devices ?? 0} devices` : "",
      m?.reason ? `not divided: ${m.reason}` : "",
    ].filter((s) => s !== "").join(" · ");
    this.keys = [["↑ ↓", "values in the order of the text"], ["← →", "values that are divided in another way"], ...figureKeys];
    const value = (i: number) => at(this.values, i);
    this.columns = [
      { name: "Value", text: (i) => value(i).name, by: (i) => value(i).name },
      { name: "Line", text: (i) => (value(i).line > 0 ? String(value(i).line) : ""), by: (i) => value(i).line, numeric: true },
      { name: "Kind", text: (i) => value(i).kind, by: (i) => value(i).kind },
      { name: "Op", text: (i) => shortOp(value(i).op), by: (i) => value(i).op },
      { name: "Type", text: (i) => value(i).type, by: (i) => value(i).type },
      { name: "Sharding", text: (i) => value(i).sharding, by: (i) => value(i).sharding },
      { name: "Why", text: (i) => this.why(value(i)), by: (i) => this.why(value(i)) },
      { name: "A device has", text: (i) => value(i).piece, by: (i) => value(i).piece },
      { name: "Bytes", text: (i) => value(i).bytes_label, by: (i) => value(i).bytes ?? -Infinity, numeric: true },
      { name: "Padding", text: (i) => value(i).padding, by: (i) => value(i).padding },
      { name: "Partial", text: (i) => value(i).partial, by: (i) => value(i).partial },
    ];
  }

  why(v: MeshValue) {
    return v.stated ? "stated" : v.why;
  }

  rows(v: MeshValue): [string, string][] {
    const rows: [string, string][] = [["sharding", v.sharding]];
    const why = this.why(v);
    if (why) rows.push(["why", why]);
    rows.push(["a device has", v.piece]);
    if (v.bytes_label) rows.push(["of", v.bytes_label]);
    const layout = this.mesh?.layouts?.[v.layout];
    if (layout) rows.push(["different pieces", `${layout.pieces} on ${this.mesh.devices} devices`]);
    if (v.padding) rows.push(["padded", v.padding]);
    if (v.partial) rows.push(["partial", v.partial]);
    if (v.op) rows.push(["defined by", shortOp(v.op)]);
    rows.push(["kind", v.kind]);
    return rows;
  }

  layoutOf(v: MeshValue) {
    return this.mesh?.layouts?.[v.layout]?.dims ?? [];
  }

  world() {
    return this.grid.box;
  }

  prefer(aspect: number) {
    // The list and the card take about half of the width.
    this.grid.arrange(aspect * 0.47);
  }

  /** The area of the list: left of the grid, above it in a narrow view. */
  list(w: number, h: number): Box {
    return w < 760 ? { x: 0, y: 0, w, h: h * 0.4 } : { x: 0, y: 0, w: clamp(w * 0.3, 300, 460), h };
  }

  margins(w: number, h: number) {
    const list = this.list(w, h);
    return w < 760 ? { left: 12, top: list.h + 12, right: 12, bottom: 12 } : { left: list.w + 24, top: 14, right: w < cardFrom ? 24 : 332, bottom: 14 };
  }

  boxOf(): Box | null {
    return null;
  }

  /** The first value that is divided, else the first. */
  first() {
    const divided = this.values.findIndex((v) => this.layoutOf(v).some((d) => d.axes !== ""));
    return divided >= 0 || this.values.length === 0 ? divided : 0;
  }

  roomy(width: number) {
    return width >= cardFrom;
  }

  /** The value whose pieces are drawn: the one under the pointer, else the selected one. */
  shown(look: Look) {
    if (look.paper && this.seen >= 0) return this.seen; // paper has no selection of its own
    return look.hover >= 0 ? look.hover : look.selected >= 0 ? look.selected : Math.max(0, this.first());
  }

  draw(pen: Pen, view: View, look: Look) {
    if (this.empty) return 0;
    const shown = this.shown(look);
    const drawn = this.drawList(pen, view, look, shown);
    const a = view.area;
    pen.clip(a.x - 10, a.y - 10, a.w + 20, a.h + 20);
    const value = this.values[shown];
    const layout: MeshLayout | undefined = value && this.mesh?.layouts?.[value.layout];
    this.grid.drawAxes(pen, view, look.theme);
    const mark = markOf(look.theme, this.items[shown]?.cls ?? "");
    for (const cell of this.grid.cells) if (view.touches(cell)) drawCell(pen, view, look.theme, cell, value, layout, mark);
    pen.unclip();
    return drawn;
  }

  areaOf(view: View): Box {
    const a = view.area;
    return a.x > 100 ? { x: 0, y: 0, w: a.x - 24, h: a.h + 28 } : { x: 0, y: 0, w: a.w + 24, h: a.y - 12 };
  }

  drawList(pen: Pen, view: View, look: Look, shown: number) {
    const { theme } = look;
    const area = this.areaOf(view);
    const high = area.h - rowHeight - 4;
    if (look.selected !== this.seen && !look.paper) {
      this.seen = look.selected;
      if (look.selected >= 0) this.from = clamp(this.from, (look.selected + 1) * rowHeight - high, look.selected * rowHeight);
    }
    if (!look.paper) this.from = clamp(this.from, 0, Math.max(0, this.values.length * rowHeight - high));
    const from = look.paper ? 0 : this.from;
    const [type, sharding] = [area.x + 8 + area.w * 0.21, area.x + 4 + area.w * 0.53];
    const head = { size: 11.5, fill: theme.muted, bold: true };
    const heads: [number, string][] = [[area.x + 16, "value"], [type, "type"], [sharding, "sharding"]];
    for (const [x, text] of heads) pen.text(text, x, area.y + rowHeight / 2 + 2, head);
    pen.line([area.x, area.y + rowHeight + 3, area.x + area.w, area.y + rowHeight + 3], { stroke: theme.line, width: 1 });
    pen.clip(area.x, area.y + rowHeight + 4, area.w, high);
    let drawn = 0;
    const first = Math.floor(from / rowHeight);
    for (let i = first; i < this.values.length && (i - first - 1) * rowHeight < high; i++) {
      this.drawRow(pen, look, i, i === shown, { x: area.x, y: area.y + rowHeight + 4 + i * rowHeight - from, w: area.w, h: rowHeight }, type, sharding);
      drawn++;
    }
    pen.unclip();
    const wide = area.w < view.area.x + view.area.w;
    if (wide) pen.line([area.x + area.w, area.y, area.x + area.w, area.y + area.h], { stroke: theme.line, width: 1 });
    else pen.line([area.x, area.y + area.h, area.x + area.w, area.y + area.h], { stroke: theme.line, width: 1 });
    if (!look.paper) this.drawBarOfList(pen, theme, area, high);
    return drawn;
  }

  drawRow(pen: Pen, look: Look, i: number, shown: boolean, row: Box, type: number, sharding: number) {
    const { theme } = look;
    const v = at(this.values, i);
    const mark = markOf(theme, at(this.items, i).cls);
    const opacity = look.hidden.has(at(this.items, i).cls) ? 0.2 : look.found && !look.found.has(i) ? 0.3 : 1;
    if (shown) pen.rect(row.x + 4, row.y + 1, row.w - 12, row.h - 2, { fill: mark.fill, radius: 4 });
    if (i === look.selected) pen.rect(row.x + 4, row.y + 1, row.w - 12, row.h - 2, { stroke: theme.accent, width: 2, radius: 4 });
    else if (i === look.hover) pen.rect(row.x + 4, row.y + 1, row.w - 12, row.h - 2, { stroke: theme.edge, width: 1, radius: 4 });
    const y = row.y + row.h / 2;
    pen.rect(row.x + 8, row.y + 5, 3, row.h - 10, { fill: mark.color, opacity });
    const mono = { size: 12, fill: theme.text, mono: true, opacity };
    pen.text(fitText(v.name, mono, type - row.x - 22), row.x + 16, y, mono);
    const muted = { size: 11.5, fill: theme.muted, opacity };
    pen.text(fitText(v.type, muted, sharding - type - 8), type, y, muted);
    const whole = !v.sharding.includes("{");
    const how = { ...mono, fill: whole ? theme.muted : theme.text, bold: v.stated, mono: !whole };
    pen.text(fitText(v.sharding, how, row.x + row.w - 16 - sharding), sharding, y, how);
  }

  /** How far the list is scrolled. */
  drawBarOfList(pen: Pen, theme: Theme, area: Box, high: number) {
    const all = this.values.length * rowHeight;
    if (all <= high) return;
    const length = Math.max(18, (high / all) * high);
    const y = area.y + rowHeight + 4 + (this.from / (all - high)) * (high - length);
    pen.rect(area.x + area.w - 6, y, 4, length, { fill: theme.edge, radius: 2, opacity: 0.7 });
  }

  scroll(x: number, y: number, by: number, view: View) {
    const area = this.areaOf(view);
    if (x > area.x + area.w || y > area.y + area.h) return false;
    this.from += by;
    return true;
  }

  hit(px: number, py: number, view: View): Hit | null {
    const area = this.areaOf(view);
    if (px < area.x + area.w && py < area.y + area.h) {
      const i = Math.floor((py - area.y - rowHeight - 4 + this.from) / rowHeight);
      return py > area.y + rowHeight + 4 && i >= 0 && i < this.values.length ? { index: i } : null;
    }
    const [x, y] = [view.wx(px), view.wy(py)];
    const cell = this.grid.cells.find((c) => x >= c.x && x <= c.x + cellSize.w && y >= c.y && y <= c.y + cellSize.h);
    return cell ? { index: -1, other: this.device(cell) } : null;
  }

  /** What is known of a device: where it is in the mesh. */
  device(cell: Cell): Item {
    const m = this.mesh;
    const rows: [string, string][] = (m?.axes ?? []).map((a, i) => [a.name, `${at(cell.at, i)} of ${a.size}`]);
    const place = { line: m?.line ?? 0, column: m?.column ?? 0, end_column: m?.end_column ?? 0 };
    return { key: `device ${cell.device}`, title: `device ${cell.device}`, sub: `@${m?.name ?? ""}`, cls: "", place, search: "", rows, why: [], weight: 0 };
  }

  walk(i: number, to: Direction) {
    const n = this.values.length;
    if (n === 0) return -1;
    if (to === "first" || i < 0) return 0;
    if (to === "last") return n - 1;
    if (to === "up" || to === "down") return clamp(i + (to === "down" ? 1 : -1), 0, n - 1);
    const step = to === "right" ? 1 : -1;
    for (let j = i + step; j >= 0 && j < n; j += step) if (at(this.values, j).sharding !== at(this.values, i).sharding) return j;
    return i;
  }

  sections(i: number): Section[] {
    const same = this.values.map((v, index) => ({ v, index })).filter(({ v, index }) => index !== i && v.layout >= 0 && v.layout === at(this.values, i).layout);
    return [{ name: "Of the same shape and sharding", items: same.map(({ v, index }) => ({ index, text: v.name, amount: v.line > 0 ? `line ${v.line}` : "" })) }];
  }

  show(i: number) {
    return i;
  }
}

