// Two back ends for drawing: a canvas for the screen, SVG for print.
import type { Path } from "./layout";
import { at, svg } from "./util";
import type { Box } from "./view";

export interface Stroke {
  fill?: string;
  stroke?: string;
  width?: number;
  dash?: number[];
  opacity?: number;
  /** Corner radius of a rectangle. */
  radius?: number;
}

interface Lettering {
  size: number;
  fill: string;
  align?: "start" | "middle" | "end";
  bold?: boolean;
  mono?: boolean;
  opacity?: number;
  /** Rotation in degrees. */
  turn?: number;
  /** Colour of an outline around the letters. */
  halo?: string | undefined;
}

export interface Pen {
  rect(x: number, y: number, w: number, h: number, s: Stroke): void;
  polygon(points: number[], s: Stroke): void;
  line(points: number[], s: Stroke): void;
  circle(x: number, y: number, r: number, s: Stroke): void;
  /** Draws a path scaled by k, then translated. */
  path(path: Path, k: number, dx: number, dy: number, s: Stroke): void;
  /** Draws paths as one operation; rough replaces curves by straight lines. */
  paths(paths: Path[], k: number, dx: number, dy: number, s: Stroke, rough: boolean): void;
  /** Draws text that is vertically centred at y. */
  text(text: string, x: number, y: number, l: Lettering): void;
  clip(x: number, y: number, w: number, h: number): void;
  unclip(): void;
}

const sansFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif';
const monoFamily = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace';

function fontOf(l: Lettering) {
  return `${l.bold ? "600 " : ""}${l.size.toFixed(2)}px ${l.mono ? monoFamily : sansFamily}`;
}

export class CanvasPen implements Pen {
  constructor(readonly context: CanvasRenderingContext2D) {}

  paint(s: Stroke) {
    const c = this.context;
    c.globalAlpha = s.opacity ?? 1;
    if (s.fill) {
      c.fillStyle = s.fill;
      c.fill();
    }
    if (s.stroke) {
      c.strokeStyle = s.stroke;
      c.lineWidth = s.width ?? 1;
      c.setLineDash(s.dash ?? []);
      c.stroke();
    }
  }

  rect(x: number, y: number, w: number, h: number, s: Stroke): void {
    this.context.beginPath();
    if (s.radius) this.context.roundRect(x, y, w, h, Math.min(s.radius, w / 2, h / 2));
    else this.context.rect(x, y, w, h);
    this.paint(s);
  }

  polygon(points: number[], s: Stroke): void {
    this.trace(points);
    this.context.closePath();
    this.paint(s);
  }

  line(points: number[], s: Stroke): void {
    this.trace(points);
    this.paint(s);
  }

  trace(points: number[]) {
    this.context.beginPath();
    for (let i = 0; i < points.length; i += 2) this.context.lineTo(at(points, i), at(points, i + 1));
  }

  circle(x: number, y: number, r: number, s: Stroke): void {
    this.context.beginPath();
    this.context.arc(x, y, r, 0, 2 * Math.PI);
    this.paint(s);
  }

  path(path: Path, k: number, dx: number, dy: number, s: Stroke): void {
    this.paths([path], k, dx, dy, s, false);
  }

  paths(paths: Path[], k: number, dx: number, dy: number, s: Stroke, rough: boolean): void {
    const c = this.context;
    c.beginPath();
    for (const path of paths) {
      for (const p of path) {
        if (p[0] === "C") {
          if (rough) c.lineTo(p[5] * k + dx, p[6] * k + dy);
          else c.bezierCurveTo(p[1] * k + dx, p[2] * k + dy, p[3] * k + dx, p[4] * k + dy, p[5] * k + dx, p[6] * k + dy);
        } else if (p[0] === "M") c.moveTo(p[1] * k + dx, p[2] * k + dy);
        else c.lineTo(p[1] * k + dx, p[2] * k + dy);
      }
    }
    this.paint(s);
  }

  text(text: string, x: number, y: number, l: Lettering): void {
    const c = this.context;
    c.font = fontOf(l);
    c.textAlign = l.align === "middle" ? "center" : (l.align ?? "start");
    c.textBaseline = "middle";
    c.globalAlpha = l.opacity ?? 1;
    if (l.turn) {
      c.save();
      c.translate(x, y);
      c.rotate((l.turn * Math.PI) / 180);
      x = 0;
      y = 0;
    }
    if (l.halo) {
      c.strokeStyle = l.halo;
      c.lineWidth = 4;
      c.lineJoin = "round";
      c.setLineDash([]);
      c.strokeText(text, x, y);
    }
    c.fillStyle = l.fill;
    c.fillText(text, x, y);
    if (l.turn) c.restore();
  }

  clip(x: number, y: number, w: number, h: number): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, w, h);
    this.context.clip();
  }

  unclip() {
    this.context.restore();
  }
}

export class SvgPen implements Pen {
  readonly root: SVGElement;
  top: SVGElement;
  clips = 0;

  constructor(width: number, height: number) {
    this.root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    this.top = this.root;
  }

