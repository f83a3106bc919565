// The plans for a training step: a table of them, the pipelines of two on one time axis, what their stages hold, and of a sweep the
// time and the cost over numbers of devices.
import { Connection } from "./connection";
import type { PanelData, PlanResult, PlanRow } from "./data";
import { keepFocus, walkRows } from "./focus";
import { Header, markPicture } from "./header";
import { Help } from "./help";
import type { Host } from "./host";
import { PipelineView } from "./pipeline";
import { planTitle } from "./pipeline_draw";
import { memoryTable, stageTable, timeBar } from "./plans_parts";
import { sweepCharts } from "./sweep";
import { taskClasses } from "./pipeline_lane";
import { markOf, paperTheme, readTheme, type Theme, watchTheme } from "./theme";
import { at, el } from "./util";

interface PlanColumn {
  name: string;
  title?: string;
  cell(p: PlanRow): Node | string;
  /** The sort key; columns without one are not sorted by. */
  by?: (p: PlanRow) => number | string;
  numeric?: boolean;
}

export class PlansPage {
  readonly figure = {
    about: "Each row is a plan: a mesh, micro-batches, a schedule and what is recomputed. Compute, exposed communication and bubble are parts of the time of a step. The gap is how much of the time no plan with the same axes, micro-batches and schedule can save. Of the plans that are compared, each row of the picture is a device of the pipeline: forward tasks are light, backward tasks solid, gradients of weights lower; numbers are micro-batches.",
    keys: [["↑ ↓", "next and previous plan; in the picture another device"], ["Space", "compare the plan, or no longer"], ["← →", "in the picture, earlier and later tasks"], ["+ − 0", "in the picture, zoom in, out, show all"], ["Shift+← →", "in the picture, pan; dragging does the same"], ["Enter", "in the picture, show the stage in the text"], ["Home End", "in the picture, first and last task"], ["Esc", "clear the selection"]],
  };
  readonly host: Host;
  readonly connection: Connection;
  readonly header: Header;
  readonly help: Help;
  readonly pipelines: PipelineView;
  readonly lists = el("div", {});
  readonly details = el("div", {});
  readonly body: HTMLElement;
  theme: Theme;
  /** The index of the result whose plans are listed. */
  shown = 0;
  /** The ranks of the plans that are compared: at most two, the one chosen last at the end. */
  compared: number[] = [];
  sorted = -1;
  down = false;
  readonly columns: PlanColumn[];

  constructor(public data: PanelData) {
    this.theme = readTheme();
    this.connection = new Connection(this);
    this.host = this.connection.host;
    this.header = new Header(this);
    this.help = new Help(this);
    this.pipelines = new PipelineView(() => this.theme, (plan, stage) => { this.revealStage(plan, stage); });
    this.columns = this.planColumns();
    const legend = el("p", { class: "legend" });
    this.body = el("main", { id: "plans" }, this.lists, el("section", { class: "compared", "aria-label": "Pipelines" }, el("h2", {}, "Pipelines"), legend, this.pipelines.element), this.details);
    this.header.tools.append(el("button", { type: "button", "aria-label": "Keys and what is shown (?)", title: "Keys and what is shown (?)", onclick: () => { this.help.open(); } }, "?"));
    document.body.append(this.header.element, this.body, this.connection.status, this.connection.toast, this.pipelines.tip.element, this.help.element);
    const paint = () => { legend.replaceChildren(...this.legend([...taskClasses, "once"].map((cls) => [cls, markOf(this.theme, cls).name]))); };
    const restyle = (theme: Theme) => {
      this.theme = theme;
      paint();
      this.show();
      this.pipelines.draw();
    };
    watchTheme(() => { restyle(readTheme()); });
    window.addEventListener("beforeprint", () => { restyle(paperTheme); });
    window.addEventListener("afterprint", () => { restyle(readTheme()); });
    document.addEventListener("keydown", (e) => { this.key(e); });
    paint();
    this.begin();
  }

  get results(): PlanResult[] {
    return this.data.plans?.results ?? [];
  }

  get plans(): PlanRow[] {
    return this.results[this.shown]?.plans ?? [];
  }

  load(data: PanelData) {
    this.data = data;
    this.begin();
  }

