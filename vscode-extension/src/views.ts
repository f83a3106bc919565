import * as vscode from "vscode";
import type { Range, WindowMiddleware } from "vscode-languageclient/node";
import { command, type ViewArguments } from "./protocol";
import { showCompiled } from "./run";
import type { Server } from "./server";

/** Scheme of the server's virtual documents. */
export const scheme = "dmir";

interface View extends vscode.QuickPickItem {
  view: string;
}

const views: View[] = [
  { view: "converted", label: "In the dialect", detail: "what a program in StableHLO becomes, as dmir import writes it" },
  { view: "expanded", label: "Composites expanded", detail: "softmax, layer_norm, attention and other composite ops as the simpler ops that define them" },
  { view: "fixed", label: "All safe fixes applied", detail: "the file with all fixes that do not change results" },
  { view: "generic", label: "Generic form", detail: "the syntax that mlir-opt reads" },
];

/** Views of one function, which the server compiles for them. */
const compiled: View[] = [
  { view: "after-inline", label: "After inlining", detail: "calls replaced by the functions' bodies" },
  { view: "after-bind", label: "After binding", detail: "symbolic sizes replaced by numbers" },
  { view: "after-attention", label: "After attention", detail: "attentions that were written in several ops as dm.attention" },
  { view: "after-gradient", label: "After the gradient", detail: "forward and backward ops in one function" },
  { view: "after-simplify", label: "After simplifying", detail: "common subexpressions, constants and unused ops removed" },
  { view: "after-layout", label: "After layout", detail: "each value with its memory layout" },
  { view: "after-fuse", label: "After fusing", detail: "ops grouped into kernels" },
  { view: "after-plan", label: "After planning", detail: "kernels in execution order, with streams and memory offsets" },
  { view: "cuda", label: "CUDA C++", detail: "the generated kernels; that of the line at the cursor is selected" },
  { view: "ptx", label: "PTX", detail: "the output of the CUDA compiler" },
];

/** Reports whether a view shows one function, which the server compiles for it. */
export function isCompiled(view: string | undefined): boolean {
  return view !== undefined && (view.startsWith("after-") || view === "cuda" || view === "ptx");
}

/** Lets the user choose a view; undefined if none is chosen. */
export async function chooseView(): Promise<string | undefined> {
  const separator = { view: "", label: "function at the cursor, compiled", kind: vscode.QuickPickItemKind.Separator };
  return (await vscode.window.showQuickPick([...views, separator, ...compiled], { placeHolder: "Show the program with", matchOnDetail: true }))?.view;
}

/** Shows a file's program at another level, as a read-only document that follows the text. */
export async function showView(server: Server, args: ViewArguments): Promise<void> {
  if (isCompiled(args.view)) await showCompiled(server, args);
  else await server.execute(command.view, args);
}

/** Opens the server's virtual documents beside the text, and leaves other documents to the client. */
export const showDocument = (server: Server): NonNullable<WindowMiddleware["showDocument"]> => async (params, token, next) => {
  const uri = vscode.Uri.parse(params.uri, true);
  if (params.external === true || uri.scheme !== scheme) return next(params, token);
  try {
    const document = await coloured(await vscode.workspace.openTextDocument(uri));
    await vscode.window.showTextDocument(document, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: params.takeFocus !== true,
      // Stages are compared side by side, so each gets an editor of its own.
      preview: !isCompiled(uri.path.split("/")[1]),
      ...(params.selection === undefined ? {} : { selection: editorRange(params.selection) }),
    });
    // VS Code drops notices of changes that arrive before it knows the document.
    server.refreshDocument(uri);
    return { success: true };
  } catch {
    return { success: false };
  }
};

function editorRange({ start, end }: Range): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

/** Gives a virtual document in MLIR dmir's language, in which it shows costs as well. */
function coloured(document: vscode.TextDocument): Thenable<vscode.TextDocument> | vscode.TextDocument {
  const extension = /\.(\w+)$/.exec(document.uri.path)?.[1];
  if (!/^(mlir|plaintext)$/.test(document.languageId) || extension === undefined) return document;
  const language = { mlir: "dmir", txt: "dmir-cost" }[extension];
  return language === undefined ? document : vscode.languages.setTextDocumentLanguage(document, language);
}
