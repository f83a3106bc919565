import * as assert from "node:assert/strict";
import * as vscode from "vscode";

/** Opens a file of the test workspace in the editor. */
export async function open(name: string): Promise<vscode.TextEditor> {
  const folder = vscode.workspace.workspaceFolders?.[0];
  assert.ok(folder, "the tests need a workspace folder");
  const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder.uri, name));
  return vscode.window.showTextDocument(document);
}

/** A time-out that a loaded machine does not reach. */
const patience = 90_000;

/** Polls until the answer is the expected one; fails with the description of what was expected. */
export async function eventually<T>(what: string, ask: () => T | Promise<T>, good: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + patience;
  for (;;) {
    const value = await ask();
    if (good(value)) return value;
    if (Date.now() > deadline) assert.fail(`${what} never came; the last answer was ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

export function diagnostics(document: vscode.TextDocument): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(document.uri);
}

export function code(diagnostic: vscode.Diagnostic): string {
  const value = diagnostic.code;
  return String(typeof value === "object" ? value.value : value);
}

/** Diagnostics of the lint rules that find wasted movement. */
export function findings(document: vscode.TextDocument): vscode.Diagnostic[] {
  return diagnostics(document).filter((d) => /^DM\d+$/.test(code(d)) && d.severity !== vscode.DiagnosticSeverity.Error);
}

export function errors(document: vscode.TextDocument): vscode.Diagnostic[] {
  return diagnostics(document).filter((d) => d.severity === vscode.DiagnosticSeverity.Error);
}

/** The whole file as a range. */
export function everything(document: vscode.TextDocument): vscode.Range {
  return new vscode.Range(new vscode.Position(0, 0), document.lineAt(document.lineCount - 1).range.end);
}

/** A position inside the first occurrence of a text. */
export function at(document: vscode.TextDocument, text: string): vscode.Position {
  const offset = document.getText().indexOf(text);
  assert.ok(offset >= 0, `${text} is not in ${document.fileName}`);
  return document.positionAt(offset + 1);
}

export async function hints(document: vscode.TextDocument): Promise<vscode.InlayHint[]> {
  const found = await vscode.commands.executeCommand<vscode.InlayHint[] | undefined>(
    "vscode.executeInlayHintProvider",
    document.uri,
    everything(document),
  );
  return found ?? [];
}

export function label(hint: vscode.InlayHint): string {
  return typeof hint.label === "string" ? hint.label : hint.label.map((part) => part.value).join("");
}

export async function lenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
  const found = await vscode.commands.executeCommand<vscode.CodeLens[] | undefined>(
    "vscode.executeCodeLensProvider",
    document.uri,
    100,
  );
  return found ?? [];
}

/** Sets one of the extension's settings in the workspace; undefined removes it. */
export async function set(name: string, value: unknown): Promise<void> {
  await vscode.workspace.getConfiguration("dmir").update(name, value, vscode.ConfigurationTarget.Workspace);
}

/** Reverts edits without a prompt to save. */
export async function revert(editor: vscode.TextEditor): Promise<void> {
  await vscode.window.showTextDocument(editor.document);
  await vscode.commands.executeCommand("workbench.action.files.revert");
}