  /** Shows the largest number of devices that has a plan, and compares its first two plans. */
  begin() {
    this.shown = Math.max(0, this.results.findLastIndex((r) => (r.plans ?? []).length > 0));
    this.choose(this.plans.slice(0, 2).map((p) => p.rank));
  }

  choose(ranks: number[]) {
    this.compared = ranks;
    this.show();
    this.pipelines.show(this.chosen());
  }

  chosen(): PlanRow[] {
    return this.plans.filter((p) => this.compared.includes(p.rank));
  }

  toggle(rank: number) {
    const rest = this.compared.filter((r) => r !== rank);
    this.choose(rest.length < this.compared.length ? rest : [...rest.slice(-1), rank]);
  }

  show() {
    keepFocus(this.body, () => {
      this.header.show(this.data, "Plans");
      this.lists.replaceChildren(...this.sweep(), ...this.planTable());
      const chosen = this.chosen();
      this.details.replaceChildren(
        el("div", { class: "side" }, ...chosen.map((p) => memoryTable(p, at(this.results, this.shown), this.theme))),
        el("div", { class: "side" }, ...chosen.map((p) => stageTable(p, (stage) => { this.revealStage(p, stage); }))),
      );
      this.pipelines.element.hidden = this.compared.length === 0;
    });
  }

  legend(marks: [string, string][]): HTMLElement[] {
    return marks.map(([cls, name]) => el("span", {}, markPicture(markOf(this.theme, cls)), name));
  }

