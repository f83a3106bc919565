// The difference of two versions: what each function moves, computes and holds, then its ops that changed most.
import { Connection } from "./connection";
import type { Choice, Delta, DiffData, FunctionDiff, OpDiff, PanelData, Place } from "./data";
import { shortOp, titleOf } from "./figure";
import { keepFocus, walkRows } from "./focus";
import { Header, markPicture } from "./header";
import { Help } from "./help";
import type { Host } from "./host";
import { SvgPen } from "./pen";
import { markOf, readTheme, type Theme, watchTheme } from "./theme";
import { el, svg } from "./util";

type Measure = "moved_bytes" | "time_ns" | "flop" | "read_bytes" | "written_bytes";

const measures: [Measure, string][] = [
  ["moved_bytes", "bytes moved"],
  ["time_ns", "time"],
  ["flop", "FLOP"],
  ["read_bytes", "bytes read"],
  ["written_bytes", "bytes written"],
];

/** The choice of a version that is typed. */
const other = "?";

/** The words for statuses that are not their own. */
const statuses: Record<string, string> = { fused: "into kernel", unfused: "out of kernel" };

export class DiffPage {
  measure: Measure = "moved_bytes";
  query = "";
  /** Functions whose ops are collapsed. */
  readonly folded = new Set<string>();
  /** Another comparison was asked for. */
  busy = false;
  /** How often another one was asked for. */
  asked = 0;
  /** Why there is no answer to what was asked for last. */
  failure = "";
  /** The user names an old version that is in no list. */
  asking = false;
  readonly named = this.nameField();
  figure: { about: string; keys: string[][] };
  readonly host: Host;
  readonly connection: Connection;
  readonly header: Header;
  readonly help: Help;
  readonly body: HTMLElement;
  theme: Theme;
  readonly input: HTMLInputElement;

  constructor(public data: PanelData) {
    this.figure = { about: "Ops are matched by name, and by what they compute. An op that moved into a kernel or out of one is one row with a place in each version; in the kernel it moves nothing by itself. A change is what the new version moves, computes or takes beyond the old one.", keys: [["/", "search"], ["↑ ↓", "next and previous row"], ["Enter", "show in the version of the column"], ["Esc", "end the search"]] };
    this.connection = new Connection(this);
    this.host = this.connection.host;
    this.header = new Header(this);
    this.help = new Help(this);
    this.body = el("main", { id: "diff" });
    this.theme = readTheme();
    this.input = el("input", { type: "search", id: "search", placeholder: "Search  /", "aria-label": "Search by name, op or class", spellcheck: "false", autocomplete: "off" });
    this.header.tools.append(...this.controls());
    document.body.append(this.header.element, this.body, this.connection.status, this.connection.toast, this.help.element);
    watchTheme(() => {
      this.theme = readTheme();
      this.show();
    });
    document.addEventListener("keydown", (e) => {
      this.key(e);
    });
    this.show();
  }

  controls(): HTMLElement[] {
    const by = el("select", { "aria-label": "Sorted by the change of", id: "measure" }, ...measures.map(([key, name]) => el("option", { value: key }, name)));
    by.addEventListener("change", () => {
      const chosen = measures.find(([key]) => key === by.value);
      if (chosen) this.measure = chosen[0];
      this.show();
    });
    this.input.addEventListener("input", () => {
      this.query = this.input.value.toLowerCase();
      this.show();
    });
    const help = el("button", { type: "button", "aria-label": "Keys (?)", title: "Keys (?)", onclick: () => { this.help.open(); } }, "?");
    return [el("label", { class: "group" }, "by ", by), this.input, help];
  }

  load(data: PanelData) {
    this.data = data;
    this.busy = false;
    this.failure = "";
    this.show();
  }

  show() {
    keepFocus(this.body, () => {
      this.draw();
    });
  }

  private draw() {
    this.header.show({ ...this.data, unbound: [], totals: { ...this.data.totals, unknown_ops: 0 } }, "Diff");
    const diff = this.data.diff;
    const functions = diff?.functions ?? [];
    const scroll = this.body.scrollTop;
    const parts: HTMLElement[] = diff ? [this.versions(diff)] : [];
    const changed = functions.filter((f) => f.status !== "same");
    if (diff?.reason) {
      parts.push(el("p", { class: "none" }, `Cannot compare: ${diff.reason}.`));
    } else if (diff?.same ?? changed.length === 0) {
      parts.push(el("p", { class: "none" }, functions.length === 0 ? "There is no function in either version." : "Nothing differs: both versions move, compute and hold the same."));
    }
    if (functions.length > 0) parts.push(this.functionTable(functions));
    for (const f of this.bySize(changed)) parts.push(...this.functionOps(f));
    this.body.replaceChildren(...parts);
    this.body.scrollTop = scroll;
  }

