// Two pens with which every figure is drawn: one on a canvas, for the screen, and one that makes SVG, for paper.

/**
 * @typedef {object} Stroke
 * @property {string} [fill]
 * @property {string} [stroke]
 * @property {number} [width]
 * @property {number[]} [dash]
 * @property {number} [opacity]
 * @property {number} [radius] of a rectangle's corners
 */

/**
 * @typedef {object} Lettering
 * @property {number} size
 * @property {string} fill
 * @property {"start" | "middle" | "end"} [align]
 * @property {boolean} [bold]
 * @property {boolean} [mono]
 * @property {number} [opacity]
 * @property {number} [turn] degrees
 * @property {string} [halo] colour around the letters
 */

/**
 * @typedef {object} Pen
 * @property {(x: number, y: number, w: number, h: number, s: Stroke) => void} rect
 * @property {(points: number[], s: Stroke) => void} polygon
 * @property {(points: number[], s: Stroke) => void} line
 * @property {(x: number, y: number, r: number, s: Stroke) => void} circle
 * @property {(path: Path, k: number, dx: number, dy: number, s: Stroke) => void} path scaled by k, then moved
 * @property {(paths: Path[], k: number, dx: number, dy: number, s: Stroke, rough: boolean) => void} paths in one go; rough
 *   ones with straight lines for curves
 * @property {(text: string, x: number, y: number, l: Lettering) => void} text its middle at the height y
 * @property {(x: number, y: number, w: number, h: number) => void} clip
 * @property {() => void} unclip
 */

const sansFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif';
const monoFamily = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace';

/**
 * @param {Lettering} l
 */
function fontOf(l) {
  return `${l.bold ? "600 " : ""}${l.size.toFixed(2)}px ${l.mono ? monoFamily : sansFamily}`;
}

/** @implements {Pen} */
class CanvasPen {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.context = context;
  }

  /** @param {Stroke} s */
  paint(s) {
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

  /** @type {Pen["rect"]} */
  rect(x, y, w, h, s) {
    this.context.beginPath();
    if (s.radius) this.context.roundRect(x, y, w, h, Math.min(s.radius, w / 2, h / 2));
    else this.context.rect(x, y, w, h);
    this.paint(s);
  }

  /** @type {Pen["polygon"]} */
  polygon(points, s) {
    this.trace(points);
    this.context.closePath();
    this.paint(s);
  }

  /** @type {Pen["line"]} */
  line(points, s) {
    this.trace(points);
    this.paint(s);
  }

  /** @param {number[]} points */
  trace(points) {
    this.context.beginPath();
    for (let i = 0; i < points.length; i += 2) this.context.lineTo(at(points, i), at(points, i + 1));
  }

  /** @type {Pen["circle"]} */
  circle(x, y, r, s) {
    this.context.beginPath();
    this.context.arc(x, y, r, 0, 2 * Math.PI);
    this.paint(s);
  }

  /** @type {Pen["path"]} */
  path(path, k, dx, dy, s) {
    this.paths([path], k, dx, dy, s, false);
  }

  /** @type {Pen["paths"]} */
  paths(paths, k, dx, dy, s, rough) {
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

  /** @type {Pen["text"]} */
  text(text, x, y, l) {
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

  /** @type {Pen["clip"]} */
  clip(x, y, w, h) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, w, h);
    this.context.clip();
  }

  unclip() {
    this.context.restore();
  }
}

/** @implements {Pen} */
class SvgPen {
  /**
   * @param {number} width
   * @param {number} height
   */
  constructor(width, height) {
    this.root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    this.top = this.root;
    this.clips = 0;
  }

  /**
   * @param {string} tag
   * @param {Record<string, string | number | undefined>} attributes
   * @param {Stroke} s
   */
  add(tag, attributes, s) {
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

  /** @type {Pen["rect"]} */
  rect(x, y, w, h, s) {
    const r = s.radius ? Math.min(s.radius, w / 2, h / 2) : 0;
    this.add("rect", { x: round(x), y: round(y), width: round(w), height: round(h), rx: r ? round(r) : undefined }, s);
  }

  /** @type {Pen["polygon"]} */
  polygon(points, s) {
    this.add("polygon", { points: points.map(round).join(" ") }, s);
  }

  /** @type {Pen["line"]} */
  line(points, s) {
    this.add("polyline", { points: points.map(round).join(" ") }, s);
  }

  /** @type {Pen["circle"]} */
  circle(x, y, r, s) {
    this.add("circle", { cx: round(x), cy: round(y), r: round(r) }, s);
  }

  /** @type {Pen["path"]} */
  path(path, k, dx, dy, s) {
    const d = path.map(([letter, ...n]) => letter + n.map((v, i) => round(v * k + (i % 2 === 0 ? dx : dy))).join(" ")).join("");
    this.add("path", { d }, s);
  }

  /** @type {Pen["paths"]} */
  paths(paths, k, dx, dy, s) {
    this.path(paths.flat(), k, dx, dy, s);
  }

  /** @type {Pen["text"]} */
  text(text, x, y, l) {
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

  /** @type {Pen["clip"]} */
  clip(x, y, w, h) {
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

/** @param {number} x */
function round(x) {
  return Math.round(x * 100) / 100;
}

/** @type {CanvasRenderingContext2D | null | undefined} */
let ruler;
/** @type {Map<string, number>} */
const measured = new Map();

/**
 * Width of a text.
 * @param {string} text
 * @param {Lettering} l
 */
function textWidth(text, l) {
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

/**
 * The text cut to a width, with an ellipsis where something is missing.
 * @param {string} text
 * @param {Lettering} l
 * @param {number} width
 */
function fitText(text, l, width) {
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
