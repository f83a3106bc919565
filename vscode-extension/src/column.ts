import * as vscode from "vscode";
import { blankColumn, columnText, columnWidth, linesToDraw, moved } from "./columnLines";
import { Debounced } from "./debounced";
import { type ColumnHint, type HintsArguments, request } from "./protocol";
import { errorText, type Server } from "./server";
import { heatScale, hintsOnTheLeft, mayHaveHints } from "./settings";

const afterEditMs = 200;

/**
 * A column of times and bytes at the left of the code, instead of inlay hints after the lines: never off the screen, and aligned.
 * Every line on the screen has it, blank where there is nothing to tell, so that the code stays aligned. It is drawn in front of
 * the first character and is no part of the text.
 */
export class Column implements vscode.Disposable {
  private readonly decoration = vscode.window.createTextEditorDecorationType({ rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed });
  private readonly hints = new Map<string, Map<number, ColumnHint>>();
  private readonly asking = new Debounced(afterEditMs, () => void this.askAll());
  private readonly subscriptions: vscode.Disposable;
  private turn = 0;

  constructor(private readonly server: Server) {
    const ask = (): void => {
      this.asking.schedule();
    };
    const redraw = (): void => {
      this.drawAll();
      ask();
    };
    this.subscriptions = vscode.Disposable.from(
      this.decoration,
      this.asking,
      vscode.window.onDidChangeVisibleTextEditors(redraw),
      vscode.workspace.onDidOpenTextDocument(redraw), // also when a document gets another language
      vscode.window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => {
        this.draw(textEditor);
        if (hintsOnTheLeft(textEditor.document)) ask();
      }),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (!mayHaveHints(document) || contentChanges.length === 0) return;
        ask(); // also before the first answer, which is of an older text
        const key = document.uri.toString();
        const before = this.hints.get(key);
        if (before === undefined) return;
        this.hints.set(key, contentChanges.reduce(moved, before));
        this.drawAll(document);
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.hints.delete(document.uri.toString());
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (!["dmir.hints", "dmir.heat", "editor.inlayHints"].some((name) => event.affectsConfiguration(name))) return;
        redraw();
        server.refreshHints();
      }),
      server.onDidRefresh(ask),
      server.onDidChangeState(ask),
    );
    redraw();
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  /** Requests the hints of the lines on the screen; the last ones stay where that fails. */
  private async askAll(): Promise<void> {
    const turn = ++this.turn;
    // A document has one map of hints, whatever the number of its editors.
    for (const document of new Set(vscode.window.visibleTextEditors.map((editor) => editor.document))) {
      if (!hintsOnTheLeft(document) || !this.server.running) continue;
      const { version } = document;
      const visible = vscode.window.visibleTextEditors.filter((e) => e.document === document).flatMap((e) => e.visibleRanges);
      const args: HintsArguments = {
        textDocument: { uri: document.uri.toString() },
        by: "time",
        ranges: linesToDraw(document.lineCount, visible).map(({ first, last }) => ({
          start: { line: first, character: 0 },
          end: { line: last, character: 0 },
        })),
      };
      if (args.ranges.length === 0) continue; // the editor is not drawn yet
      let answer: ColumnHint[] | null;
      try {
        answer = await this.server.request<ColumnHint[] | null>(request.hints, args);
      } catch (err) {
        this.server.log.debug(`hints: ${errorText(err)}`);
        continue;
      }
      if (turn !== this.turn) return; // what came between asks again
      if (version !== document.version || document.isClosed) continue;
      // A Python file without a trace has no column.
      if (answer === null) this.hints.delete(document.uri.toString());
      else this.hints.set(document.uri.toString(), new Map(answer.map((hint) => [hint.line, hint])));
      this.drawAll(document);
    }
  }

  private drawAll(document?: vscode.TextDocument): void {
    for (const editor of vscode.window.visibleTextEditors) {
      if (document === undefined || editor.document === document) this.draw(editor);
    }
  }

  private draw(editor: vscode.TextEditor): void {
    const { document } = editor;
    if (!mayHaveHints(document)) return;
    const drawn: vscode.DecorationOptions[] = [];
    const hints = this.hints.get(document.uri.toString());
    // Without an answer there is no column: a document that the server does not follow stays as it is.
    if (hints !== undefined && hintsOnTheLeft(document)) {
      const tinted = heatScale(document.uri) === "off"; // else the whole line is
      for (const { first, last } of linesToDraw(document.lineCount, editor.visibleRanges)) {
        for (let line = first; line <= last; line++) drawn.push(decorated(line, hints.get(line), tinted));
      }
    }
    editor.setDecorations(this.decoration, drawn);
  }
}

function decorated(line: number, hint: ColumnHint | undefined, tinted: boolean): vscode.DecorationOptions {
  const before: vscode.ThemableDecorationAttachmentRenderOptions = {
    contentText: hint === undefined ? blankColumn : columnText(hint.label),
    width: `${columnWidth}ch`,
    margin: "0 1ch 0 0",
    fontStyle: "normal",
    fontWeight: "normal",
  };
  if (hint !== undefined) before.color = new vscode.ThemeColor(hint.measured ? "dmir.hintMeasured" : "dmir.hint");
  // Of the text before an error: still shown, but dimmed. The options have no opacity of their own.
  if (hint?.stale === true) before.textDecoration = "none; opacity: 0.55";
  if (tinted && hint?.level !== undefined) before.backgroundColor = new vscode.ThemeColor(`dmir.heat${hint.level}`);
  return {
    range: new vscode.Range(line, 0, line, 0),
    renderOptions: { before },
    ...(hint === undefined || hint.tooltip === "" ? {} : { hoverMessage: new vscode.MarkdownString(hint.tooltip) }),
  };
}