  /** The names of both versions; in an editor they can be chosen and opened. */
  versions(diff: DiffData): HTMLElement {
    const part = (word: string, side: "base" | "version", name: string, choices: Choice[]) => {
      const choice = diff[side] ?? "";
      if (choices.length === 0) return el("span", {}, `${word} `, el("b", {}, name));
      const open = el("button", { type: "button", "data-part": `open ${side}`, title: `Open the ${word} version in the editor`, onclick: () => { this.connection.reveal({ line: 1, column: 1, end_column: 1 }, { choice, file: name }); } }, "Open");
      return el("span", { class: "group" }, el("label", {}, `${word} `, this.chooser(side, choices, diff)), diff.reason || !/^(git:|after-)/.test(choice) ? "" : el("b", {}, name), diff.reason ? "" : open);
    };
    const bases = diff.bases ?? [];
    const again = el("button", { type: "button", "data-part": "refresh", title: "Read both versions again", onclick: () => { this.compare({}); } }, this.failure ? "Retry" : "Refresh");
    const refresh = el("span", { class: "group" }, again, el("span", { class: "note", role: "status" }, this.busy ? "comparing…" : this.failure));
    return el("div", { class: "versions", "data-key": "versions" }, part("old", "base", diff.old, bases), part("new", "version", diff.new, diff.versions ?? []), bases.length > 0 ? refresh : "");
  }

  chooser(side: "base" | "version", choices: Choice[], diff: DiffData): HTMLElement {
    const groups = new Map<string, HTMLElement>();
    for (const c of choices) {
      let group = groups.get(c.group);
      if (!group) groups.set(c.group, (group = el("optgroup", { label: c.group })));
      group.append(el("option", { value: c.value, selected: c.value === diff[side] }, c.label));
    }
    if (side === "base" && this.asking) return this.named;
    const select = el("select", { id: side, "data-part": side, "aria-label": side === "base" ? "Old version" : "New version" }, ...groups.values());
    if (side === "base") select.append(el("option", { value: other }, "another revision or file…"));
    select.addEventListener("change", () => {
      if (select.value !== other) {
        this.compare({ [side]: select.value });
        return;
      }
      this.asking = true;
      select.replaceWith(this.named);
      this.named.focus();
    });
    return select;
  }

  /** The field for a version that is in no list. */
  nameField(): HTMLInputElement {
    const input = el("input", { type: "text", id: "base", "data-part": "base", "aria-label": "Revision or file", placeholder: "main~3, v1.2, 1a2b3c, other.dmir", spellcheck: "false", autocomplete: "off", size: 26 });
    input.addEventListener("keydown", (e) => {
      e.stopPropagation();
      const base = input.value.trim();
      if (e.key === "Enter" && base !== "") this.compare({ base });
      if (e.key !== "Escape" && (e.key !== "Enter" || base === "")) return;
      this.asking = false;
      this.show();
    });
    return input;
  }

  /** Asks the editor for another comparison. */
  compare(change: { base?: string; version?: string }) {
    const diff = this.data.diff;
    if (!diff) return;
    Object.assign(diff, change); // what is asked for next is asked beside this
    this.busy = true;
    const turn = ++this.asked;
    this.body.querySelector(".versions .note")?.replaceChildren("comparing…");
    this.host.post({ type: "compare", base: diff.base ?? "", version: diff.version ?? "" }, (reason) => {
      if (turn !== this.asked) return;
      this.busy = false;
      this.failure = `no comparison: ${reason}`;
      this.show();
    });
  }

  bySize<T extends Record<Measure, Delta>>(list: T[]): T[] {
    const size = (d: T) => Math.abs(d[this.measure].change ?? 0);
    return [...list].sort((a, b) => size(b) - size(a));
  }

