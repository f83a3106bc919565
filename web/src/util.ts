// Small things that everything uses: elements of lists, elements of the document, numbers as people read them.

/** The element that is known to be there. */
export function at<T>(list: ArrayLike<T>, i: number): T {
  return list[i] as T;
}

/**
 * An element with its properties, attributes and children. Text goes in as text, never as markup.
 * @param attributes "class", "on…" for listeners, anything else an attribute; false and undefined leave it out
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
 * A quantity with its unit in three digits: "16.8 MB", "989 TFLOP/s". Only axes are labelled with it; all that comes
 * from a program has its label in the data.
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

/** A duration given in nanoseconds. */
export function duration(ns: number) {
  if (ns === 0) return "0 s";
  const units = ["ns", "µs", "ms", "s"];
  const e = Math.min(3, Math.max(0, Math.floor(Math.log10(ns) / 3 + 1e-9)));
  return `${String(Number((ns / 1000 ** e).toPrecision(3)))} ${at(units, e)}`;
}

export function clamp(x: number, lo: number, hi: number) {
  return Math.max(lo, Math.min(hi, x));
}

/** Round steps between lo and hi, about count of them. */
export function ticks(lo: number, hi: number, count: number) {
  const raw = (hi - lo) / Math.max(1, count);
  if (!(raw > 0)) return [lo];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1) * power;
  const out: number[] = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi * (1 + 1e-12); i++) out.push(i * step);
  return out;
}
