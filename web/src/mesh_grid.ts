// Where the devices of a mesh are drawn: the last axis to the right, the one before it downwards, others as blocks beside each other.
import type { MeshAxis } from "./data";
import type { Pen } from "./pen";
import type { Theme } from "./theme";
import { at } from "./util";
import type { Box, View } from "./view";

export const cellSize = { w: 140, h: 104 };
const gap = 10;
const label = { rows: 58, columns: 24, block: 22 };
const blockGap = 34;

/** A device: its box, and its position along each axis. */
export interface Cell extends Box {
  device: number;
  at: number[];
}

interface Block extends Box {
  title: string;
}

export class MeshGrid {
  readonly rows: MeshAxis | undefined;
  readonly columns: MeshAxis | undefined;
  readonly outer: MeshAxis[];
  cells: Cell[] = [];
  blocks: Block[] = [];
  box: Box = { x: 0, y: 0, w: 1, h: 1 };

  constructor(
    readonly axes: MeshAxis[],
    readonly count: number,
  ) {
    this.columns = axes[axes.length - 1];
    this.rows = axes.length > 1 ? axes[axes.length - 2] : undefined;
    this.outer = axes.slice(0, Math.max(0, axes.length - 2));
    this.arrange(1.4);
  }

  /** Places the devices in a picture of about this width / height. */
  arrange(aspect: number) {
    const inRow = this.rows ? (this.columns?.size ?? 1) : this.wrapped(aspect);
    const perBlock = this.rows ? this.rows.size * inRow : this.count;
    const blockRows = this.rows?.size ?? Math.ceil(this.count / Math.max(1, inRow));
    const left = this.rows ? label.rows : 0;
    const top = label.columns + (this.outer.length > 0 ? label.block : 0);
    const w = left + inRow * (cellSize.w + gap) - gap;
    const shownRows = Math.min(blockRows, Math.ceil(this.count / Math.max(1, inRow)));
    const h = top + shownRows * (cellSize.h + gap) - gap;
    const blocks = Math.ceil(this.count / Math.max(1, perBlock));
    const across = Math.max(1, Math.min(blocks, Math.round(Math.sqrt((blocks * aspect * (h + blockGap)) / (w + blockGap)))));
    this.cells = [];
    this.blocks = [];
    for (let b = 0; b < blocks; b++) {
      const [x, y] = [(b % across) * (w + blockGap), Math.floor(b / across) * (h + blockGap)];
      const first = this.position(b * perBlock);
      this.blocks.push({ x, y, w, h, title: this.outer.map((axis, i) => `${axis.name} ${at(first, i)}`).join(" · ") });
      for (let k = 0; k < perBlock && b * perBlock + k < this.count; k++) {
        const device = b * perBlock + k;
        const [column, row] = [k % inRow, Math.floor(k / inRow)];
        this.cells.push({ device, at: this.position(device), x: x + left + column * (cellSize.w + gap), y: y + top + row * (cellSize.h + gap), ...cellSize });
      }
    }
    this.box = { x: 0, y: 0, w: across * (w + blockGap) - blockGap, h: Math.ceil(blocks / across) * (h + blockGap) - blockGap };
  }

  /** The devices of the only axis in a row: a divisor of their number if one is near what fits. */
  wrapped(aspect: number) {
    const n = this.count;
    const ideal = Math.sqrt((n * aspect * cellSize.h) / cellSize.w);
    let best = Math.max(1, Math.min(n, Math.ceil(ideal)));
    for (let d = 1; d <= n; d++) if (n % d === 0 && d >= ideal * 0.7 && d <= ideal * 1.8 && (n % best !== 0 || Math.abs(d - ideal) < Math.abs(best - ideal))) best = d;
    return best;
  }

  /** The position of a device along each axis. */
  position(device: number) {
    const out: number[] = [];
    for (const axis of [...this.axes].reverse()) {
      out.unshift(device % axis.size);
      device = Math.floor(device / axis.size);
    }
    return out;
  }

  drawAxes(pen: Pen, view: View, theme: Theme) {
    const k = view.kx;
    const size = Math.min(13, 12.5 * k);
    if (size < 4) return;
    const text = { size, fill: theme.muted };
    for (const b of this.blocks) {
      if (!view.touches(b)) continue;
      if (b.title) pen.text(b.title, view.sx(b.x), view.sy(b.y + label.block / 2), { ...text, fill: theme.text, bold: true });
      const top = b.y + (b.title ? label.block : 0) + label.columns / 2;
      const left = b.x + (this.rows ? label.rows : 0);
      if (!this.rows || !this.columns) {
        pen.text(`${this.columns?.name ?? ""} →`, view.sx(left), view.sy(top), { ...text, bold: true });
        continue;
      }
      for (let i = 0; i < this.columns.size; i++) {
        pen.text(`${this.columns.name} ${i}`, view.sx(left + i * (cellSize.w + gap) + cellSize.w / 2), view.sy(top), { ...text, align: "middle" });
      }
      const shown = this.cells.filter((c) => c.x === left && c.y > b.y && c.y < b.y + b.h).length;
      for (let i = 0; i < shown; i++) {
        const y = top + label.columns / 2 + i * (cellSize.h + gap) + cellSize.h / 2;
        pen.text(`${this.rows.name} ${i}`, view.sx(left - 8), view.sy(y), { ...text, align: "end" });
      }
    }
  }
}
