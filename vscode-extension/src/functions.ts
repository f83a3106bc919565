import * as vscode from "vscode";
import { command, type CostArguments, type RunArguments } from "./protocol";
import type { Server } from "./server";

/** A function of a file, from the server's lenses (arguments and totals) and symbols (range). */
export interface FunctionInfo {
  name: string;
  range: vscode.Range;
  /** Arguments of the Run command; undefined if the server does not offer it. */
  run: RunArguments | undefined;
  /** The totals in one line, requested once; empty if the server has none. */
  totals: () => Promise<string>;
}

interface LspRange {
  start: { line: number; character: number };
  end: { line: number; character: number };
}

interface LspLens {
  range: LspRange;
  command?: { title: string; command?: string; arguments?: unknown[] };
  data?: unknown;
}

interface LspSymbol {
  kind: number;
  range: LspRange;
  selectionRange: LspRange;
  children?: LspSymbol[];
}

const functionKind = 12; // LSP's SymbolKind.Function

/** The functions of a file that have a body, in the order of the text. */
export async function functionsOf(server: Server, uri: vscode.Uri): Promise<FunctionInfo[]> {
  const textDocument = { uri: uri.toString() };
  const [lenses, symbols] = await Promise.all([
    server.request<LspLens[] | null>("textDocument/codeLens", { textDocument }),
    server.request<LspSymbol[] | null>("textDocument/documentSymbol", { textDocument }),
  ]);
  const extents = extentsOf(symbols ?? []);
  const found = new Map<number, FunctionInfo>();
  for (const lens of lenses ?? []) {
    const line = lens.range.start.line;
    const info = found.get(line) ?? {
      name: "",
      range: editorRange(extents.get(line) ?? lens.range),
      run: undefined,
      totals: () => Promise.resolve(""),
    };
    const [first] = lens.command?.arguments ?? [];
    if (lens.command?.command === command.run) info.run = first as RunArguments;
    if (lens.command?.command === command.cost) info.name = (first as CostArguments).func ?? "";
    if ((lens.command?.command ?? "") === "") info.totals = once(() => title(server, lens));
    found.set(line, info);
  }
  return [...found.values()].filter((f) => f.name !== "").sort((a, b) => a.range.start.compareTo(b.range.start));
}

/** The function that contains a position. */
export function functionAt(functions: FunctionInfo[], place: vscode.Position): FunctionInfo | undefined {
  return functions.findLast((f) => f.range.contains(place));
}

/** The function at the cursor, or the only one, or one that the user picks. */
export async function chooseFunction(server: Server, editor: vscode.TextEditor): Promise<RunArguments | undefined> {
  const functions = (await functionsOf(server, editor.document.uri)).filter((f) => f.run !== undefined);
  const [first] = functions;
  if (first === undefined) {
    void vscode.window.showInformationMessage("This file has no function to run.");
    return undefined;
  }
  const here = functionAt(functions, editor.selection.active);
  if (here !== undefined || functions.length === 1) return (here ?? first).run;
  const picked = await vscode.window.showQuickPick(
    functions.map((f) => ({ label: `@${f.name}`, description: `line ${f.range.start.line + 1}`, run: f.run })),
    { placeHolder: "Function to run" },
  );
  return picked?.run;
}

/** The title of a lens, resolved if necessary. */
async function title(server: Server, lens: LspLens): Promise<string> {
  const whole = lens.command ?? (await server.request<LspLens>("codeLens/resolve", lens)).command;
  return whole?.title ?? "";
}

function once<T>(get: () => Promise<T>): () => Promise<T> {
  let got: Promise<T> | undefined;
  return () => (got ??= get());
}

/** The range of each function, by the line of its name. */
function extentsOf(symbols: LspSymbol[]): Map<number, LspRange> {
  const found = new Map<number, LspRange>();
  const walk = (all: LspSymbol[]): void => {
    for (const symbol of all) {
      if (symbol.kind === functionKind) found.set(symbol.selectionRange.start.line, symbol.range);
      walk(symbol.children ?? []);
    }
  };
  walk(symbols);
  return found;
}

function editorRange({ start, end }: LspRange): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}
