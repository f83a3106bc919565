import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { Debounced } from "../debounced";
import { command, type PanelArguments, type PanelData, type PanelResult, request } from "../protocol";
import { errorText, type Server } from "../server";
import { comparisonOf, functionOf, type Reveal, revealOf, revertOf } from "./messages";
import { embed, errorPage, titleOf } from "./page";

export const viewType = "dmir.panel";

const afterEditMs = 300;
const afterMoveMs = 80;

/** A panel: a page of the server in a webview, which follows the text and the cursor. */
export class Panel implements vscode.Disposable {
  private readonly refreshing = new Debounced(afterEditMs, () => void this.refresh());
  private readonly selecting = new Debounced(afterMoveMs, () => {
    void this.panel.webview.postMessage({ type: "select", line: this.line });
  });
  private line = 1;
  private drawn = false;
  private missed = false;
  private turn = 0;
  private shown: vscode.Range | undefined;

  constructor(
    private readonly server: Server,
    private readonly panel: vscode.WebviewPanel,
    private args: PanelArguments,
  ) {
    panel.webview.options = { enableScripts: true, enableCommandUris: false, localResourceRoots: [] };
    panel.webview.onDidReceiveMessage((message: unknown) => {
      const place = revealOf(message);
      if (place !== undefined) void this.reveal(place);
      const func = functionOf(message);
      if (func !== undefined) void this.showOther({ function: func });
      const versions = comparisonOf(message);
      if (versions !== undefined) void this.showOther(versions);
      const entry = revertOf(message);
      if (entry !== undefined) void this.revert(entry);
    });
    panel.onDidChangeViewState(() => {
      if (panel.visible && this.missed) this.refreshing.schedule();
    });
  }

  get uri(): string {
    return this.args.uri;
  }

  is(args: PanelArguments): boolean {
    return this.args.uri === args.uri && this.args.kind === args.kind;
  }

  /** Loads the page; rejects with the server's error. */
  async draw(args: PanelArguments): Promise<void> {
    const turn = ++this.turn;
    const result = await this.server.execute<PanelResult>(command.panel, args);
    if (turn === this.turn) this.display(result, args);
  }

  /** Shows a page. */
  display(result: PanelResult, args: PanelArguments): void {
    this.args = result.function === undefined || result.function === "" ? args : { ...args, function: result.function };
    this.panel.webview.html = embed(result.html, randomBytes(18).toString("base64"), this.args);
    this.drawn = true;
    this.missed = false;
    this.name(true);
  }

  /** Like draw, but shows an error as a page. */
  async drawOrExplain(args: PanelArguments): Promise<void> {
    try {
      await this.draw(args);
    } catch (err) {
      this.panel.webview.html = embed(errorPage(errorText(err)), randomBytes(18).toString("base64"), args);
      this.name(false);
    }
  }

  /** Schedules a refresh after a change of the program or its settings. */
  changed(): void {
    this.refreshing.schedule();
  }

  /** Sends the position of the cursor to the page, except after a selection that the page itself requested. */
  moved(selection: vscode.Selection): void {
    const own = this.shown?.isEqual(selection) === true;
    this.shown = undefined;
    if (own) return;
    this.line = selection.active.line + 1;
    this.selecting.schedule();
  }

  show(): void {
    this.panel.reveal(undefined, true);
  }

  dispose(): void {
    this.refreshing.dispose();
    this.selecting.dispose();
  }

  private async refresh(): Promise<void> {
    if (!this.panel.visible) {
      this.missed = true;
      return;
    }
    this.missed = false;
    if (!this.drawn) return this.drawOrExplain(this.args);
    const turn = ++this.turn;
    try {
      const { data } = await this.server.request<PanelData>(request.panelData, this.args);
      if (turn !== this.turn) return;
      await this.panel.webview.postMessage({ type: "data", data });
      this.name(true);
    } catch (err) {
      // During an edit the function may be missing: the last drawing stays and is marked as old.
      this.server.log.debug(`panel: ${errorText(err)}`);
      if (turn === this.turn) this.name(false);
    }
  }

  /** Shows another function of the same file or other versions, which the page requested. */
  private async showOther(change: Partial<PanelArguments>): Promise<void> {
    const was = this.args;
    const args: PanelArguments = { ...was, ...change };
    if (args.function === "") delete args.function;
    this.args = args; // also what an edit before the answer refreshes
    const turn = ++this.turn;
    try {
      const { data } = await this.server.request<PanelData>(request.panelData, args);
      if (turn !== this.turn) return;
      await this.panel.webview.postMessage({ type: "data", data });
      this.name(true);
    } catch (err) {
      if (this.args === args) this.args = was;
      void vscode.window.showErrorMessage(errorText(err));
      this.changed(); // the page waits for an answer
    }
  }

  /** Sets the title of the tab; current is false if the drawing is out of date. */
  private name(current: boolean): void {
    const title = titleOf(this.args);
    this.panel.title = current ? title : `${title} (old)`;
  }

  /** Takes an applied code action back, by an edit that the server requests. */
  private async revert(id: number): Promise<void> {
    try {
      await this.server.execute(command.revert, { uri: this.args.uri, id });
    } catch (err) {
      void vscode.window.showErrorMessage(errorText(err));
    }
  }

  private async reveal(place: Reveal): Promise<void> {
    const uri = vscode.Uri.parse(this.args.uri);
    try {
      if (place.version !== undefined) {
        const { uri: of, function: func } = this.args;
        const first = place.line - 1;
        await this.server.execute(command.reveal, { uri: of, first, last: first, version: place.version, ...(func === undefined ? {} : { function: func }) });
        return;
      }
      const visible = vscode.window.visibleTextEditors.find((e) => e.document.uri.toString() === uri.toString());
      const editor =
        visible ??
        (await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), {
          viewColumn: this.panel.viewColumn === vscode.ViewColumn.One ? vscode.ViewColumn.Beside : vscode.ViewColumn.One,
          preserveFocus: true,
        }));
      const line = place.line - 1;
      const range = editor.document.validateRange(new vscode.Range(line, place.column - 1, line, place.endColumn - 1));
      this.shown = range;
      editor.selection = new vscode.Selection(range.start, range.end);
      editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    } catch (err) {
      void vscode.window.showErrorMessage(errorText(err));
    }
  }
}
