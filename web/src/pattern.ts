// The patterns: which elements the sparse tensors of a function store, a picture of each (a spy plot) whose cells are the stronger the more of them they hold.
import type { PanelData, Pattern } from "./data";
import { type Column, type Direction, distinctKeys, type Figure, type Hit, type Item, type Look, type Section } from "./figure";
import { figureKeys } from "./help";
import { fitText, type Pen } from "./pen";
import { markOf } from "./theme";
import { at, clamp } from "./util";
import type { Box, View } from "./view";

/** The side of a picture, the room for its caption above, and between pictures, in units of the world. */
const side = 384;
const caption = 46;
const gap = 36;
/** What the card beside the pictures takes of the width. */
const cardRoom = 340;

/** The rows or columns of cell i of so many along a dimension of that size: "128–255". */
function range(i: number, cells: number, size: number) {
  const from = Math.ceil((i * size) / cells);
  const to = Math.ceil(((i + 1) * size) / cells) - 1;
  return from >= to ? String(from) : `${from}–${to}`;
}

export class PatternFigure implements Figure {
  readonly name = "Patterns";
  readonly patterns: Pattern[];
  readonly items: Item[];
  readonly classes: string[] = [];
  readonly uniform: number = 2;
  readonly minimap: boolean = false;
  readonly cardSide: Figure["cardSide"] = "beside";
  readonly empty: string;
  readonly summary: string;
  readonly note: string;
  readonly about = "Each picture is a sparse tensor: its first dimension goes down, the others across. The more elements lie in a cell, the stronger is its colour, on a logarithmic scale; empty cells store nothing. Elements are those of the matrix that is given, else of the distribution that the argument states, by default a uniform one.";
  readonly keys = [["← → ↑ ↓", "the pictures"], ...figureKeys];
  readonly columns: Column[];
  /** The pictures in a row of them. */
  across = 1;

  constructor(data: PanelData) {
    this.patterns = data.patterns ?? [];
    const keys = distinctKeys(this.patterns.map((p) => `${p.kind} ${p.name}`));
    this.items = this.patterns.map((p, i) => ({
      key: at(keys, i),
      title: p.name,
      sub: p.type,
      cls: "",
      place: p,
      search: `${p.name} ${p.type} ${p.kind} ${p.from}`.toLowerCase(),
      rows: this.rows(p),
      why: [p.summary_label],
      weight: p.stored,
    }));
    this.empty = this.patterns.length === 0 ? "This function has no sparse tensors." : "";
    this.summary = this.patterns.map((p) => `${p.name}, ${p.from}: ${p.stored_label} stored. ${p.summary_label}.`).join(" ");
    this.note = `${this.patterns.length === 1 ? "1 sparse tensor" : `${this.patterns.length} sparse tensors`} · stronger cells hold more elements`;
    const p = (i: number) => at(this.patterns, i);
    const count = (name: string, of: (p: Pattern) => number): Column => ({ name, text: (i) => (of(p(i)) > 0 ? String(of(p(i))) : ""), by: (i) => of(p(i)), numeric: true });
    this.columns = [
      { name: "Tensor", text: (i) => p(i).name, by: (i) => p(i).name },
      { name: "Type", text: (i) => p(i).type, by: (i) => p(i).type },
      { name: "Pattern", text: (i) => p(i).from, by: (i) => p(i).from },
      { name: "Stored", text: (i) => p(i).stored_label, by: (i) => p(i).stored, numeric: true },
      count("Longest row", (x) => x.longest_row),
      count("Median row", (x) => x.median_row),
      count("Empty rows", (x) => x.empty_rows),
      { name: "Where", text: (i) => p(i).summary_label, by: (i) => p(i).summary_label },
    ];
  }

  rows(p: Pattern): [string, string][] {
    const rows: [string, string][] = [["pattern", p.from]];
    if (p.reason) rows.push(["no picture", p.reason]);
    else rows.push(["stored", p.stored_label]);
    if (p.longest_row > 0) rows.push(["longest row", String(p.longest_row)], ["median row", String(p.median_row)], ["empty rows", String(p.empty_rows)]);
    if (p.blocks_16 > 0) rows.push(["blocks of 16 × 16 with elements", String(p.blocks_16)]);
    return rows;
  }

  /** The picture of a tensor, without its caption. */
  box(i: number): Box {
    const p = at(this.patterns, i);
    const unit = side / Math.max(p.across, p.down, 1);
    const [column, row] = [i % this.across, Math.floor(i / this.across)];
    return { x: column * (side + gap), y: row * (side + caption + gap) + caption, w: Math.max(p.across, 1) * unit, h: Math.max(p.down, 1) * unit };
  }

  boxOf(i: number): Box | null {
    const b = this.box(i);
    return { x: b.x, y: b.y - caption, w: side, h: b.h + caption };
  }

  world(): Box {
    const n = this.patterns.length;
    const rows = Math.max(1, Math.ceil(n / this.across));
    return { x: 0, y: 0, w: Math.max(1, Math.min(n, this.across)) * (side + gap) - gap, h: rows * (side + caption + gap) - gap };
  }

