import * as vscode from "vscode";
import { command, type CostArguments, type CostResult } from "./protocol";
import { errorText, type Server } from "./server";
import { costAddress, costArguments, costScheme } from "./costUri";

/** Shows the server's cost tables as read-only documents that follow the file and the target. */
export class CostView implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly subscriptions: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.subscriptions = vscode.Disposable.from(
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(costScheme, this),
      vscode.workspace.onDidSaveTextDocument((saved) => {
        this.refresh((args) => args.uri === saved.uri.toString());
      }),
      server.onDidRefresh(() => {
        this.refresh(() => true);
      }),
    );
  }

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    const args = costArguments(uri.query);
    if (args === undefined) return "The address of this document names no program.";
    try {
      const cost = await this.server.execute<CostResult>(command.cost, args, token);
      return cost.text;
    } catch (err) {
      return errorText(err);
    }
  }

  /** Opens the table beside the file, or refreshes it if it is open. */
  async show(args: CostArguments): Promise<void> {
    const uri = vscode.Uri.from({ scheme: costScheme, ...costAddress(args) });
    this.changed.fire(uri);
    const document = await vscode.languages.setTextDocumentLanguage(await vscode.workspace.openTextDocument(uri), "dmir-cost");
    await vscode.window.showTextDocument(document, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
      preview: true,
    });
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private refresh(concerns: (args: CostArguments) => boolean): void {
    for (const { uri } of vscode.workspace.textDocuments) {
      if (uri.scheme !== costScheme) continue;
      const args = costArguments(uri.query);
      if (args !== undefined && concerns(args)) this.changed.fire(uri);
    }
  }
}
