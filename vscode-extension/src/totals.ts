import * as vscode from "vscode";
import { isProgram } from "./editors";
import { functionAt, type FunctionInfo, functionsOf } from "./functions";
import { Debounced } from "./debounced";
import { errorText, type Server } from "./server";

const afterEditMs = 500;
const afterMoveMs = 60;

/** The status-bar item with the totals of the function at the cursor. */
export class Totals implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("dmir.totals", vscode.StatusBarAlignment.Right, 101);
  private readonly reading = new Debounced(afterEditMs, () => void this.read());
  private readonly showing = new Debounced(afterMoveMs, () => void this.show());
  private readonly subscriptions: vscode.Disposable;
  private known: { document: vscode.TextDocument; functions: FunctionInfo[] } | undefined;
  private turn = 0;
  private shows = 0;

  constructor(private readonly server: Server) {
    this.item.name = "dmir: costs of the function at the cursor";
    this.item.command = "dmir.showCost";
    const read = (): void => {
      this.reading.schedule();
    };
    this.subscriptions = vscode.Disposable.from(
      this.item,
      this.reading,
      this.showing,
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.showing.schedule();
        read();
      }),
      vscode.workspace.onDidOpenTextDocument(read), // also when a document gets another language
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === vscode.window.activeTextEditor) this.showing.schedule();
      }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document === vscode.window.activeTextEditor?.document) read();
      }),
      server.onDidRefresh(read),
      server.onDidChangeState(read),
    );
    read();
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private async read(): Promise<void> {
    const turn = ++this.turn;
    const document = vscode.window.activeTextEditor?.document;
    const wanted = document !== undefined && isProgram(document) && this.server.running;
    const known = wanted ? { document, functions: await this.functions(document) } : undefined;
    if (turn !== this.turn) return;
    this.known = known;
    await this.show();
  }

  private async functions(document: vscode.TextDocument): Promise<FunctionInfo[]> {
    try {
      return await functionsOf(this.server, document.uri);
    } catch (err) {
      this.server.log.debug(`totals: ${errorText(err)}`);
      return [];
    }
  }

  private async show(): Promise<void> {
    const turn = ++this.shows;
    const editor = vscode.window.activeTextEditor;
    const here =
      editor !== undefined && editor.document === this.known?.document
        ? functionAt(this.known.functions, editor.selection.active)
        : undefined;
    const totals = await here?.totals().catch(() => "");
    if (turn !== this.shows) return;
    if (here === undefined || totals === undefined || totals === "") {
      this.item.hide();
      return;
    }
    // The item of the machine is next to this one.
    this.item.text = `@${here.name} ${totals.replace(/ on \S+$/, "")}`;
    this.item.tooltip = `Cost of @${here.name}: ${totals}. Click for its ops.`;
    this.item.show();
  }
}