  prefer(aspect: number) {
    this.across = clamp(Math.round(Math.sqrt(this.patterns.length * aspect)), 1, Math.max(1, this.patterns.length));
  }

  margins(w: number) {
    return { left: 24, top: 20, right: this.roomy(w) ? cardRoom : 24, bottom: 20 };
  }

  first() {
    return this.patterns.length > 0 ? 0 : -1;
  }

  roomy(width: number) {
    return width >= 900;
  }

  draw(pen: Pen, view: View, look: Look) {
    let drawn = 0;
    this.patterns.forEach((p, i) => {
      const whole = this.boxOf(i);
      if (!whole || !view.touches(whole)) return;
      drawn++;
      const { theme } = look;
      const b = this.box(i);
      const [x, y, w, h] = [view.sx(b.x), view.sy(b.y), b.w * view.kx, b.h * view.ky];
      const opacity = look.found && !look.found.has(i) ? 0.3 : 1;
      const size = clamp(13 * view.kx, 10, 15);
      const wide = side * view.kx;
      const mono = { size, fill: theme.text, mono: true, bold: true, opacity };
      pen.text(fitText(p.name, mono, wide), x, y - size * 2.3, mono);
      const muted = { size: size * 0.88, fill: theme.muted, opacity };
      pen.text(fitText(p.reason || `${p.from} · ${p.stored_label}`, muted, wide), x, y - size * 0.9, muted);
      pen.rect(x, y, w, h, { fill: theme.surface });
      this.drawCells(pen, p, { x, y, w, h }, markOf(theme, "contraction").color, opacity);
      const chosen = i === look.selected;
      pen.rect(x, y, w, h, { stroke: chosen ? theme.accent : theme.edge, width: chosen ? 2 : 1 });
    });
    return drawn;
  }

  drawCells(pen: Pen, p: Pattern, b: Box, fill: string, opacity: number) {
    const counts = p.counts ?? [];
    const most = counts.reduce((a, n) => Math.max(a, n), 1);
    for (let row = 0; row < p.down; row++) {
      // Edges of neighbours are the same pixel, so that nothing shows through between them.
      const [top, bottom] = [Math.round(b.y + (row * b.h) / p.down), Math.round(b.y + ((row + 1) * b.h) / p.down)];
      for (let column = 0; column < p.across; column++) {
        const n = counts[row * p.across + column] ?? 0;
        if (n === 0) continue;
        const [left, right] = [Math.round(b.x + (column * b.w) / p.across), Math.round(b.x + ((column + 1) * b.w) / p.across)];
        const strong = most > 1 ? 0.22 + (0.78 * Math.log(n)) / Math.log(most) : 1;
        pen.rect(left, top, Math.max(1, right - left), Math.max(1, bottom - top), { fill, opacity: opacity * strong });
      }
    }
  }

  hit(px: number, py: number, view: View): Hit | null {
    const [x, y] = [view.wx(px), view.wy(py)];
    for (let i = 0; i < this.patterns.length; i++) {
      const whole = this.boxOf(i);
      if (!whole || x < whole.x || y < whole.y || x > whole.x + whole.w || y > whole.y + whole.h) continue;
      const b = this.box(i);
      const p = at(this.patterns, i);
      const [column, row] = [Math.floor(((x - b.x) / b.w) * p.across), Math.floor(((y - b.y) / b.h) * p.down)];
      if (y < b.y || column < 0 || column >= p.across || row < 0 || row >= p.down) return { index: i };
      return { index: i, other: this.cell(p, row, column) };
    }
    return null;
  }

  /** What lies in a cell. */
  cell(p: Pattern, row: number, column: number): Item {
    const shape = p.shape ?? [];
    const rows = shape.length > 1 ? at(shape, 0) : 1;
    const columns = shape.slice(shape.length > 1 ? 1 : 0).reduce((a, n) => a * n, 1);
    const share = (p.counts ?? [])[row * p.across + column] ?? 0;
    const all = (p.counts ?? []).reduce((a, n) => a + n, 0);
    const figures: [string, string][] = [["rows", range(row, p.down, rows)], ["columns", range(column, p.across, columns)], ["of the elements", all > 0 ? `${((100 * share) / all).toPrecision(3)} %` : "none"]];
    return { key: `cell ${row} ${column}`, title: p.name, sub: p.from, cls: "", place: p, search: "", rows: figures, why: [], weight: 0 };
  }

  walk(i: number, to: Direction) {
    const n = this.patterns.length;
    if (n === 0) return -1;
    if (to === "first" || i < 0) return 0;
    if (to === "last") return n - 1;
    const step = to === "right" ? 1 : to === "left" ? -1 : to === "down" ? this.across : -this.across;
    return i + step >= 0 && i + step < n ? i + step : i;
  }

  sections(): Section[] {
    return [];
  }

  show(i: number) {
    return i;
  }
}
