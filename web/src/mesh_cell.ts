// A device of the mesh: the tensor with the device's piece filled in, and the elements that it has.
import type { MeshDim, MeshLayout, MeshValue } from "./data";
import type { Cell } from "./mesh_grid";
import { fitText, hatch, type Pen, textWidth } from "./pen";
import type { Mark, Theme } from "./theme";
import { at, clamp } from "./util";
import type { View } from "./view";

const picture = { x: 10, y: 26, w: 52, h: 48 };
const mostRanges = 4;

export function drawCell(pen: Pen, view: View, theme: Theme, cell: Cell, value: MeshValue | undefined, layout: MeshLayout | undefined, mark: Mark) {
  const k = view.kx;
  const [x, y, w, h] = [view.sx(cell.x), view.sy(cell.y), cell.w * k, cell.h * k];
  pen.rect(x, y, w, h, { fill: theme.surface, stroke: theme.edge, width: 1, radius: 5 * k });
  const small = { size: 11 * k, fill: theme.muted };
  const readable = 11 * k >= 5;
  if (readable) pen.text(fitText(`device ${cell.device}`, { ...small, bold: true }, w - 16 * k), x + 10 * k, y + 13 * k, { ...small, bold: true });
  if (!value) return;
  const dims = layout?.dims ?? [];
  if (layout) drawPiece(pen, view, cell, dims, mark, theme);
  if (!readable) return;
  const mono = { size: 11.5 * k, fill: theme.text, mono: true };
  const left = x + (layout ? picture.x + picture.w + 10 : picture.x) * k;
  const room = x + w - 6 * k - left;
  const lines = layout ? dims.map((d) => partOf(d, cell).label) : [value.piece];
  if (layout && lines.length === 0) lines.push("scalar");
  // Of many dimensions those that are divided.
  const shown = lines.length > mostRanges ? lines.filter((_, i) => dims[i]?.axes).slice(0, mostRanges) : lines;
  const step = shown.length > 3 ? 13 : 15;
  const top = y + (picture.y + picture.h / 2 - ((shown.length - 1) * step) / 2) * k;
  shown.forEach((line, i) => {
    const divided = lines.length > mostRanges || Boolean(dims[i]?.axes);
    const style = { ...mono, bold: divided, fill: divided ? theme.text : theme.muted };
    style.size *= clamp(room / textWidth(line, style), 0.75, 1); // a long range in smaller letters
    pen.text(fitText(line, style, room), left, top + i * step * k, style);
  });
  const [note, warn] = noteOf(cell, value, layout);
  const style = { ...small, fill: warn ? theme.warning : theme.muted };
  pen.text(fitText(note, style, w - 16 * k), x + 10 * k, y + 90 * k, style);
}

function partOf(d: MeshDim, cell: Cell) {
  return d.parts?.[d.at?.[cell.device] ?? 0] ?? { start: 0, end: d.size, padding: 0, label: d.label };
}

/** What else there is to say of the piece of a device, and whether it is a warning. */
function noteOf(cell: Cell, value: MeshValue, layout: MeshLayout | undefined): [string, boolean] {
  if (!layout) return ["of its own", false];
  const dims = layout.dims ?? [];
  const padded = dims.map((d, i) => ({ i, n: partOf(d, cell).padding })).filter(({ n }) => n > 0);
  if (padded.length > 0) return [`padded: ${padded.map(({ i, n }) => `${n} in dim ${i}`).join(", ")}`, true];
  if (value.partial) return [at(value.partial.split(" along "), 0), true];
  const mine = layout.piece?.[cell.device];
  const same: number[] = [];
  (layout.piece ?? []).forEach((p, device) => { if (p === mine && device !== cell.device) same.push(device); });
  if (same.length === 0) return ["", false];
  if (layout.pieces === 1) return ["whole on all devices", false];
  return [`same as ${same.slice(0, 4).join(", ")}${same.length > 4 ? ", …" : ""}`, false];
}

/** The tensor as a rectangle, the piece in it; of more than two dimensions those that are divided, else the last. */
function drawPiece(pen: Pen, view: View, cell: Cell, dims: MeshDim[], mark: Mark, theme: Theme) {
  const k = view.kx;
  const [x, y, w, h] = [view.sx(cell.x + picture.x), view.sy(cell.y + picture.y), picture.w * k, picture.h * k];
  const divided = dims.map((_, i) => i).filter((i) => at(dims, i).axes !== "");
  const others = dims.map((_, i) => i).filter((i) => at(dims, i).axes === "").reverse();
  const [first, second] = [...divided, ...others].slice(0, 2).sort((a, b) => a - b);
  const along = (i: number | undefined) => {
    const d = i === undefined ? undefined : dims[i];
    if (!d) return { from: 0, to: 1, pad: 1 };
    const part = partOf(d, cell);
    // Padding stands behind the elements: the picture has room for all of it.
    const all = Math.max(d.size, ...(d.parts ?? []).map((p) => p.end + p.padding), 1);
    return { from: part.start / all, to: part.end / all, pad: Math.min(1, (part.end + part.padding) / all) };
  };
  const [rows, columns] = second === undefined ? [{ from: 0, to: 1, pad: 1 }, along(first)] : [along(first), along(second)];
  const high = second === undefined && first !== undefined ? h * 0.34 : h;
  const top = y + (h - high) / 2;
  pen.rect(x, top, w, high, { fill: theme.background, stroke: theme.edge, width: 1 });
  const [px, py] = [x + columns.from * w, top + rows.from * high];
  const [pw, ph] = [(columns.pad - columns.from) * w, (rows.pad - rows.from) * high];
  if (columns.pad > columns.to || rows.pad > rows.to) {
    hatch(pen, px, py, pw, ph, view.area, { stroke: theme.warning, width: 1 }, true);
    pen.rect(px, py, pw, ph, { stroke: theme.warning, width: 1, dash: [3, 2] });
  }
  const [ew, eh] = [(columns.to - columns.from) * w, (rows.to - rows.from) * high];
  if (ew > 0 && eh > 0) pen.rect(px, py, Math.max(1, ew), Math.max(1, eh), { fill: mark.color });
}
