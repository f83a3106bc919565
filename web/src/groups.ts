// The lines and the modules that a program was traced from: a list beside the figure, of which one is lit up when it is chosen.
import type { Group, Place } from "./data";
import type { State } from "./state";
import { at, el } from "./util";

type By = "lines" | "modules";

/** What the select offers, in its order. */
const offers: { by: By | ""; name: string; none: string }[] = [
  { by: "", name: "not grouped", none: "" },
  { by: "modules", name: "by module", none: "the program itself" },
  { by: "lines", name: "by line", none: "no line" },
];

export class Groups {
  by: By | "" = "";
  /** The name of the group that is lit up; undefined for none. */
  chosen: string | undefined;
  readonly select: HTMLSelectElement;
  readonly element: HTMLElement;

  constructor(readonly frame: State) {
    this.select = el("select", { id: "groupBy", "aria-label": "Group", title: "Group (g)" });
    this.select.addEventListener("change", () => {
      this.set(this.offered()[this.select.selectedIndex]?.by ?? "");
    });
    this.element = el("aside", { id: "groups", "aria-label": "Groups", hidden: true });
  }

  /** The groups of the data that is shown, by their numbers. */
  get all(): Group[] {
    const { groups } = this.frame.data;
    return (this.by === "" ? undefined : groups?.[this.by]) ?? [];
  }

  offered() {
    const { groups } = this.frame.data;
    return offers.filter(({ by }) => by === "" || (groups?.[by] ?? []).length > 0);
  }

  /** Updates what can be chosen, for new data. */
  show() {
    const offered = this.offered();
    if (!offered.some(({ by }) => by === this.by)) this.by = "";
    this.select.hidden = offered.length < 2;
    this.select.replaceChildren(...offered.map(({ by, name }) => el("option", { selected: by === this.by }, name)));
    if (!this.all.some((g) => g.name === this.chosen)) this.chosen = undefined;
    this.list();
  }

  set(by: By | "") {
    this.by = by;
    this.chosen = undefined;
    this.show();
    this.frame.search.find(this.frame.query, false);
    this.frame.resize();
  }

  /** The next kind of groups. */
  next() {
    const offered = this.offered();
    const i = offered.findIndex(({ by }) => by === this.by);
    this.set(at(offered, (i + 1) % offered.length).by);
  }

  /** The numbers of the groups that what stands at a place has a part in. */
  of(place: Place): number[] {
    return (this.by === "" ? undefined : place[`in_${this.by}`]) ?? [];
  }

  /** Whether what stands at a place is lit up. */
  holds(place: Place) {
    return this.chosen === undefined || this.of(place).some((g) => this.all[g]?.name === this.chosen);
  }

  title(g: Group) {
    return g.name === "" ? (offers.find(({ by }) => by === this.by)?.none ?? "") : g.name;
  }

  numbers(g: Group) {
    const plus = g.shared ? "+" : "";
    if (this.frame.data.memory) return `${g.held_label}${plus}`;
    return [g.time_label, g.moved_label].filter((label) => label !== "0 s" && label !== "0 B").join(" · ") + plus;
  }

  /** The line above the rows of group i of a table. */
  heading(i: number) {
    const g = this.all[i];
    return g ? [this.title(g), this.numbers(g), g.detail].filter((s) => s !== "").join(" · ") : "in no group";
  }

  private list() {
    const memory = this.frame.data.memory !== undefined;
    const size = (g: Group) => (memory ? g.held_bytes : g.time_ns);
    const shown = this.all.filter((g) => !memory || g.held_bytes > 0).sort((a, b) => size(b) - size(a));
    const most = Math.max(1, ...shown.map(size));
    this.element.hidden = shown.length === 0;
    this.element.replaceChildren(
      el("h2", {}, memory ? "Held at the peak" : "Time and bytes moved"),
      el("ul", {}, ...shown.map((g) => el("li", {}, this.entry(g, size(g) / most)))),
    );
  }

  private entry(g: Group, share: number) {
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${(100 * share).toFixed(1)}%`;
    return el(
      "button",
      { type: "button", "aria-pressed": String(g.name === this.chosen), title: [g.detail, g.shared ? "+ shares ops or kernels with others" : ""].filter((s) => s !== "").join("\n"), onclick: () => { this.choose(g); } },
      el("span", { class: "name" }, this.title(g)),
      el("span", { class: "amount" }, this.numbers(g)),
      el("span", { class: "detail" }, g.detail),
      bar,
    );
  }

  private choose(g: Group) {
    this.chosen = this.chosen === g.name ? undefined : g.name;
    this.list();
    this.element.querySelector<HTMLElement>('[aria-pressed="true"]')?.focus();
    this.frame.search.find(this.frame.query, false);
  }

  /** Lights up everything again. */
  clear() {
    this.chosen = undefined;
    this.list();
  }
}
