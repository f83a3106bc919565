// The top of a page: panel, function and machine; the totals; the legend, which filters by class.
import type { MeshData, PanelData, TimelineData } from "./data";
import type { Host } from "./host";
import { type Pen, type Stroke, SvgPen } from "./pen";
import type { State } from "./state";
import { type Mark, markOf } from "./theme";
import { el } from "./util";

export class Header {
  title: HTMLHeadingElement;
  readonly file: HTMLSpanElement;
  readonly functions: HTMLSelectElement;
  readonly devices: HTMLSelectElement;
  readonly tools: HTMLDivElement;
  readonly totals: HTMLDListElement;
  readonly warning: HTMLParagraphElement;
  readonly element: HTMLElement;

  constructor(readonly page: { host: Host; data: PanelData }) {
    this.title = el("h1", {});
    this.file = el("span", { class: "file" });
    this.functions = el("select", { "aria-label": "Function", id: "functions" });
    this.functions.addEventListener("change", () => {
      this.page.host.post({ type: "function", name: this.functions.value });
    });
    this.devices = el("select", { "aria-label": "Figures of", id: "devices", hidden: true });
    this.tools = el("div", { class: "tools" });
    this.totals = el("dl", { id: "totals" });
    this.warning = el("p", { class: "warning" });
    this.element = el(
      "header",
      {},
      el("div", { class: "bar" }, el("div", { class: "names" }, this.title, this.functions, this.devices, this.file), this.tools),
      this.totals,
      this.warning,
    );
  }

  /** @param name name of the panel */
  show(data: PanelData, name: string) {
    document.title = `${data.title} · ${name}`;
    const functions = data.functions ?? [];
    const choice = functions.length > 1 && this.page.host.kind !== "file" && data.function !== "";
    this.title.textContent = choice ? name : `${name} · ${data.title}`;
    this.functions.hidden = !choice;
    this.functions.replaceChildren(
      ...functions.map((f) => {
        const numbers = [f.time_label, f.moved_label].filter((label) => label !== "").join(", ");
        return el("option", { value: f.name, selected: f.name === data.function }, `@${f.name}${numbers ? ` (${numbers})` : ""}`);
      }),
    );
    this.file.textContent = choice && data.target.title ? `${data.file} on ${data.target.title}` : data.file;
    const totals = data.kind === "diff" || data.kind === "history" ? [] : totalRows(data);
    this.totals.hidden = totals.length === 0;
    this.totals.replaceChildren(
      ...totals.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { title: value }, value))),
    );
    const notes = [];
    const reason = data.devices?.reason ?? "";
    if (reason !== "") notes.push(`Not divided, the figures are of one device: ${reason}`);
    const unbound = data.unbound ?? [];
    if (unbound.length > 0) notes.push(`Depends on ${unbound.join(", ")}: give sizes with --bind ${unbound.map((s) => `${s}=…`).join(",")}`);
    const unknown = data.totals.unknown_ops;
    if (unknown > 0) notes.push(`${unknown === 1 ? "1 op is" : `${unknown} ops are`} not known to dmir and not counted`);
    const stale = data.stale ?? "";
    if (stale !== "") notes.unshift(stale.charAt(0).toUpperCase() + stale.slice(1));
    this.element.classList.toggle("stale", stale !== "");
    this.warning.textContent = notes.join(". ");
    this.warning.hidden = notes.length === 0;
  }
}

export function totalRows(data: PanelData): [string, string][] {
  if (data.timeline) return timelineRows(data.timeline);
  if (data.plans) return (data.plans.model ?? []).map((f) => [f.name, f.label]);
  if (data.mesh) return meshRows(data.mesh, data.totals.peak_label);
  const t = data.totals;
  const rows: [string, string][] = [
    ["time", t.bound && t.time_label ? `${t.time_label} · ${t.bound}` : t.time_label],
    ["FLOP", t.flop_label],
    ["moved", t.moved_label],
    ["minimum", t.minimum_label],
    ["waste", t.waste_label],
    ["peak memory", t.peak_label],
    ["intensity", t.intensity_label],
  ];
  return rows.filter(([, value]) => value !== "");
}

/** The totals of a device. */
function timelineRows(t: TimelineData): [string, string][] {
  const exposed: [string, string] = ["exposed", t.exposed_label && t.exposed_share_label ? `${t.exposed_label} · ${t.exposed_share_label}` : t.exposed_label];
  const rows: [string, string][] = [["time", t.time_label], ["compute", t.compute_label], ["communication", t.communication_label], exposed];
  for (const s of t.sent ?? []) rows.push([`sent along ${s.axes}`, s.label]);
  return rows.filter(([, value]) => value !== "");
}

function meshRows(m: MeshData, peak: string): [string, string][] {
  const rows: [string, string][] = [["devices", String(m.devices)], [`@${m.name}`, (m.axes ?? []).map((a) => `${a.name} = ${a.size}`).join(", ")], ["peak memory of each", peak]];
  return rows.filter(([, value]) => value !== "");
}

