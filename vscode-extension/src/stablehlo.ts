import * as vscode from "vscode";
import { holdsStableHLO } from "./mlir";

/** How much of a text is looked at. */
const looked = 1 << 20;

/** Gives programs in StableHLO dmir's language, so that they show their costs; other MLIR files keep theirs. */
export function followStableHLO(): vscode.Disposable {
  const follow = (document: vscode.TextDocument): void => {
    if (!/^(mlir|plaintext)$/.test(document.languageId) || !document.uri.path.endsWith(".mlir") || document.uri.scheme !== "file") return;
    if (!vscode.workspace.getConfiguration("dmir", document).get<boolean>("stablehlo", true)) return;
    const text = document.getText(new vscode.Range(document.positionAt(0), document.positionAt(looked)));
    if (holdsStableHLO(text)) void vscode.languages.setTextDocumentLanguage(document, "dmir");
  };
  vscode.workspace.textDocuments.forEach(follow);
  return vscode.workspace.onDidOpenTextDocument(follow);
}
