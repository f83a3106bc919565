import * as vscode from "vscode";
import { Debounced } from "./debounced";
import { isVersion } from "./editors";
import { type Changes as Answer, type ChangesArguments, type LineChange, request } from "./protocol";
import { errorText, type Server } from "./server";

const afterEditMs = 400;

/** In a diff editor: how much more or less each line takes than on the other side, behind the line. */
export class Changes implements vscode.Disposable {
  private readonly more = behind("charts.red");
  private readonly less = behind("charts.green");
  private readonly asking = new Debounced(afterEditMs, () => void this.ask());
  private readonly subscriptions: vscode.Disposable;
  private turn = 0;

  constructor(private readonly server: Server) {
    const ask = (): void => {
      this.asking.schedule();
    };
    this.subscriptions = vscode.Disposable.from(
      this.more,
      this.less,
      this.asking,
      vscode.window.onDidChangeVisibleTextEditors(ask),
      vscode.window.tabGroups.onDidChangeTabs(ask),
      vscode.workspace.onDidOpenTextDocument(ask),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (isVersion(document)) ask();
      }),
      server.onDidRefresh(ask),
      server.onDidChangeState(ask),
    );
    ask();
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private async ask(): Promise<void> {
    const turn = ++this.turn;
    const compared = vscode.window.tabGroups.all.map((group) => group.activeTab?.input).filter((input) => input instanceof vscode.TabInputTextDiff);
    const shown = new Map<vscode.TextEditor, LineChange[]>();
    for (const { original, modified } of compared) {
      const [before, after] = [editorOf(original), editorOf(modified)];
      if (before === undefined || after === undefined || !this.server.running) continue;
      const args: ChangesArguments = { textDocument: { uri: modified.toString() }, base: { uri: original.toString() } };
      try {
        const { text, base } = await this.server.request<Answer>(request.changes, args);
        shown.set(after, text).set(before, base);
      } catch (err) {
        this.server.log.debug(`changes: ${errorText(err)}`);
      }
    }
    if (turn !== this.turn) return;
    for (const editor of vscode.window.visibleTextEditors.filter((e) => isVersion(e.document))) {
      const of = shown.get(editor) ?? [];
      editor.setDecorations(this.more, of.filter((c) => c.sign > 0).map((c) => painted(editor, c)));
      editor.setDecorations(this.less, of.filter((c) => c.sign <= 0).map((c) => painted(editor, c)));
    }
  }
}

function editorOf(uri: vscode.Uri): vscode.TextEditor | undefined {
  return vscode.window.visibleTextEditors.find((e) => e.document.uri.toString() === uri.toString() && isVersion(e.document));
}

function behind(color: string): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({ after: { color: new vscode.ThemeColor(color), margin: "0 0 0 2ch" } });
}

function painted({ document }: vscode.TextEditor, { line, label, why }: LineChange): vscode.DecorationOptions {
  const { end } = document.lineAt(Math.min(line, document.lineCount - 1)).range;
  return { range: new vscode.Range(end, end), hoverMessage: `${label} (${why})`, renderOptions: { after: { contentText: label } } };
}