/** The classes of ops: their marks, and a switch that shows or hides each. */
export class Legend {
  readonly chips: HTMLDivElement;
  readonly switches: HTMLDivElement;
  readonly note: HTMLSpanElement;
  readonly element: HTMLDivElement;

  constructor(readonly frame: State) {
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Classes of ops" });
    this.switches = el("div", { class: "chips", role: "group", "aria-label": "Parts of the picture", id: "switches" });
    this.note = el("span", { class: "note" });
    this.element = el("div", { id: "legend" }, this.chips, this.switches, this.note);
  }

  show() {
    const { figure, look, theme } = this.frame;
    const focused = this.chips.contains(document.activeElement) ? document.activeElement?.getAttribute("data-class") : null;
    this.chips.replaceChildren(
      ...figure.classes.map((cls) => {
        const mark = markOf(theme, cls);
        const count = figure.items.filter((item) => item.cls === cls).length;
        const shown = !look.hidden.has(cls);
        const chip = el("button", {
          type: "button",
          class: "chip",
          "aria-pressed": String(shown),
          "data-class": cls,
          // One name, whether or not the class is shown: a name that changes with the state says the opposite of it.
          title: `Show ${mark.name}`,
          "aria-label": `Show ${mark.name}, ${count === 1 ? "1 op" : `${count} ops`}`,
        });
        chip.append(markPicture(mark), el("span", { class: "name" }, mark.name), el("span", { class: "count" }, String(count)));
        chip.addEventListener("click", () => {
          if (look.hidden.has(cls)) look.hidden.delete(cls);
          else look.hidden.add(cls);
          this.show();
          this.frame.table.stale();
          this.frame.draw();
        });
        return chip;
      }),
    );
    const flipped = this.switches.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
    this.switches.replaceChildren(
      ...(figure.switches ?? []).map((s) =>
        el("button", { type: "button", class: "chip", "aria-pressed": String(s.on()), "data-key": s.key, title: `${s.title} (${s.key})`, onclick: () => { this.frame.flip(s.key); } }, s.name),
      ),
    );
    this.switches.hidden = this.switches.childElementCount === 0;
    this.note.textContent = figure.note;
    if (flipped !== null) this.switches.querySelectorAll("button").forEach((b) => { if (b.dataset["key"] === flipped) b.focus(); });
    if (focused !== null) this.chips.querySelectorAll("button").forEach((b) => { if (b.dataset["class"] === focused) b.focus(); });
  }
}

/** A small picture of the shape, colour and letter of a class. */
export function markPicture(mark: Mark): SVGElement {
  const pen = new SvgPen(26, 18);
  pen.root.setAttribute("class", "mark");
  pen.root.setAttribute("aria-hidden", "true");
  drawShape(pen, mark.shape, 1, 1, 24, 16, { fill: mark.color });
  pen.text(mark.letter, 13, 9.5, { size: 11, fill: mark.ink, align: "middle", bold: true });
  return pen.root;
}

export function drawShape(pen: Pen, shape: string, x: number, y: number, w: number, h: number, s: Stroke) {
  if (shape === "hexagon") {
    const c = Math.min(h / 2.6, 14, w / 4);
    pen.polygon([x + c, y, x + w - c, y, x + w, y + h / 2, x + w - c, y + h, x + c, y + h, x, y + h / 2], s);
  } else if (shape === "slant") {
    const c = Math.min(h / 3.2, 12, w / 5);
    pen.polygon([x + c, y, x + w, y, x + w - c, y + h, x, y + h], s);
  } else if (shape === "tag") {
    const c = Math.min(h / 4, 8);
    pen.polygon([x, y, x + w, y, x + w, y + h - c, x + w - c, y + h, x + c, y + h, x, y + h - c], s);
  } else {
    pen.rect(x, y, w, h, { ...s, radius: shape === "pill" ? h / 2 : Math.min(4, h / 5) });
  }
}

export function frameButtons(frame: State, table: HTMLElement, open: HTMLElement): HTMLElement[] {
  const button = (text: string, name: string, act: () => void) =>
    el("button", { type: "button", title: name, "aria-label": name, onclick: act }, text);
  table.addEventListener("click", () => {
    frame.showTable(!frame.table.shown);
  });
  open.append(
    button("Open all", "Open all groups (e)", () => {
      frame.toggleAll(true);
    }),
    button("Close all", "Close all groups (c)", () => {
      frame.toggleAll(false);
    }),
  );
  const zoom = el(
    "div",
    { class: "group", role: "group", "aria-label": "Zoom" },
    button("−", "Zoom out (−)", () => {
      frame.zoomBy(1 / 1.3);
    }),
    button("Fit", "Show all (0)", () => {
      frame.fit();
    }),
    button("+", "Zoom in (+)", () => {
      frame.zoomBy(1.3);
    }),
  );
  const help = button("?", "Keys and what is shown (?)", () => {
    frame.help.open();
  });
  return [open, zoom, table, help];
}
