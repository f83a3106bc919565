import * as vscode from "vscode";
import type { WindowMiddleware } from "vscode-languageclient/node";
import { command, type ViewArguments } from "./protocol";
import type { Server } from "./server";

/** Scheme of the server's virtual documents. */
const scheme = "dmir";

const views = [
  { view: "expanded", label: "Composites expanded", detail: "softmax, layer_norm, attention and the like as the simpler ops they stand for" },
  { view: "fixed", label: "All safe fixes applied", detail: "what the file would be without the waste that dmir can remove by itself" },
  { view: "generic", label: "Generic form", detail: "what mlir-opt reads" },
];

/** Shows a file's program at another level, as a read-only document that follows the text. */
export async function showView(server: Server, uri: vscode.Uri, view?: string): Promise<void> {
  const chosen = view ?? (await vscode.window.showQuickPick(views, { placeHolder: "Show the program with", matchOnDetail: true }))?.view;
  if (chosen === undefined) return;
  const args: ViewArguments = { uri: uri.toString(), view: chosen };
  await server.execute(command.view, args);
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
      preview: true,
    });
    // A change that the server told of while VS Code did not know the document yet went unheard.
    server.askAgain(uri);
    return { success: true };
  } catch {
    return { success: false };
  }
};

/** Gives a virtual document of MLIR dmir's colours where no extension knows MLIR itself. */
function coloured(document: vscode.TextDocument): Thenable<vscode.TextDocument> | vscode.TextDocument {
  const extension = /\.(\w+)$/.exec(document.uri.path)?.[1];
  if (document.languageId !== "plaintext" || extension === undefined) return document;
  const language = { mlir: "dmir", txt: "dmir-cost" }[extension];
  return language === undefined ? document : vscode.languages.setTextDocumentLanguage(document, language);
}
