// The frame of a page with a figure: the controls, the selection, and when the figure is drawn.
import { Card, Tooltip } from "./card";
import { Connection } from "./connection";
import type { PanelData, Place } from "./data";
import { Devices } from "./devices";
import type { Figure, Look } from "./figure";
import { frameButtons, Header, Legend } from "./header";
import { Help } from "./help";
import type { Host } from "./host";
import { Keys, Pointer } from "./input";
import { Minimap } from "./minimap";
import { printOnPaper } from "./paper";
import { CanvasPen } from "./pen";
import { recall } from "./recall";
import { Search } from "./search";
import type { State } from "./state";
import { Table } from "./table";
import { readTheme, type Theme, watchTheme } from "./theme";
import { at, clamp, el } from "./util";
import { type Box, View } from "./view";

export class Frame implements State {
  figure: Figure;
  theme: Theme;
  readonly view: View;
  readonly look: Look;
  query = "";
  /** The view has not been moved since it was fitted. */
  fitted = true;
  /** The selection is the page's own and has no card. */
  quiet = false;
  pending = 0;
  readonly connection: Connection;
  readonly host: Host;
  readonly canvas: HTMLCanvasElement;
  readonly minimap: Minimap;
  readonly card: Card;
  readonly tip: Tooltip;
  readonly blank: HTMLParagraphElement;
  readonly stage: HTMLDivElement;
  readonly table: Table;
  readonly notes: HTMLDivElement;
  readonly live: HTMLParagraphElement;
  readonly summary: HTMLParagraphElement;
  readonly header: Header;
  readonly search: Search;
  readonly help: Help;
  readonly legend: Legend;
  readonly tableButton: HTMLButtonElement;
  readonly openButtons: HTMLDivElement;
  readonly devices: Devices;
  aspect: number;

  constructor(readonly make: (data: PanelData) => Figure, public data: PanelData) {
    this.figure = make(data);
    this.theme = readTheme();
    this.view = new View();
    this.view.level = this.figure.level ?? false;
    this.look = { theme: this.theme, selected: -1, hover: -1, hidden: new Set(), found: null, paper: false };
    this.connection = new Connection(this);
    this.host = this.connection.host;
    this.canvas = el("canvas", {
      id: "figure",
      tabindex: 0,
      role: "application",
      "aria-describedby": "summary",
    });
    this.minimap = new Minimap(this);
    this.card = new Card(this);
    this.tip = new Tooltip();
    this.blank = el("p", { id: "blank" });
    this.stage = el("div", { id: "stage" }, this.canvas, this.minimap.element, this.blank, this.card.element);
    this.table = new Table(this);
    this.notes = el("div", { id: "notes" });
    this.live = el("p", { class: "offscreen", "aria-live": "polite", id: "live" });
    this.summary = el("p", { class: "offscreen", id: "summary" });
    this.header = new Header(this);
    this.devices = new Devices(this.header.devices, (panel) => {
      this.put(panel);
    });
    this.devices.choose(data);
    this.search = new Search(this);
    this.help = new Help(this);
    this.legend = new Legend(this);
    this.tableButton = el("button", { type: "button", "aria-pressed": "false", title: "Table of all rows (t)", id: "tableButton" }, "Table");
    this.openButtons = el("div", { class: "group", role: "group", "aria-label": "Groups", id: "openButtons" });
    this.header.tools.append(this.search.element, ...frameButtons(this, this.tableButton, this.openButtons));
    const paper = el("section", { id: "paper", "aria-hidden": "true" });
    document.body.append(
      this.header.element,
      this.legend.element,
      el("main", {}, this.search.groups.element, this.stage, this.table.element),
      this.notes,
      this.connection.status,
      this.live,
      this.summary,
      this.connection.toast,
      this.tip.element,
      this.help.element,
      paper,
    );
    new Pointer(this);
    new Keys(this);
    printOnPaper(this, paper);
    this.aspect = clamp(this.stage.clientWidth / Math.max(1, this.stage.clientHeight), 0.6, 2);
    this.figure.prefer?.(this.aspect);
    recall(this);
    if (this.look.selected < 0) this.begin();
    this.refresh();
    watchTheme(() => {
      this.restyle();
    });
    new ResizeObserver(() => {
      this.resize();
    }).observe(this.stage);
    this.resize();
  }

  /** Shows new data, of what was chosen. */
  load(data: PanelData) {
    this.put(this.devices.choose(data));
  }

