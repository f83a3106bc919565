// The help dialog.
import { el } from "./util";

export class Help {
  readonly element: HTMLDialogElement;

  constructor(readonly page: { figure: { keys: string[][]; about: string } }) {
    this.element = el("dialog", { id: "help", "aria-label": "Keys" });
    this.element.addEventListener("click", (e) => {
      if (e.target === this.element) this.element.close();
    });
    this.element.addEventListener("keydown", (e) => {
      if (e.key === "?") this.element.close();
    });
  }

  get shown() {
    return this.element.open;
  }

  open() {
    const rows = this.page.figure.keys.map(([keys, what]) =>
      el("tr", {}, el("th", { scope: "row" }, ...(keys ?? "").split(" ").map((k) => el("kbd", {}, k))), el("td", {}, what ?? "")),
    );
    const close = el("button", { type: "button", autofocus: true, onclick: () => { this.element.close(); } }, "Close");
    this.element.replaceChildren(el("h2", {}, "What is shown"), el("p", {}, this.page.figure.about), el("h2", {}, "Keys"), el("table", {}, el("tbody", {}, ...rows)), close);
    this.element.showModal();
  }
}

export const figureKeys = [
  ["Enter", "show in the text"],
  ["/", "search; Enter and Shift+Enter step through the matches"],
  ["n N", "next and previous match"],
  ["g", "group by module, by line or not, where the program was traced from Python"],
  ["+ − 0", "zoom in, out, show all"],
  ["Shift+↑ …", "pan; dragging does the same"],
  ["Home End", "first and last"],
  ["t", "table of all rows"],
  ["Esc", "end the search, clear the selection"],
];
