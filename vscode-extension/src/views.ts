import * as vscode from "vscode";
import type { Range, WindowMiddleware } from "vscode-languageclient/node";
import { command, type ViewArguments } from "./protocol";
import { showCompiled } from "./run";
import type { Server } from "./server";

/** Scheme of the server's virtual documents. */
const scheme = "dmir";

interface View extends vscode.QuickPickItem {
  view: string;
}

const views: View[] = [
  { view: "expanded", label: "Composites expanded", detail: "softmax, layer_norm, attention and the like as the simpler ops they stand for" },
  { view: "fixed", label: "All safe fixes applied", detail: "what the file would be without the waste that dmir can remove by itself" },
  { view: "generic", label: "Generic form", detail: "what mlir-opt reads" },
];

/** Views of one function, for which it is compiled. */
const compiled: View[] = [
  { view: "after-inline", label: "After inlining", detail: "calls replaced by what they call" },
  { view: "after-bind", label: "After binding", detail: "every size a number" },
  { view: "after-attention", label: "After attention", detail: "attentions that were written out as dm.attention" },
  { view: "after-gradient", label: "After the gradient", detail: "forward and backward ops in one function" },
  { view: "after-simplify", label: "After simplifying", detail: "without what need not be computed" },
  { view: "after-layout", label: "After layout", detail: "each value with the order that it has in memory" },
  { view: "after-fuse", label: "After fusing", detail: "ops in the kernels that they run in" },
  { view: "after-plan", label: "After planning", detail: "kernels in their order, with streams and places in memory" },
  { view: "cuda", label: "CUDA C++", detail: "the kernels as they are generated; the one of the line at the cursor is selected" },
  { view: "ptx", label: "PTX", detail: "what the CUDA compiler makes of them" },
];

/** Whether a view is of one function, which the server compiles for it. */
export function isCompiled(view: string | undefined): boolean {
  return view !== undefined && (view.startsWith("after-") || view === "cuda" || view === "ptx");
}

/** Lets a person choose a view; undefined when none is chosen. */
export async function chooseView(): Promise<string | undefined> {
  const separator = { view: "", label: "function at the cursor, compiled", kind: vscode.QuickPickItemKind.Separator };
  return (await vscode.window.showQuickPick([...views, separator, ...compiled], { placeHolder: "Show the program with", matchOnDetail: true }))?.view;
}

/** Shows a file's program at another level, as a read-only document that follows the text. */
export async function showView(server: Server, args: ViewArguments): Promise<void> {
  if (isCompiled(args.view)) await showCompiled(server, args);
  else await server.execute(command.view, args);
}

/** Opens the server's virtual documents beside the text; everything else as the client does. */
export const showDocument = (server: Server): NonNullable<WindowMiddleware["showDocument"]> => async (params, token, next) => {
  const uri = vscode.Uri.parse(params.uri, true);
  if (params.external === true || uri.scheme !== scheme) return next(params, token);
  try {
    const document = await coloured(await vscode.workspace.openTextDocument(uri));
    await vscode.window.showTextDocument(document, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: params.takeFocus !== true,
      // Stages are there to be compared: each keeps its place.
      preview: !isCompiled(uri.path.split("/")[1]),
      ...(params.selection === undefined ? {} : { selection: editorRange(params.selection) }),
    });
    // A change that the server told of while VS Code did not know the document yet went unheard.
    server.askAgain(uri);
    return { success: true };
  } catch {
    return { success: false };
  }
};

function editorRange({ start, end }: Range): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

/** Gives a virtual document of MLIR dmir's colours where no extension knows MLIR itself. */
function coloured(document: vscode.TextDocument): Thenable<vscode.TextDocument> | vscode.TextDocument {
  const extension = /\.(\w+)$/.exec(document.uri.path)?.[1];
  if (document.languageId !== "plaintext" || extension === undefined) return document;
  const language = { mlir: "dmir", txt: "dmir-cost" }[extension];
  return language === undefined ? document : vscode.languages.setTextDocumentLanguage(document, language);
}
