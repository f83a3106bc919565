import * as vscode from "vscode";
import { command, type RunArguments } from "./protocol";

/** A function that the server offers to run, with where it stands and the arguments that name it. */
interface Runnable {
  range: vscode.Range;
  args: RunArguments;
}

/**
 * The function at the cursor, or the only one, or the one a person picks.
 * The server says which functions there are: its lenses carry the arguments, its symbols the extent.
 */
export async function chooseFunction(editor: vscode.TextEditor): Promise<RunArguments | undefined> {
  const uri = editor.document.uri;
  const runnables = await runnableFunctions(uri);
  if (runnables.length === 0) {
    void vscode.window.showInformationMessage("This file has no function to run.");
    return undefined;
  }
  const cursor = editor.selection.active;
  const here = (await enclosing(uri, cursor)) ?? new vscode.Range(cursor, cursor);
  const atCursor = runnables.find((r) => r.range.intersection(here) !== undefined);
  if (atCursor !== undefined || runnables.length === 1) return (atCursor ?? runnables[0])?.args;

  const picked = await vscode.window.showQuickPick(
    runnables.map((r) => ({ label: r.args.func, description: `line ${r.range.start.line + 1}`, args: r.args })),
    { placeHolder: "Function to run" },
  );
  return picked?.args;
}

async function runnableFunctions(uri: vscode.Uri): Promise<Runnable[]> {
  const lenses = await vscode.commands.executeCommand<vscode.CodeLens[] | undefined>(
    "vscode.executeCodeLensProvider",
    uri,
    Number.MAX_SAFE_INTEGER,
  );
  return (lenses ?? []).flatMap((lens) => {
    const args = lens.command?.command === command.run ? (lens.command.arguments?.[0] as RunArguments | undefined) : undefined;
    return args === undefined ? [] : [{ range: lens.range, args }];
  });
}

async function enclosing(uri: vscode.Uri, position: vscode.Position): Promise<vscode.Range | undefined> {
  const symbols = await vscode.commands.executeCommand<vscode.DocumentSymbol[] | undefined>(
    "vscode.executeDocumentSymbolProvider",
    uri,
  );
  return innermostFunction(symbols ?? [], position);
}

function innermostFunction(symbols: vscode.DocumentSymbol[], position: vscode.Position): vscode.Range | undefined {
  const around = symbols.find((s) => s.range.contains(position));
  if (around === undefined) return undefined;
  const inner = innermostFunction(around.children, position);
  return inner ?? (around.kind === vscode.SymbolKind.Function ? around.range : undefined);
}
