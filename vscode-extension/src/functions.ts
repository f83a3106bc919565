import * as vscode from "vscode";
import { command, type CostArguments, type RunArguments } from "./protocol";

/** A function of a file, as the server tells of it: its lenses carry the arguments and the totals, its symbols the extent. */
export interface FunctionInfo {
  name: string;
  range: vscode.Range;
  /** Arguments that run it; undefined where the server does not offer to. */
  run: RunArguments | undefined;
  /** What it costs, in one line; empty where the server does not say. */
  totals: string;
}

/** The functions with a body of a file, in the order of the text. */
export async function functionsOf(uri: vscode.Uri): Promise<FunctionInfo[]> {
  const [lenses, symbols] = await Promise.all([
    vscode.commands.executeCommand<vscode.CodeLens[] | undefined>("vscode.executeCodeLensProvider", uri, Number.MAX_SAFE_INTEGER),
    vscode.commands.executeCommand<vscode.DocumentSymbol[] | undefined>("vscode.executeDocumentSymbolProvider", uri),
  ]);
  const extents = extentsOf(symbols ?? []);
  const found = new Map<number, FunctionInfo>();
  for (const { range, command: what } of lenses ?? []) {
    if (what === undefined) continue;
    const line = range.start.line;
    const info = found.get(line) ?? { name: "", range: extents.get(line) ?? range, run: undefined, totals: "" };
    if (what.command === command.run) info.run = what.arguments?.[0] as RunArguments;
    if (what.command === command.cost) info.name = (what.arguments?.[0] as CostArguments).func ?? "";
    if (what.command === "") info.totals = what.title;
    found.set(line, info);
  }
  return [...found.values()].filter((f) => f.name !== "").sort((a, b) => a.range.start.compareTo(b.range.start));
}

/** The function that a place is in. */
export function functionAt(functions: FunctionInfo[], place: vscode.Position): FunctionInfo | undefined {
  return functions.findLast((f) => f.range.contains(place));
}

/** The function at the cursor, or the only one, or the one a person picks. */
export async function chooseFunction(editor: vscode.TextEditor): Promise<RunArguments | undefined> {
  const functions = (await functionsOf(editor.document.uri)).filter((f) => f.run !== undefined);
  const [first] = functions;
  if (first === undefined) {
    void vscode.window.showInformationMessage("This file has no function to run.");
    return undefined;
  }
  const here = functionAt(functions, editor.selection.active);
  if (here !== undefined || functions.length === 1) return (here ?? first).run;
  const picked = await vscode.window.showQuickPick(
    functions.map((f) => ({ label: `@${f.name}`, description: `line ${f.range.start.line + 1}`, detail: f.totals, run: f.run })),
    { placeHolder: "Function to run" },
  );
  return picked?.run;
}

/** The whole extent of each function, by the line on which its name stands. */
function extentsOf(symbols: vscode.DocumentSymbol[]): Map<number, vscode.Range> {
  const found = new Map<number, vscode.Range>();
  const walk = (all: vscode.DocumentSymbol[]): void => {
    for (const symbol of all) {
      if (symbol.kind === vscode.SymbolKind.Function) found.set(symbol.selectionRange.start.line, symbol.range);
      walk(symbol.children);
    }
  };
  walk(symbols);
  return found;
}
