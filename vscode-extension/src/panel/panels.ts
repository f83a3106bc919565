import * as vscode from "vscode";
import { command, isPanelKind, type PanelArguments, type PanelResult } from "../protocol";
import { errorText, type Server, ServerUnavailable } from "../server";
import { scheme } from "../views";
import { panelOf } from "./page";
import { Panel, viewType } from "./panel";

/** The panels of this window: movement graphs, rooflines, memory plans, meshes, timelines, plans, comparisons and histories. */
export class Panels implements vscode.WebviewPanelSerializer, vscode.Disposable {
  private readonly open = new Set<Panel>();
  private readonly subscriptions: vscode.Disposable;

  constructor(
    private readonly server: Server,
    private readonly icon: { light: vscode.Uri; dark: vscode.Uri },
  ) {
    this.subscriptions = vscode.Disposable.from(
      vscode.window.registerWebviewPanelSerializer(viewType, this),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        this.changed(document.uri.toString());
      }),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => {
        this.changed(uri.toString());
      }),
      server.onDidRefresh(() => {
        this.changed();
      }),
      server.onDidChangeState(() => {
        if (server.running) this.changed();
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor, selections }) => {
        const [first] = selections;
        const uri = textEditor.document.uri.toString();
        for (const panel of this.open) if (first !== undefined && panel.uri === uri) panel.moved(first);
      }),
    );
  }

  /** Shows a panel beside the text; an open panel of the same kind and file is reused. */
  async show(args: PanelArguments): Promise<void> {
    const there = [...this.open].find((panel) => panel.is(args));
    try {
      if (there !== undefined) {
        there.show();
        await there.draw(args);
        return;
      }
      if (!(await this.server.start())) return;
      const result = await this.server.execute<PanelResult>(command.panel, args); // before there is a tab: the function may have no such panel
      // A virtual document is beside the text already; another group would leave little room for each.
      const beside = vscode.window.activeTextEditor?.document.uri.scheme === scheme;
      const place = { viewColumn: beside ? vscode.ViewColumn.Active : vscode.ViewColumn.Beside, preserveFocus: true };
      const webview = vscode.window.createWebviewPanel(viewType, "dmir", place, { retainContextWhenHidden: true });
      this.adopt(webview, args).display(result, args);
    } catch (err) {
      if (!(err instanceof ServerUnavailable)) void vscode.window.showErrorMessage(errorText(err));
    }
  }

  /** Restores a panel that was open when the window was closed. */
  async deserializeWebviewPanel(webview: vscode.WebviewPanel, state: unknown): Promise<void> {
    const args = panelOf(state, isPanelKind);
    if (args === undefined) webview.dispose();
    else await this.adopt(webview, args).drawOrExplain(args);
  }

  dispose(): void {
    this.subscriptions.dispose();
    for (const panel of this.open) panel.dispose();
    this.open.clear();
  }

  private adopt(webview: vscode.WebviewPanel, args: PanelArguments): Panel {
    const panel = new Panel(this.server, webview, args);
    webview.iconPath = this.icon;
    this.open.add(panel);
    webview.onDidDispose(() => {
      panel.dispose();
      this.open.delete(panel);
    });
    return panel;
  }

  /** Schedules a refresh of the panels of a file, or of all panels. */
  private changed(uri?: string): void {
    for (const panel of this.open) if (uri === undefined || panel.uri === uri) panel.changed();
  }
}
