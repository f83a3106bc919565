// A page's connection to its host, and the two lines of text that report on it.
import type { PanelData, Place } from "./data";
import { connectHost, copyText, type Host } from "./host";
import { el } from "./util";

/** What receives the host's messages. */
interface Receiver {
  readonly data: PanelData;
  load(data: PanelData): void;
  selectLine(line: number): void;
}

export class Connection {
  readonly host: Host;
  /** The error of the connection, as long as it lasts. */
  readonly status = el("p", { id: "status", role: "status" });
  /** A message for a few seconds. */
  readonly toast = el("p", { id: "toast", role: "status" });
  private hiding = 0;

  constructor(readonly page: Receiver) {
    this.status.hidden = true;
    this.toast.hidden = true;
    this.host = connectHost(
      (message) => {
        if (message.type === "data") page.load(message.data);
        else page.selectLine(message.line);
      },
      (trouble) => {
        this.status.textContent = trouble;
        this.status.hidden = trouble === "";
      },
    );
  }

  /**
   * Shows a place in the editor; a page without one shows and copies its name.
   * @param version the version of a comparison that the place is in, and the name of its file
   */
  reveal(place: Place, version?: { choice: string; file: string }) {
    if (this.host.kind !== "file") {
      const other = version === undefined || version.choice === "text" ? {} : { version: version.choice };
      this.host.post({ type: "reveal", line: place.line, column: place.column, endColumn: place.end_column, ...other });
      return;
    }
    const text = `${version?.file ?? this.page.data.file}:${place.line}:${place.column}`;
    copyText(text, (copied) => {
      this.notify(copied ? `${text} (copied)` : text);
    });
  }

  notify(text: string) {
    this.toast.textContent = text;
    this.toast.hidden = false;
    clearTimeout(this.hiding);
    this.hiding = setTimeout(() => {
      this.toast.hidden = true;
    }, 4000);
  }
}
