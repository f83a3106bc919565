import * as vscode from "vscode";
import { isVersion } from "./editors";
import { Debounced } from "./debounced";
import { type HeatArguments, type HeatSpan, request } from "./protocol";
import { errorText, type Server } from "./server";
import { heatScale } from "./settings";
import { linesInView } from "./visible";

const levels = 10;
/** The lowest level that is shown in the overview ruler. */
const hot = 5;
const afterEditMs = 300;

/** Tints the lines of the visible editors by their share of the function's time, bytes or waste. */
export class Heat implements vscode.Disposable {
  private readonly tints = Array.from({ length: levels }, (_, level) => tint(level));
  private readonly painting = new Debounced(afterEditMs, () => void this.paintAll());
  private readonly subscriptions: vscode.Disposable;
  private turn = 0;

  constructor(private readonly server: Server) {
    const paint = (): void => {
      this.painting.schedule();
    };
    this.subscriptions = vscode.Disposable.from(
      ...this.tints,
      this.painting,
      vscode.window.onDidChangeVisibleTextEditors(paint),
      vscode.workspace.onDidOpenTextDocument(paint), // also when a document gets another language
      vscode.window.onDidChangeTextEditorVisibleRanges(({ textEditor: { document }, visibleRanges }) => {
        if (isVersion(document) && linesInView(document.lineCount, visibleRanges) !== undefined) paint();
      }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document.languageId === "dmir") paint();
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("dmir.heat")) paint();
      }),
      server.onDidRefresh(paint),
      server.onDidChangeState(paint),
    );
    paint();
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private async paintAll(): Promise<void> {
    const turn = ++this.turn;
    for (const editor of vscode.window.visibleTextEditors) {
      if (!isVersion(editor.document)) continue;
      const spans = await this.spans(editor);
      if (turn !== this.turn) return;
      if (spans === undefined) continue; // the last decorations stay and move with the text
      for (const [level, decoration] of this.tints.entries()) {
        editor.setDecorations(
          decoration,
          spans.filter((span) => Math.min(Math.max(span.level, 0), levels - 1) === level).map(painted),
        );
      }
    }
  }

  /** Requests the spans of a document; undefined if the request fails. */
  private async spans({ document, visibleRanges }: vscode.TextEditor): Promise<HeatSpan[] | undefined> {
    const by = heatScale(document.uri);
    if (by === "off") return [];
    if (!this.server.running) return undefined;
    const args: HeatArguments = { textDocument: { uri: document.uri.toString() }, by };
    const part = linesInView(document.lineCount, visibleRanges);
    if (part !== undefined) {
      const { end } = document.lineAt(part.last).range;
      args.range = { start: { line: part.first, character: 0 }, end: { line: end.line, character: end.character } };
    }
    try {
      return await this.server.request<HeatSpan[]>(request.heat, args);
    } catch (err) {
      this.server.log.debug(`heat: ${errorText(err)}`);
      return undefined;
    }
  }
}

function tint(level: number): vscode.TextEditorDecorationType {
  const color = new vscode.ThemeColor(`dmir.heat${level}`);
  return vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: color,
    ...(level >= hot ? { overviewRulerColor: color, overviewRulerLane: vscode.OverviewRulerLane.Left } : {}),
  });
}

function painted({ range, text }: HeatSpan): vscode.DecorationOptions {
  const { start, end } = range;
  return { range: new vscode.Range(start.line, start.character, end.line, end.character), hoverMessage: text };
}