  /** Shows a panel and keeps selection, groups and view as far as their items still exist. */
  put(data: PanelData) {
    const before = this.figure;
    const sameFunction = data.function === this.data.function;
    const kept = before.items[this.look.selected]?.key;
    const anchor = this.anchor();
    this.data = data;
    this.figure = this.make(data);
    this.figure.prefer?.(this.aspect);
    this.figure.adopt?.(before);
    const index = new Map(this.figure.items.map((item, i) => [item.key, i]));
    const selected = kept === undefined ? undefined : index.get(kept);
    if (selected === undefined || !sameFunction) this.begin();
    else this.look.selected = this.figure.show(selected, false);
    this.look.hover = -1;
    this.tip.hide();
    this.refresh();
    const there = anchor && index.get(anchor.key);
    const box = there === undefined || there === null ? null : this.figure.boxOf(there);
    if (this.fitted || !sameFunction) this.fit();
    else if (anchor && box && this.figure.uniform > 0) {
      this.view.x += box.x - anchor.box.x;
      this.view.y += box.y - anchor.box.y;
    }
    this.draw();
  }

  /** Selects the first item, without its card where that would cover the picture. */
  begin() {
    this.look.selected = this.figure.first?.() ?? -1;
    this.quiet = !(this.figure.roomy?.(this.stage.clientWidth) ?? true);
  }

  /** The item that keeps its place on the screen: the selected one if it is visible, else the one nearest to the centre. */
  anchor() {
    const a = this.view.area;
    const mx = this.view.wx(a.x + a.w / 2);
    const my = this.view.wy(a.y + a.h / 2);
    let best: { key: string; box: Box } | null = null;
    let least = Infinity;
    for (let i = 0; i < this.figure.items.length; i++) {
      const box = this.figure.boxOf(i);
      if (!box) continue;
      const far = i === this.look.selected && this.view.touches(box) ? -1 : Math.hypot(box.x + box.w / 2 - mx, box.y + box.h / 2 - my);
      if (far < least) {
        least = far;
        best = { key: at(this.figure.items, i).key, box };
      }
    }
    return best;
  }

  /** Updates everything around the figure that shows its data. */
  refresh() {
    const f = this.figure;
    this.header.show(this.data, f.name);
    this.legend.show();
    this.summary.textContent = f.summary;
    this.canvas.setAttribute("aria-label", `${f.name}. ${f.summary}`);
    this.blank.textContent = f.empty;
    this.blank.hidden = f.empty === "";
    this.openButtons.hidden = !f.items.some((_, i) => f.toggleName?.(i));
    this.minimap.element.hidden = !f.minimap;
    this.search.groups.show();
    this.search.find(this.query, false);
    this.notes.replaceChildren(...(f.notes?.(this.theme) ?? []));
    this.notes.hidden = this.notes.childElementCount === 0;
    this.card.show(this.look.selected);
  }

  restyle() {
    this.theme = this.look.theme = readTheme();
    this.legend.show();
    this.notes.replaceChildren(...(this.figure.notes?.(this.theme) ?? []));
    this.card.show(this.look.selected);
    this.draw();
  }

  resize() {
    const w = this.stage.clientWidth;
    const h = this.stage.clientHeight;
    if (w === 0 || h === 0) return;
    const density = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(w * density);
    this.canvas.height = Math.round(h * density);
    const m = this.figure.margins(w, h);
    this.view.area = { x: m.left, y: m.top, w: Math.max(1, w - m.left - m.right), h: Math.max(1, h - m.top - m.bottom) };
    if (this.fitted) this.fit();
    this.drawNow();
  }

  fit() {
    this.view.fit(this.figure.world(), this.figure.uniform);
    this.fitted = true;
    this.draw();
  }

  zoomBy(factor: number, px?: number, py?: number) {
    const a = this.view.area;
    const whole = new View();
    whole.area = a;
    whole.fit(this.figure.world(), this.figure.uniform);
    const most = this.figure.uniform > 0 ? 4 : whole.kx * 400;
    const to = clamp(this.view.kx * factor, Math.min(whole.kx * 0.6, this.view.kx), Math.max(most, this.view.kx));
    const [x, y] = [px ?? a.x + a.w / 2, py ?? a.y + a.h / 2];
    this.view.zoom(x, y, to / this.view.kx);
    if (this.figure.zoomed?.(this.view, factor > 1, x, y)) {
      if (this.look.selected >= 0) this.look.selected = this.figure.show(this.look.selected, false);
      this.card.show(this.look.selected);
      this.remember();
    }
    this.moved();
  }

  moved() {
    this.fitted = false;
    this.tip.hide();
    this.draw();
  }