  add(tag: string, attributes: Record<string, string | number | undefined>, s: Stroke) {
    this.top.append(
      svg(tag, {
        ...attributes,
        fill: s.fill ?? "none",
        stroke: s.stroke,
        "stroke-width": s.stroke ? round(s.width ?? 1) : undefined,
        "stroke-dasharray": s.dash && s.dash.length > 0 ? s.dash.map(round).join(" ") : undefined,
        opacity: s.opacity === undefined || s.opacity === 1 ? undefined : s.opacity,
      }),
    );
  }

  rect(x: number, y: number, w: number, h: number, s: Stroke): void {
    const r = s.radius ? Math.min(s.radius, w / 2, h / 2) : 0;
    this.add("rect", { x: round(x), y: round(y), width: round(w), height: round(h), rx: r ? round(r) : undefined }, s);
  }

  polygon(points: number[], s: Stroke): void {
    this.add("polygon", { points: points.map(round).join(" ") }, s);
  }

  line(points: number[], s: Stroke): void {
    this.add("polyline", { points: points.map(round).join(" ") }, s);
  }

  circle(x: number, y: number, r: number, s: Stroke): void {
    this.add("circle", { cx: round(x), cy: round(y), r: round(r) }, s);
  }

  path(path: Path, k: number, dx: number, dy: number, s: Stroke): void {
    const d = path.map(([letter, ...n]) => letter + n.map((v, i) => round(v * k + (i % 2 === 0 ? dx : dy))).join(" ")).join("");
    this.add("path", { d }, s);
  }

  paths(paths: Path[], k: number, dx: number, dy: number, s: Stroke): void {
    this.path(paths.flat(), k, dx, dy, s);
  }

  text(text: string, x: number, y: number, l: Lettering): void {
    const e = svg("text", {
      x: round(x),
      y: round(y),
      fill: l.fill,
      "font-size": round(l.size),
      "font-weight": l.bold ? 600 : undefined,
      "font-family": l.mono ? monoFamily : sansFamily,
      "text-anchor": l.align,
      "dominant-baseline": "central",
      opacity: l.opacity === undefined || l.opacity === 1 ? undefined : l.opacity,
      transform: l.turn ? `rotate(${l.turn} ${round(x)} ${round(y)})` : undefined,
      stroke: l.halo,
      "stroke-width": l.halo ? 3 : undefined,
      "paint-order": l.halo ? "stroke" : undefined,
    });
    e.textContent = text;
    this.top.append(e);
  }

  clip(x: number, y: number, w: number, h: number): void {
    const id = `clip${this.clips++}`;
    const clip = svg("clipPath", { id });
    clip.append(svg("rect", { x: round(x), y: round(y), width: round(w), height: round(h) }));
    const group = svg("g", { "clip-path": `url(#${id})` });
    this.root.append(clip, group);
    this.top = group;
  }

  unclip() {
    this.top = this.root;
  }
}

function round(x: number) {
  return Math.round(x * 100) / 100;
}

let ruler: CanvasRenderingContext2D | null | undefined;
const measured = new Map<string, number>();

/** The width of a text in pixels. */
export function textWidth(text: string, l: Lettering) {
  const font = fontOf(l);
  const key = font + text;
  let width = measured.get(key);
  if (width !== undefined) return width;
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return text.length * l.size * 0.6;
  ruler.font = font;
  width = ruler.measureText(text).width;
  if (measured.size > 50_000) measured.clear();
  measured.set(key, width);
  return width;
}

/** The text, shortened with an ellipsis if it is wider than a width. */
export function fitText(text: string, l: Lettering, width: number) {
  if (textWidth(text, l) <= width) return text;
  let lo = 0;
  let hi = Math.min(text.length, Math.ceil((width / l.size) * 4) + 1);
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (textWidth(`${text.slice(0, mid)}…`, l) <= width) lo = mid;
    else hi = mid - 1;
  }
  return lo === 0 ? "" : `${text.slice(0, lo).trimEnd()}…`;
}

/** Hatches the part of a rectangle that is on the screen. */
export function hatch(pen: Pen, x: number, y: number, w: number, h: number, area: Box, s: Stroke, rising: boolean) {
  const left = Math.max(x, area.x);
  const right = Math.min(x + w, area.x + area.w);
  const top = Math.max(y, area.y);
  const bottom = Math.min(y + h, area.y + area.h);
  if (right - left < 3 || bottom - top < 3) return;
  const high = bottom - top;
  const path: Path = [];
  const gap = 9;
  for (let c = Math.ceil(left / gap) * gap; c < right + high; c += gap) {
    // The line x - left' + t = c with t from 0 at the top to high at the bottom.
    const t0 = Math.max(0, c - right);
    const t1 = Math.min(high, c - left);
    if (t1 <= t0) continue;
    path.push(["M", c - t0, rising ? top + t0 : bottom - t0], ["L", c - t1, rising ? top + t1 : bottom - t1]);
  }
  if (path.length > 0) pen.path(path, 1, 0, 0, s);
}
