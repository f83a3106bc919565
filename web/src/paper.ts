// Printing: the whole figure in print colours, the totals, and a table of the most expensive items.
import type { Figure } from "./figure";
import { markPicture, totalRows } from "./header";
import { SvgPen } from "./pen";
import type { State } from "./state";
import { markOf, paperTheme } from "./theme";
import { at, el } from "./util";
import { View } from "./view";

const paperRows = 24;

export function printOnPaper(frame: State, paper: HTMLElement) {
  window.addEventListener("beforeprint", () => {
    paper.replaceChildren(...paperContent(frame));
  });
  window.addEventListener("afterprint", () => {
    paper.replaceChildren();
  });
}

function paperContent(frame: State): HTMLElement[] {
  const { figure, data } = frame;
  const totals = totalRows(data);
  const legend = el("p", { class: "legend" });
  for (const cls of figure.classes) {
    const mark = markOf(paperTheme, cls);
    legend.append(el("span", {}, markPicture(mark), mark.name));
  }
  legend.append(el("span", { class: "note" }, figure.note));
  const parts: HTMLElement[] = [
    el("h1", {}, `${figure.name} · ${data.title}`),
    el("p", { class: "file" }, data.file),
    el("dl", {}, ...totals.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    legend,
  ];
  if (figure.empty) parts.push(el("p", {}, figure.empty));
  else parts.push(el("figure", {}, paperFigure(frame)));
  parts.push(...(figure.notes?.(paperTheme) ?? []));
  parts.push(paperTable(figure));
  return parts;
}

function paperFigure(frame: State) {
  const { figure, look } = frame;
  const world = figure.world();
  const long = figure.uniform > 0 && world.h > world.w * 1.3;
  const [w, h] = figure.uniform > 0 ? [long ? 760 : 1100, long ? 1020 : Math.max(160, Math.min(700, (1100 * world.h) / Math.max(1, world.w)))] : [1100, 620];
  const pen = new SvgPen(w, h);
  const m = figure.margins(w, h);
  const view = new View();
  view.area = { x: m.left, y: m.top, w: w - m.left - m.right, h: h - m.top - m.bottom };
  view.fit(world, figure.uniform);
  figure.draw(pen, view, { theme: paperTheme, selected: -1, hover: -1, hidden: look.hidden, found: null, paper: true });
  return pen.root;
}

function paperTable(figure: Figure) {
  const order = figure.items.map((_, i) => i).sort((a, b) => at(figure.items, b).weight - at(figure.items, a).weight || a - b);
  const rows = order.filter((i) => at(figure.items, i).weight > -Infinity).slice(0, paperRows);
  const body = rows.map((i) =>
    el("tr", {}, ...figure.columns.map((c) => el("td", { class: c.numeric ? "number" : undefined }, c.text(i)))),
  );
  const head = el("tr", {}, ...figure.columns.map((c) => el("th", { scope: "col", class: c.numeric ? "number" : undefined }, c.name)));
  const caption = rows.length < figure.items.length ? `The first ${rows.length} of ${figure.items.length} rows` : "";
  return el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, ...body));
}