  /**
   * Selects an item and scrolls it into view.
   * @param i -1 for none
   * @param centre zoom in if the item would be too small to read
   * @param open open the groups around the item
   */
  select(i: number, centre = false, open = true) {
    const was = this.figure.stamp?.();
    const shown = i < 0 ? -1 : this.figure.show(i, open);
    this.look.selected = shown;
    this.quiet = false;
    this.card.show(this.look.selected);
    this.table.mark(shown);
    const item = this.figure.items[shown];
    this.live.textContent = item ? [item.title, item.sub, ...item.rows.map(([n, v]) => `${n} ${v}`)].join(", ") : "Nothing selected";
    const box = shown < 0 ? null : this.figure.boxOf(shown);
    const near = centre && this.figure.uniform > 0 && this.view.kx < 0.3;
    if (box && (near || !this.holdsClear(box) || was !== this.figure.stamp?.())) {
      if (near) this.view.kx = this.view.ky = 0.8;
      this.view.centre(box.x + box.w / 2, box.y + box.h / 2);
      this.view.pan(...this.card.aside());
      this.fitted = false;
    }
    this.card.place(box);
    this.remember();
    this.draw();
  }

  /** Reports whether a box is on the screen and not behind the card. */
  holdsClear(box: Box) {
    if (!this.view.holds(box)) return false;
    if (this.card.element.hidden || this.figure.uniform === 0) return true;
    const card = this.card.element;
    const { view } = this;
    return (
      view.sx(box.x + box.w) < card.offsetLeft ||
      view.sy(box.y + box.h) < card.offsetTop ||
      view.sy(box.y) > card.offsetTop + card.offsetHeight
    );
  }

  selectLine(line: number) {
    // Of the function around the line: the one that is shown, or one that it calls.
    const from = (this.data.functions ?? []).filter((f) => f.line <= line).reduce((last, f) => Math.max(last, f.line), 0);
    let best = -1;
    const items = this.figure.items;
    for (let i = 0; i < items.length; i++) {
      const l = at(items, i).place.line;
      // The last item that begins at or before the line: an op may have several lines.
      if (l > 0 && l >= from && l <= line && (best < 0 || l > at(items, best).place.line)) best = i;
    }
    if (best >= 0 && best !== this.look.selected) this.select(best, false, false);
  }

  reveal(i: number) {
    const item = this.figure.items[i];
    if (item) this.revealPlace(item.place);
  }

  revealPlace(place: Place) {
    if (place.line > 0) this.connection.reveal(place);
  }

  toggle(i: number) {
    if (i < 0 || !this.figure.toggle) return;
    const before = this.figure.boxOf(i);
    if (!this.figure.toggle(i)) return;
    const after = this.figure.boxOf(i);
    if (this.fitted) this.fit();
    else if (before && after) {
      this.view.x += after.x - before.x;
      this.view.y += after.y - before.y;
    }
    this.card.show(this.look.selected);
    this.remember();
    this.draw();
  }

  toggleAll(open: boolean) {
    if (!this.figure.toggleAll) return;
    const key = this.figure.items[this.look.selected]?.key;
    this.figure.toggleAll(open);
    if (key !== undefined) this.look.selected = this.figure.show(this.look.selected, false);
    this.fit();
    this.card.show(this.look.selected);
    this.remember();
  }

  /** Flips the switch of a key; false if there is none. */
  flip(key: string) {
    const found = this.figure.switches?.find((s) => s.key === key);
    if (!found) return false;
    const was = this.figure.stamp?.();
    found.flip();
    if (this.look.selected >= 0) this.look.selected = this.figure.show(this.look.selected, false);
    this.figure.world();
    if (was !== this.figure.stamp?.()) this.fit();
    this.legend.show();
    this.card.show(this.look.selected);
    this.remember();
    this.draw();
    return true;
  }

  showTable(shown: boolean) {
    this.table.show(shown);
    this.stage.hidden = shown;
    this.tableButton.setAttribute("aria-pressed", String(shown));
    if (!shown) {
      this.resize();
      this.canvas.focus();
    }
  }

  /** Moves the keyboard focus to the figure or its table. */
  focus() {
    if (!this.table.shown) this.canvas.focus();
    else this.table.show(true);
  }

  /** Stores the state that recall restores when a web view is shown again. */
  remember() {
    this.host.remember({
      kind: this.data.kind,
      function: this.data.function,
      selected: this.figure.items[this.look.selected]?.key,
      figure: this.figure.remember?.(),
    });
  }

  draw() {
    this.pending ||= requestAnimationFrame(() => {
      this.drawNow();
    });
  }

  drawNow() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const density = window.devicePixelRatio || 1;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const drawn = this.figure.draw(new CanvasPen(context), this.view, this.look);
    // What is on the screen, for tests.
    const v = this.view;
    this.canvas.dataset["drawn"] = String(drawn);
    this.canvas.dataset["view"] = [v.x, v.y, v.kx].map((n) => n.toFixed(3)).join(" ");
    this.minimap.draw();
  }
}
