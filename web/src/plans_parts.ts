// Parts of the page of plans: the bar of a plan's time, what its stages hold, and the times of its stages.
import type { PlanResult, PlanRow } from "./data";
import { SvgPen } from "./pen";
import { partsOf, planTitle } from "./pipeline_draw";
import { markOf, type Theme } from "./theme";
import { el } from "./util";

/** @param most the time that fills the width */
export function timeBar(p: PlanRow, most: number, theme: Theme): Node {
  const [w, h] = [130, 14];
  const pen = new SvgPen(w, h);
  let x = 0;
  for (const part of partsOf(p)) {
    const wide = (part.ns / Math.max(1, most)) * w;
    const mark = markOf(theme, part.cls);
    pen.rect(x, 0.5, wide, h - 1, part.cls === "idle" ? { fill: mark.fill, stroke: mark.color, width: 1 } : { fill: mark.color });
    x += wide;
  }
  pen.root.setAttribute("class", "bar");
  const words = partsOf(p).map((part) => `${part.name} ${part.label}`).join(", ");
  pen.root.setAttribute("aria-label", words);
  return el("span", { title: words }, pen.root);
}

/** What the devices of each stage hold, against the limit. */
export function memoryTable(p: PlanRow, result: PlanResult, theme: Theme): HTMLElement {
  const stages = p.stages ?? [];
  const most = Math.max(result.memory_limit_bytes, p.memory_bytes, ...stages.map((s) => s.memory_bytes), 1);
  const bar = (bytes: number) => {
    const [w, h] = [220, 14];
    const pen = new SvgPen(w, h);
    const over = result.memory_limit_bytes > 0 && bytes > result.memory_limit_bytes;
    pen.rect(0, 1, (bytes / most) * (w - 2), h - 2, { fill: over ? theme.warning : markOf(theme, "compute").color });
    const at = (result.memory_limit_bytes / most) * (w - 2);
    if (result.memory_limit_bytes > 0) pen.line([at, 0, at, h], { stroke: theme.text, width: 2 });
    pen.root.setAttribute("class", "bar");
    pen.root.setAttribute("aria-hidden", "true");
    return pen.root;
  };
  const rows = stages.map((s, i) => el("tr", {}, el("th", { scope: "row" }, `stage ${i}`), el("td", { class: "number" }, s.memory_label), el("td", { class: "number" }, s.memory_share_label), el("td", {}, bar(s.memory_bytes))));
  const total = el("tr", {}, el("th", { scope: "row" }, "the device that holds most"), el("td", { class: "number" }, p.memory_label), el("td", { class: "number" }, p.memory_share_label), el("td", {}, bar(p.memory_bytes)));
  const parts = (p.memory_parts ?? []).map((part) => `${part.name} ${part.label}`).join(", ");
  const head = ["", "Held", "Of the limit", ""].map((name, i) => el("th", { scope: "col", class: i === 1 || i === 2 ? "number" : undefined }, name));
  return el("section", { class: "memory" }, el("h2", {}, `Memory · ${planTitle(p)}`),
    el("table", {}, el("caption", {}, `The line is the limit of a device, ${result.memory_limit_label}. ${parts === "" ? "" : `Of the device that holds most: ${parts}.`}`), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, total, ...rows)));
}

/** The times of the stages, for one micro-batch and once in a step. */
export function stageTable(p: PlanRow, reveal: (stage: number) => void): HTMLElement {
  const stages = p.stages ?? [];
  const head = ["Stage", "Layers", "Forward", "Backward", "Of it weights", "Transfer", "Once"].map((name, i) => el("th", { scope: "col", class: i > 0 ? "number" : undefined }, name));
  const rows = stages.map((s, i) => {
    const name = s.line > 0 ? el("button", { type: "button", title: "Show in the text", onclick: () => { reveal(i); } }, `${i}, line ${s.line}`) : String(i);
    const cells = [s.layers > 0 ? String(s.layers) : "", s.forward_label, s.backward_label, s.weight_label, s.transfer_label, s.once_label].map((text) => el("td", { class: "number" }, text));
    return el("tr", {}, el("th", { scope: "row" }, name), ...cells);
  });
  const notes = [...(p.names ?? []), ...(p.why ? [p.why] : [])];
  return el("section", { class: "stages" }, el("h2", {}, `Stages · ${planTitle(p)}`),
    el("ul", {}, ...notes.map((n) => el("li", {}, n))),
    el("table", {}, el("caption", {}, "Predicted times of one micro-batch, and once in a step"), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)));
}