  functionTable(functions: FunctionDiff[]) {
    const head = ["Function", "", "Moved", "Waste", "Time", "FLOP", "Peak memory"].map((name, i) => el("th", { scope: "col", class: i > 1 ? "number" : undefined }, name));
    const rows = this.bySize(functions).map((f) => {
      const cells = [f.moved_bytes, f.waste_bytes, f.time_ns, f.flop, f.peak_bytes].map((d) => el("td", { class: "number delta" }, ...pair(d)));
      return el("tr", { "data-key": `function ${f.name}`, class: f.status }, el("th", { scope: "row" }, this.link(`@${f.name}`, f.line > 0 ? "version" : "base", f.line > 0 ? f : f.old_place)), el("td", { class: "status" }, f.status === "same" ? "same" : f.status), ...cells);
    });
    return el("table", { class: "functions" }, el("caption", {}, "All functions: new numbers, and the change"), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
  }

  functionOps(f: FunctionDiff): HTMLElement[] {
    const words = this.query.split(/\s+/).filter((w) => w !== "");
    const match = (o: OpDiff) => {
      const text = `${o.result} ${o.old_result} ${o.op} ${o.old_op} ${o.class} ${o.status} ${o.note}`.toLowerCase();
      return words.every((w) => text.includes(w));
    };
    const ops = this.bySize((f.ops ?? []).filter(match));
    if (words.length > 0 && ops.length === 0) return [];
    const most = ops.reduce((m, o) => Math.max(m, Math.abs(o[this.measure].change ?? 0)), 0);
    const name = measures.find(([key]) => key === this.measure)?.[1] ?? "";
    const head = ["Op", "Line, old → new", "", `Change of ${name}`, "", "Old", "New"].map((text, i) => el("th", { scope: "col", class: i === 4 ? "barcell" : i === 3 || i > 4 ? "number" : undefined }, text));
    const rows = ops.map((o) => this.opRow(o, f, most));
    const same = f.same_ops === 0 ? "" : `; ${f.same_ops === 1 ? "1 op is" : `${f.same_ops} ops are`} the same`;
    const count = ops.length === 1 ? "1 op differs" : `${ops.length} ops differ`;
    const details = el("details", { open: !this.folded.has(f.name), "data-key": `ops of ${f.name}` },
      el("summary", { "data-part": "summary" }, el("h2", {}, `@${f.name}`), el("span", { class: "note" }, `${count}${same}`), change(f[this.measure])),
      ops.length === 0 ? el("p", { class: "note" }, "Its ops move and compute the same.") : el("table", { class: "ops" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)),
    );
    details.addEventListener("toggle", () => {
      if (details.open) this.folded.delete(f.name);
      else this.folded.add(f.name);
    });
    return [details];
  }

  opRow(o: OpDiff, f: FunctionDiff, most: number) {
    const d = o[this.measure];
    const title = titleOf(o.result, o.op);
    const before = [];
    if (o.old_result) before.push(o.old_result);
    if (o.old_op) before.push(shortOp(o.old_op));
    const name = el("th", { scope: "row" }, markPicture(markOf(this.theme, o.class)), el("span", { class: "op" }, "  ".repeat(o.depth) + title));
    if (before.length > 0) name.append(el("span", { class: "note" }, ` was ${before.join(" = ")}`));
    const kernel = (label: string, inside: boolean) => (inside ? el("span", { class: "note", title: o.note }, "in kernel") : label);
    const line = (side: "base" | "version", place: Place) => (place.line > 0 ? this.link(String(place.line), side, place) : el("span", { class: "note" }, "–"));
    return el("tr", { "data-key": `op ${f.name} ${o.line} ${o.old_place.line} ${title}`, "data-line": o.line, class: o.status },
      name,
      el("td", { class: "places" }, line("base", o.old_place), " → ", line("version", o)),
      el("td", { class: "status" }, statuses[o.status] ?? o.status),
      el("td", { class: "number" }, change(d)),
      el("td", { class: "barcell" }, bar(d, most)),
      el("td", { class: "number" }, kernel(d.old_label, o.status === "unfused")),
      el("td", { class: "number" }, kernel(d.new_label, o.status === "fused")),
    );
  }

  /** A button that shows a place of one of the versions. */
  link(text: string, side: "base" | "version", place: Place) {
    const diff = this.data.diff;
    const name = (side === "base" ? diff?.old : diff?.new) ?? "";
    return el("button", { type: "button", "data-part": side, title: `Show line ${place.line} of ${name}`, onclick: () => { this.connection.reveal(place, { choice: diff?.[side] ?? "", file: name }); } }, text);
  }

  selectLine(line: number) {
    for (const row of this.body.querySelectorAll("tr[aria-selected]")) row.removeAttribute("aria-selected");
    const row = this.body.querySelector(`tr[data-line="${line}"]`);
    row?.setAttribute("aria-selected", "true");
    row?.scrollIntoView({ block: "nearest" });
  }

  key(e: KeyboardEvent) {
    if (e.altKey || e.ctrlKey || e.metaKey || this.help.shown) return;
    if (e.target === this.input) {
      if (e.key !== "Escape") return;
      this.input.value = this.query = "";
      this.show();
    } else if (e.target instanceof HTMLSelectElement || e.target instanceof HTMLInputElement) return;
    else if (e.key === "/") this.input.focus();
    else if (e.key === "?") this.help.open();
    else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      if (!walkRows(this.body, e.key === "ArrowDown" ? 1 : -1)) return;
    } else return;
    e.preventDefault();
  }
}

/** The change of a quantity, with a sign and one colour each for more and for less. */
export function change(d: Delta) {
  const sign = d.change === null ? "" : d.change > 0 ? "more" : d.change < 0 ? "less" : "equal";
  const label = d.change === 0 ? "=" : d.change_label;
  return el("span", { class: `change ${sign}` }, d.percent_label ? `${label} (${d.percent_label})` : label);
}

/** The new number and its change. */
function pair(d: Delta) {
  return [el("span", {}, d.new_label || (d.old_label ? "gone" : "")), change(d)];
}

/** A bar that extends to the right for more and to the left for less. */
function bar(d: Delta, most: number) {
  const pen = new SvgPen(160, 12);
  pen.root.setAttribute("class", "bar");
  pen.root.setAttribute("aria-hidden", "true");
  const part = most > 0 && d.change !== null ? (d.change / most) * 78 : 0;
  const rect = svg("rect", { x: part < 0 ? 80 + part : 80, y: 1, width: Math.abs(part), height: 10, rx: 2, class: part < 0 ? "less" : "more" });
  pen.root.append(rect, svg("line", { x1: 80, x2: 80, y1: 0, y2: 12, class: "axis" }));
  return pen.root;
}
