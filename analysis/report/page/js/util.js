// Small things that everything uses: elements of lists, elements of the document, numbers as people read them.

/**
 * The element that is known to be there.
 * @template T
 * @param {ArrayLike<T>} list
 * @param {number} i
 * @returns {T}
 */
function at(list, i) {
  return /** @type {T} */ (list[i]);
}

/**
 * An element with its properties, attributes and children. Text goes in as text, never as markup.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | undefined | ((event: Event) => void)>} [attributes] "class", "on…"
 *   for listeners, anything else an attribute; false and undefined leave it out
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(name, value === true ? "" : String(value));
  }
  e.append(...children);
  return e;
}

const svgSpace = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Record<string, string | number | undefined>} [attributes]
 * @returns {SVGElement}
 */
function svg(tag, attributes = {}) {
  const e = /** @type {SVGElement} */ (document.createElementNS(svgSpace, tag));
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) e.setAttribute(name, String(value));
  }
  return e;
}

const prefixes = ["", "k", "M", "G", "T", "P", "E"];

/**
 * A quantity with its unit in three digits: "16.8 MB", "989 TFLOP/s". Only axes are labelled with it; all that comes
 * from a program has its label in the data.
 * @param {number} x
 * @param {string} unit
 */
function quantity(x, unit) {
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

/**
 * A duration given in nanoseconds.
 * @param {number} ns
 */
function duration(ns) {
  if (ns === 0) return "0 s";
  const units = ["ns", "µs", "ms", "s"];
  const e = Math.min(3, Math.max(0, Math.floor(Math.log10(ns) / 3 + 1e-9)));
  return `${String(Number((ns / 1000 ** e).toPrecision(3)))} ${at(units, e)}`;
}

/**
 * @param {number} x
 * @param {number} lo
 * @param {number} hi
 */
function clamp(x, lo, hi) {
  return Math.max(lo, Math.min(hi, x));
}

/**
 * Round steps between lo and hi, about count of them.
 * @param {number} lo
 * @param {number} hi
 * @param {number} count
 */
function ticks(lo, hi, count) {
  const raw = (hi - lo) / Math.max(1, count);
  if (!(raw > 0)) return [lo];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1) * power;
  /** @type {number[]} */
  const out = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi * (1 + 1e-12); i++) out.push(i * step);
  return out;
}
