// Search: an item matches if every word occurs in its name, op, class, type or detail, and if it is in the chosen group.
import { Groups } from "./groups";
import type { State } from "./state";
import { at, el } from "./util";

export class Search {
  matches: number[] = [];
  current = -1;
  readonly input: HTMLInputElement;
  readonly count: HTMLSpanElement;
  readonly element: HTMLDivElement;
  readonly groups: Groups;

  constructor(readonly frame: State) {
    this.groups = new Groups(frame);
    this.input = el("input", {
      type: "search",
      id: "search",
      placeholder: "Search  /",
      "aria-label": "Search by name, op or class",
      spellcheck: "false",
      autocomplete: "off",
    });
    this.count = el("span", { class: "count", "aria-live": "polite", id: "found" });
    const step = (text: string, name: string, by: number) =>
      el("button", { type: "button", title: name, "aria-label": name, onclick: () => { this.step(by); } }, text);
    this.element = el(
      "div",
      { class: "group search", role: "search" },
      this.groups.select,
      this.input,
      this.count,
      step("↑", "Previous (Shift+Enter, N)", -1),
      step("↓", "Next (Enter, n)", 1),
    );
    this.input.addEventListener("input", () => {
      this.find(this.input.value, true);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") {
        if (this.frame.look.found) this.clear();
        else this.frame.focus();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  clear() {
    this.input.value = "";
    this.groups.clear();
    this.find("", false);
  }

  /** @param go select the first match */
  find(query: string, go: boolean) {
    const frame = this.frame;
    frame.query = query;
    const words = query.toLowerCase().split(/\s+/).filter((w) => w !== "");
    const all = words.length === 0 && this.groups.chosen === undefined;
    this.matches = [];
    frame.figure.items.forEach((item, i) => {
      if (!all && words.every((w) => item.search.includes(w)) && this.groups.holds(item.place)) this.matches.push(i);
    });
    // A closed group is lit up with what is in it.
    frame.look.found = all ? null : new Set(this.matches.flatMap((i) => [i, frame.figure.show(i, false)]));
    this.current = -1;
    if (go && this.matches.length > 0) this.step(1, false);
    else this.showCount();
    frame.table.stale();
    frame.draw();
  }

  /** @param near zoom in on the match */
  step(by: number, near = true) {
    const n = this.matches.length;
    if (n === 0) return;
    this.current = this.current < 0 ? (by > 0 ? 0 : n - 1) : (this.current + by + n) % n;
    this.showCount();
    this.frame.select(at(this.matches, this.current), near);
  }

  showCount() {
    const n = this.matches.length;
    if (this.frame.look.found === null) this.count.textContent = "";
    else if (n === 0) this.count.textContent = "none";
    else this.count.textContent = this.current < 0 ? String(n) : `${this.current + 1} / ${n}`;
  }
}
