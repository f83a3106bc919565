// Details of an item: a tooltip under the pointer, and a card while the item is selected.
import type { Item, Section } from "./figure";
import type { State } from "./state";
import { el } from "./util";
import type { Box } from "./view";

function describe(item: Item): HTMLElement[] {
  const parts: HTMLElement[] = [el("p", { class: "title" }, item.title)];
  if (item.sub) parts.push(el("p", { class: "sub" }, item.sub));
  parts.push(el("dl", {}, ...item.rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
  if (item.why.length > 0) parts.push(el("ul", { class: "why" }, ...item.why.map((line) => el("li", {}, line))));
  return parts;
}

export class Tooltip {
  readonly element: HTMLDivElement;
  item: Item | null = null;

  constructor() {
    this.element = el("div", { id: "tip", role: "tooltip" });
    this.element.hidden = true;
  }

  /** Shows the tooltip at a position in the window. */
  show(item: Item, x: number, y: number) {
    if (this.item !== item) this.element.replaceChildren(...describe(item));
    this.item = item;
    this.element.hidden = false;
    const { offsetWidth: w, offsetHeight: h } = this.element;
    const right = x + 16 + w < window.innerWidth ? x + 16 : Math.max(4, x - 16 - w);
    const below = y + 16 + h < window.innerHeight ? y + 16 : Math.max(4, y - 12 - h);
    this.element.style.left = `${right}px`;
    this.element.style.top = `${below}px`;
  }

  hide() {
    this.element.hidden = true;
    this.item = null;
  }
}

export class Card {
  readonly element: HTMLElement;

  constructor(readonly frame: State) {
    this.element = el("aside", { id: "card", "aria-label": "Selected item" });
    this.element.hidden = true;
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        frame.select(-1);
        frame.focus();
        event.stopPropagation();
      }
    });
  }

  show(i: number) {
    const item = this.frame.quiet ? undefined : this.frame.figure.items[i];
    this.element.hidden = item === undefined;
    if (item === undefined) return;
    const actions = el("div", { class: "actions" });
    if (item.place.line > 0) {
      actions.append(el("button", { type: "button", class: "reveal", title: "Show in the text (Enter)", onclick: () => { this.frame.reveal(i); } }, `Line ${item.place.line}`));
    }
    const toggle = this.frame.figure.toggleName?.(i) ?? "";
    if (toggle) actions.append(el("button", { type: "button", title: `${toggle} (Space)`, onclick: () => { this.frame.toggle(i); } }, toggle));
    actions.append(el("button", { type: "button", class: "close", "aria-label": "Close", title: "Close (Esc)", onclick: () => { this.frame.select(-1); this.frame.focus(); } }, "×"));
    const sections = this.frame.figure.sections(i).filter((s) => s.items.length > 0).map((s) => this.section(s));
    const origin = item.place.origin === undefined ? [] : [el("div", { class: "note" }, `traced from ${item.place.origin}`)];
    this.element.replaceChildren(actions, ...describe(item), ...origin, ...sections);
    this.element.scrollTop = 0;
  }

  /** The offset from the centre at which the card does not cover the selected item. */
  aside(): [number, number] {
    const { element: e, frame } = this;
    const { w, h } = frame.view.area;
    if (e.hidden || frame.figure.cardSide !== "clear") return [0, 0];
    if (e.offsetWidth > w * 0.7) return [0, (e.offsetTop - h) / 2];
    return [w < 1000 ? (e.offsetLeft - w) / 2 : 0, 0];
  }

  /** Puts the card where it hides least: beside the selected box, and below the roofs. */
  place(box: Box | null) {
    const { view, figure } = this.frame;
    const a = view.area;
    this.element.classList.toggle("left", figure.cardSide === "beside" && box !== null && view.sx(box.x) + (box.w * view.kx) / 2 > a.x + a.w * 0.55);
    this.element.classList.toggle("low", figure.cardSide === "low");
  }

  section(section: Section) {
    const most = 40;
    const rows = section.items.slice(0, most).map(({ index, text, amount }) =>
      el("li", {}, el("button", { type: "button", onclick: () => { this.frame.select(index, true); } }, el("span", {}, text), el("span", { class: "amount" }, amount))),
    );
    if (section.items.length > most) rows.push(el("li", {}, `and ${section.items.length - most} more`));
    return el("section", {}, el("h2", {}, section.name), el("ul", {}, ...rows));
  }
}
