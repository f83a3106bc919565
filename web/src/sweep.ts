// A sweep over numbers of devices: the time of a step and the cost of a token over devices, both axes logarithmic, each with the
// line of ideal scaling from the fewest devices.
import type { PlanResult } from "./data";
import { SvgPen } from "./pen";
import type { Theme } from "./theme";
import { at, duration, el } from "./util";

const size = { w: 480, h: 270, left: 74, right: 24, top: 16, bottom: 44 };

interface Series {
  name: string;
  value(r: PlanResult): number;
  label(r: PlanResult): string;
  /** What the value would be at n times the devices, were scaling ideal: its share of the first. */
  ideal(n: number): number;
}

const series: Series[] = [
  { name: "time of a step", value: (r) => r.time_ns, label: (r) => r.time_label, ideal: (n) => 1 / n },
  { name: "device time per token", value: (r) => r.device_ns_per_token, label: (r) => r.cost_label, ideal: () => 1 },
];

/** @param shown the index of the result whose plans the page lists */
export function sweepCharts(results: PlanResult[], shown: number, theme: Theme): HTMLElement {
  const charts = series.filter((s) => results.some((r) => s.value(r) > 0)).map((s) => chart(s, results, shown, theme));
  return el("div", { class: "charts" }, ...charts);
}

function chart(s: Series, results: PlanResult[], shown: number, theme: Theme): HTMLElement {
  const dots = results.map((r, i) => ({ r, i, x: Math.log10(r.devices), y: Math.log10(s.value(r)) })).filter((d) => s.value(d.r) > 0);
  const first = at(dots, 0);
  const ideal = dots.map((d) => ({ x: d.x, y: first.y + Math.log10(s.ideal(d.r.devices / first.r.devices)) }));
  const [x0, x1] = range(dots.map((d) => d.x));
  const [y0, y1] = range([...dots, ...ideal].map((d) => d.y));
  const sx = (x: number) => size.left + ((x - x0) / (x1 - x0)) * (size.w - size.left - size.right);
  const sy = (y: number) => size.h - size.bottom - ((y - y0) / (y1 - y0)) * (size.h - size.top - size.bottom);
  const pen = new SvgPen(size.w, size.h);
  const bottom = size.h - size.bottom;
  const muted = { size: 11, fill: theme.muted };
  for (const t of steps(y0, y1)) {
    pen.line([size.left, sy(t), size.w - size.right, sy(t)], { stroke: theme.line, width: 1 });
    pen.text(duration(10 ** t), size.left - 7, sy(t), { ...muted, align: "end" });
  }
  let free = -Infinity;
  for (const d of dots) {
    pen.line([sx(d.x), size.top, sx(d.x), bottom], { stroke: theme.line, width: 1 });
    if (sx(d.x) < free) continue;
    pen.text(String(d.r.devices), sx(d.x), bottom + 14, { ...muted, align: "middle" });
    free = sx(d.x) + 34;
  }
  pen.rect(size.left, size.top, size.w - size.left - size.right, bottom - size.top, { stroke: theme.edge, width: 1 });
  pen.text("devices", (size.left + size.w - size.right) / 2, size.h - 10, { size: 12, fill: theme.text, align: "middle" });
  pen.line(ideal.flatMap((d) => [sx(d.x), sy(d.y)]), { stroke: theme.muted, width: 1.5, dash: [5, 4] });
  pen.line(dots.flatMap((d) => [sx(d.x), sy(d.y)]), { stroke: theme.marks["compute"]?.color ?? theme.text, width: 2 });
  for (const d of dots) pen.circle(sx(d.x), sy(d.y), d.i === shown ? 6 : 4, { fill: d.i === shown ? theme.accent : (theme.marks["compute"]?.color ?? theme.text), stroke: theme.background, width: 1.5 });
  const words = dots.map((d) => `${d.r.devices} devices ${s.label(d.r)}`).join(", ");
  pen.root.setAttribute("aria-label", `${s.name} over devices: ${words}`);
  return el("figure", {}, el("figcaption", {}, s.name, el("span", { class: "note" }, " · dashed: ideal scaling")), pen.root);
}

/** The range of values with some room at both ends. */
function range(values: number[]): [number, number] {
  const [lo, hi] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(0.06, (hi - lo) * 0.08);
  return [lo - room, hi + room];
}

/** The logarithms of round numbers between two others: the fewer decades there are, the more of each. */
function steps(lo: number, hi: number): number[] {
  const out: number[] = [];
  const wide = hi - lo;
  const round = wide > 2.5 ? [1] : wide > 1 ? [1, 2, 5] : wide > 0.4 ? [1, 1.5, 2, 3, 4, 6, 8] : [1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9];
  for (let e = Math.floor(lo); e <= hi; e++) {
    for (const m of round) {
      const t = e + Math.log10(m);
      if (t >= lo && t <= hi) out.push(t);
    }
  }
  return out;
}