  sweep(): HTMLElement[] {
    const { results } = this;
    if (results.length < 2) return [];
    const rows = results.map((r, i) => {
      const pick = el("button", { type: "button", "data-part": "devices", "aria-pressed": String(i === this.shown), onclick: () => { this.shown = i; this.choose(this.plans.slice(0, 2).map((p) => p.rank)); } }, String(r.devices));
      const cells = [r.time_label || "no plan fits", r.cost_label, r.gap_label, String(r.searched), r.elapsed_label].map((text) => el("td", { class: "number" }, text));
      return el("tr", { "data-key": `devices ${r.devices}`, "aria-selected": i === this.shown ? "true" : undefined }, el("th", { scope: "row", class: "number" }, pick), ...cells, el("td", {}, r.plans?.[0]?.axes ?? ""));
    });
    const head = ["Devices", "Time of a step", "Device time per token", "Gap to the bound", "Searched", "Search took", "Best plan"].map((name, i) => el("th", { scope: "col", class: i < 6 ? "number" : undefined }, name));
    return [el("section", { class: "sweep", "aria-label": "Numbers of devices" }, el("h2", {}, "Over numbers of devices"), sweepCharts(results, this.shown, this.theme), el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)))];
  }

  planColumns(): PlanColumn[] {
    const schedule = (p: PlanRow) => (p.schedule === "" ? "none" : p.chunks > 1 ? `${p.schedule} × ${p.chunks}` : p.schedule);
    return [
      { name: "Mesh", cell: (p) => el("span", { title: (p.names ?? []).join("; ") }, p.axes), by: (p) => p.axes },
      { name: "Stages", cell: (p) => String((p.stages ?? []).length), by: (p) => (p.stages ?? []).length, numeric: true },
      { name: "Micro-batches", cell: (p) => String(p.microbatches), by: (p) => p.microbatches, numeric: true },
      { name: "Schedule", title: "with the number of stages on each device", cell: schedule, by: schedule },
      { name: "Recompute", cell: (p) => p.recompute, by: (p) => p.recompute },
      { name: "Time", cell: (p) => el("span", {}, p.time_label, el("span", { class: "note" }, p.slower_label ? ` ${p.slower_label}` : "")), by: (p) => p.time_ns, numeric: true },
      { name: "Parts of the time", cell: (p) => timeBar(p, Math.max(...this.plans.map((o) => o.time_ns)), this.theme) },
      { name: "Bubble", cell: (p) => p.bubble_share_label, by: (p) => p.bubble_ns / Math.max(1, p.time_ns), numeric: true },
      { name: "Tokens/s", cell: (p) => p.tokens_label, by: (p) => p.tokens_per_s, numeric: true },
      { name: "MFU", title: "model FLOP utilization", cell: (p) => p.mfu_label, by: (p) => p.model_flop_utilization, numeric: true },
      { name: "Memory", cell: (p) => el("span", {}, p.memory_label, el("span", { class: "note" }, p.memory_share_label ? ` ${p.memory_share_label}` : "")), by: (p) => p.memory_bytes, numeric: true },
      { name: "Sent", cell: (p) => el("span", { title: (p.sent ?? []).map((s) => `${s.axes} ${s.label}`).join(", ") }, p.sent_label), by: (p) => p.sent_bytes, numeric: true },
      { name: "Gap", title: "to the bound of plans with these axes, micro-batches and schedule", cell: (p) => p.gap_label, by: (p) => p.gap, numeric: true },
    ];
  }

  planTable(): HTMLElement[] {
    const result = this.results[this.shown];
    if (!result) return [];
    if (this.plans.length === 0) return [el("p", { class: "none" }, `No plan for ${plural(result.devices, "device")} fits in ${result.memory_limit_label} each.`)];
    const column = this.columns[this.sorted];
    const sign = this.down ? -1 : 1;
    const rows = [...this.plans];
    if (column?.by) {
      const { by } = column;
      rows.sort((a, b) => {
        const [x, y] = [by(a), by(b)];
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y))) || a.rank - b.rank;
      });
    }
    const caption = `${plural(this.plans.length, "plan")} for ${plural(result.devices, "device")} of ${plural(result.searched, "setting")}, found in ${result.elapsed_label}. No plan takes less than ${result.bound_label}: the first one can be undercut by at most ${result.gap_label}.`;
    const head = el("tr", {}, el("th", { scope: "col" }, "Compare"), ...this.columns.map((c, i) => this.heading(c, i)));
    return [el("section", { "aria-label": "Plans" }, el("div", { class: "wide" }, el("table", { class: "rows" }, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, ...rows.map((p) => this.row(p))))), el("p", { class: "legend" }, "Parts of the time: ", ...this.legend([["compute", "compute"], ["communication", "exposed communication"], ["idle", "bubble"], ["unknown", "other"]])))];
  }

  heading(c: PlanColumn, i: number): HTMLElement {
    const name = c.title ? el("abbr", { title: c.title }, c.name) : c.name;
    if (!c.by) return el("th", { scope: "col" }, name);
    const sorted = this.sorted === i ? (this.down ? "descending" : "ascending") : "none";
    const sort = () => {
      this.down = this.sorted === i ? !this.down : false;
      this.sorted = i;
      this.show();
    };
    const button = el("button", { type: "button", "data-part": c.name, onclick: sort }, name, el("span", { "aria-hidden": "true" }, sorted === "none" ? "" : this.down ? " ▾" : " ▴"));
    return el("th", { scope: "col", "aria-sort": sorted, class: c.numeric ? "number" : undefined, "data-key": `column ${c.name}` }, button);
  }

  row(p: PlanRow): HTMLElement {
    const on = this.compared.includes(p.rank);
    const compare = el("button", { type: "button", "data-part": "compare", "aria-pressed": String(on), "aria-label": `Compare plan ${p.rank}`, title: p.why || planTitle(p), onclick: () => { this.toggle(p.rank); } }, String(p.rank));
    return el("tr", { "data-key": `plan ${p.rank}`, "aria-selected": on ? "true" : undefined, title: p.why || undefined }, el("th", { scope: "row" }, compare), ...this.columns.map((c) => el("td", { class: c.numeric ? "number" : undefined }, c.cell(p))));
  }

  revealStage(p: PlanRow, stage: number) {
    const s = p.stages?.[stage];
    if (s && s.line > 0) this.connection.reveal(s);
  }

  selectLine() {
    // The cursor chooses no plan.
  }

  key(e: KeyboardEvent) {
    if (e.defaultPrevented || e.altKey || e.ctrlKey || e.metaKey || this.help.shown) return;
    if (e.key === "?") this.help.open();
    else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && this.lists.contains(document.activeElement)) {
      if (!walkRows(this.lists, e.key === "ArrowDown" ? 1 : -1)) return;
    } else return;
    e.preventDefault();
  }
}

function plural(n: number, name: string) {
  return n === 1 ? `1 ${name}` : `${n} ${name}s`;
}
