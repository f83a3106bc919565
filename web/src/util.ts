// Helpers: list access, document elements, formatted numbers.

/** The element at an index that is known to be in range. */
export function at<T>(list: ArrayLike<T>, i: number): T {
  return list[i] as T;
}

/**
 * Creates an element with its attributes, listeners and children. Text is inserted as text, never as markup.
 * @param attributes functions are listeners ("onclick"), everything else attributes; false and undefined are omitted
 */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number | boolean | undefined | ((event: Event) => void)> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(name, value === true ? "" : String(value));
  }
  e.append(...children);
  return e;
}

const svgSpace = "http://www.w3.org/2000/svg";

export function svg(tag: string, attributes: Record<string, string | number | undefined> = {}): SVGElement {
  const e = document.createElementNS(svgSpace, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) e.setAttribute(name, String(value));
  }
  return e;
}

const prefixes = ["", "k", "M", "G", "T", "P", "E"];

/**
 * A quantity in three digits with its unit: "16.8 MB", "989 TFLOP/s". It labels axes only: numbers of the program have their
 * labels in the data.
 */
export function quantity(x: number, unit: string) {
  if (x === 0) return `0 ${unit}`;
  if (Math.abs(x) < 1 && unit !== "s") return `${String(Number(x.toPrecision(3)))} ${unit}`;
  let e = Math.max(0, Math.floor(Math.log10(Math.abs(x)) / 3));
  let m = Number((x / 1000 ** e).toPrecision(3));
  if (Math.abs(m) >= 1000) {
    m /= 1000;
    e++;
  }
  return `${String(m)} ${prefixes[e] ?? ""}${unit}`;
}

/** A duration in nanoseconds, with a suitable unit. */
export function duration(ns: number) {
  if (ns === 0) return "0 s";
  const units = ["ns", "µs", "ms", "s"];
  const e = Math.min(3, Math.max(0, Math.floor(Math.log10(ns) / 3 + 1e-9)));
  return `${String(Number((ns / 1000 ** e).toPrecision(3)))} ${at(units, e)}`;
}

export function clamp(x: number, lo: number, hi: number) {
  return Math.max(lo, Math.min(hi, x));
}

/** About count round numbers between lo and hi. */
export function ticks(lo: number, hi: number, count: number) {
  const raw = (hi - lo) / Math.max(1, count);
  if (!(raw > 0)) return [lo];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1) * power;
  const out: number[] = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi * (1 + 1e-12); i++) out.push(i * step);
  return out;
}
