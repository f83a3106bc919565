// All items as a table, for sorting by numbers and for use without a pointer or with a screen reader.
import type { Column } from "./figure";
import { markPicture } from "./header";
import type { State } from "./state";
import { markOf, type Theme } from "./theme";
import { at, el } from "./util";

export class Table {
  shown = false;
  fresh = false;
  sorted = -1;
  down = true;
  readonly rows = new Map<number, HTMLElement>();
  readonly element: HTMLElement;

  constructor(readonly frame: State) {
    this.element = el("section", { id: "table", "aria-label": "Table" });
    this.element.hidden = true;
    this.element.addEventListener("keydown", (event) => {
      this.key(event);
    });
  }

  show(shown: boolean) {
    this.shown = shown;
    this.element.hidden = !shown;
    if (!shown) return;
    if (!this.fresh) this.build();
    const chosen = this.rows.get(this.frame.look.selected) ?? this.rows.values().next().value;
    chosen?.querySelector("button")?.focus();
  }

  /** Marks the rows as out of date. */
  stale() {
    this.fresh = false;
    if (this.shown) this.build();
  }

  build() {
    this.fresh = true;
    const { figure, look } = this.frame;
    const within = this.element.contains(document.activeElement);
    const order = this.order();
    const head = el("tr", {}, ...figure.columns.map((c, i) => this.heading(c, i)));
    this.rows.clear();
    const body = el("tbody", {});
    const { groups } = this.frame.search;
    let last: number | undefined;
    for (const i of groups.by === "" ? order : order.sort((a, b) => this.group(a) - this.group(b))) {
      const group = this.group(i);
      if (groups.by !== "" && group !== last) body.append(groupRow(figure.columns.length, groups.heading(group)));
      last = group;
      const item = at(figure.items, i);
      const row = el("tr", { "data-item": i });
      figure.columns.forEach((column, c) => {
        const text = column.text(i);
        if (c > 0) row.append(el("td", { class: column.numeric ? "number" : undefined, title: text.length > 24 ? text : undefined }, text));
        else row.append(el("th", { scope: "row" }, classMark(this.frame.theme, item.cls), el("button", { type: "button", title: "Show in the text", onclick: () => { this.frame.select(i); this.frame.reveal(i); } }, text)));
      });
      this.rows.set(i, row);
      body.append(row);
    }
    const caption = el("caption", {}, `${figure.name}: ${order.length} rows. Enter shows a row in the text, t shows the figure.`);
    this.element.replaceChildren(el("table", {}, caption, el("thead", {}, head), body));
    this.mark(look.selected);
    if (within) this.rows.values().next().value?.querySelector("button")?.focus();
  }

  /** The number of the first group of item i; items in none stand behind the others. */
  group(i: number) {
    const { groups } = this.frame.search;
    return groups.of(at(this.frame.figure.items, i).place)[0] ?? groups.all.length;
  }

  heading(column: Column, i: number) {
    const sorted = this.sorted === i ? (this.down ? "descending" : "ascending") : "none";
    const button = el("button", { type: "button" }, column.name, el("span", { "aria-hidden": "true" }, sorted === "none" ? "" : this.down ? " ▾" : " ▴"));
    button.addEventListener("click", () => {
      if (this.sorted === i) this.down = !this.down;
      else this.down = column.numeric ?? false;
      this.sorted = i;
      this.build();
      const again = this.element.querySelectorAll("thead button").item(i);
      if (again instanceof HTMLElement) again.focus();
    });
    return el("th", { scope: "col", "aria-sort": sorted, class: column.numeric ? "number" : undefined }, button);
  }

  /** The visible items in the order of the text or of the sorted column. */
  order() {
    const { figure, look } = this.frame;
    const all = figure.items.map((_, i) => i).filter((i) => !look.hidden.has(at(figure.items, i).cls) && (look.found?.has(i) ?? true));
    const column = figure.columns[this.sorted];
    if (!column) return all;
    const value = new Map(all.map((i) => [i, column.by(i)]));
    const sign = this.down ? -1 : 1;
    return all.sort((a, b) => {
      const x = value.get(a) ?? 0;
      const y = value.get(b) ?? 0;
      const order = typeof x === "number" && typeof y === "number" ? x - y || 0 : String(x).localeCompare(String(y));
      return sign * order || a - b;
    });
  }

  /** @param i the selected item */
  mark(i: number) {
    for (const row of this.element.querySelectorAll("tr[aria-selected]")) row.removeAttribute("aria-selected");
    this.rows.get(i)?.setAttribute("aria-selected", "true");
  }

  key(event: KeyboardEvent) {
    const row = event.target instanceof Element ? event.target.closest("tr") : null;
    const step = (from: Element | null | undefined) => (event.key === "ArrowDown" ? from?.nextElementSibling : event.key === "ArrowUp" ? from?.previousElementSibling : null);
    let next = step(row);
    while (next?.classList.contains("head")) next = step(next);
    if (!next || row?.parentElement?.tagName !== "TBODY") return;
    next.querySelector("button")?.focus();
    this.frame.select(Number(next.getAttribute("data-item")));
    event.preventDefault();
    event.stopPropagation();
  }
}

/** The row above those of a group. */
function groupRow(columns: number, text: string) {
  return el("tr", { class: "head" }, el("th", { scope: "rowgroup", colspan: columns }, text));
}

function classMark(theme: Theme, cls: string) {
  return markPicture(markOf(theme, cls));
}
