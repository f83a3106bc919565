// The code actions that were applied to a document: when, what each saved, and a button that reverts it.
import { Connection } from "./connection";
import type { Applied, Delta, PanelData } from "./data";
import { change } from "./diff";
import { keepFocus } from "./focus";
import { Header } from "./header";
import type { Host } from "./host";
import { readTheme, watchTheme } from "./theme";
import { el } from "./util";

export class HistoryPage {
  readonly host: Host;
  readonly connection: Connection;
  readonly header: Header;
  readonly body = el("main", { id: "history" });

  constructor(public data: PanelData) {
    readTheme();
    watchTheme(() => {
      readTheme();
    });
    this.connection = new Connection(this);
    this.host = this.connection.host;
    this.header = new Header(this);
    document.body.append(this.header.element, this.body, this.connection.status, this.connection.toast);
    this.show();
  }

  load(data: PanelData) {
    this.data = data;
    keepFocus(this.body, () => {
      this.show();
    });
  }

  show() {
    this.header.show(this.data, "History");
    const list = this.data.history?.applied ?? [];
    if (list.length === 0) {
      this.body.replaceChildren(
        el("p", { class: "none" }, "No fix or refactoring of dmir was applied since the file was opened."),
        el("p", { class: "note" }, "Apply one from the light bulb or with “Apply all safe fixes”: it is listed here with the bytes and the time that it saves, and can be reverted later."),
      );
      return;
    }
    this.body.replaceChildren(el("table", {}, el("caption", {}, "The last one first, with what it changed in each function"), el("tbody", {}, ...list.map((a) => this.row(a)))));
  }

  row(a: Applied): HTMLElement {
    const place = el("button", { type: "button", "data-part": "place", title: "Show in the text", onclick: () => { this.connection.reveal(a); } }, a.lines);
    const state = a.state === "reverted" ? "reverted" : a.note;
    const revert = a.state === "applied" && this.host.kind !== "file" ? el("button", { type: "button", "data-part": "revert", title: "Take this one change back; later edits stay", onclick: () => { this.host.post({ type: "revert", id: a.id }); } }, "Revert") : "";
    const gains = (a.saved ?? []).map((g) => el("div", { class: "gain" }, el("b", {}, `@${g.function}`), quantity("moved", g.moved_bytes), quantity("time", g.time_ns), quantity("peak", g.peak_bytes)));
    return el("tr", { class: a.state, "data-key": a.id },
      el("td", { class: "note" }, a.at),
      el("td", {}, el("div", { class: "head" }, el("b", { class: "title" }, a.title), a.state === "reverted" ? "" : place, el("span", { class: "status" }, state)), ...(gains.length > 0 ? gains : [el("div", { class: "note" }, "no function costs anything else")])),
      el("td", {}, revert),
    );
  }

  selectLine() {
    // The cursor is in no entry.
  }
}

/** A quantity before and after, and its change; nothing where it is the same. */
function quantity(name: string, d: Delta) {
  if (d.change === 0 || d.old_label === d.new_label) return "";
  return el("span", {}, `${name} ${d.old_label} → ${d.new_label} `, change(d));
}
