import * as vscode from "vscode";
import type { Server } from "./server";

/** Reports whether a document is a program of the user's, saved or not, which the server follows. */
export function isProgram(document: vscode.TextDocument): boolean {
  return document.languageId === "dmir" && ["file", "untitled"].includes(document.uri.scheme);
}

/** Reports whether a document is a program or an older version of one, as a diff editor shows it. */
export function isVersion(document: vscode.TextDocument): boolean {
  return isProgram(document) || (document.languageId === "dmir" && document.uri.scheme === "git");
}

/** The active dmir editor, or a visible one; if there is none, shows a message and returns undefined. */
export function dmirEditor(): vscode.TextEditor | undefined {
  const active = vscode.window.activeTextEditor;
  const candidates = active === undefined ? vscode.window.visibleTextEditors : [active, ...vscode.window.visibleTextEditors];
  const editor = candidates.find((e) => isProgram(e.document));
  if (editor === undefined) void vscode.window.showInformationMessage("Open a .dmir file first.");
  return editor;
}

/** Opens the example of the walkthrough as a new file beside the active editor. */
export async function openExample(extension: vscode.Uri): Promise<void> {
  const bytes = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(extension, "walkthrough", "example.dmir"));
  const document = await vscode.workspace.openTextDocument({ language: "dmir", content: Buffer.from(bytes).toString("utf8") });
  await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside });
}

const fixAll = "source.fixAll.dmir";

/** Applies every safe fix of a file at once. */
export async function applySafeFixes(document: vscode.TextDocument): Promise<void> {
  const whole = document.validateRange(new vscode.Range(0, 0, document.lineCount, 0));
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", document.uri, whole, fixAll, 1);
  const edit = actions.find((action) => action.edit !== undefined)?.edit;
  if (edit === undefined) void vscode.window.showInformationMessage("This file has no safe fixes beyond what the compiler does by itself.");
  else if (!(await vscode.workspace.applyEdit(edit))) void vscode.window.showWarningMessage("The file has changed meanwhile. Apply the fixes again.");
}

/** Folds the signatures and ops that take several lines, which are mostly types. */
export async function foldTypes(server: Server, editor: vscode.TextEditor): Promise<void> {
  const textDocument = { uri: editor.document.uri.toString() };
  // The client drops the kinds that VS Code does not have.
  const ranges = await server.request<{ startLine: number; kind?: string }[] | null>("textDocument/foldingRange", { textDocument });
  const selectionLines = (ranges ?? []).filter(({ kind }) => kind === "types").map(({ startLine }) => startLine);
  if (selectionLines.length === 0) return;
  await vscode.window.showTextDocument(editor.document, editor.viewColumn);
  await vscode.commands.executeCommand("editor.fold", { selectionLines, levels: 1 });
}
