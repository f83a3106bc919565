import * as vscode from "vscode";
import type { CodeLens, DocumentLink, Range } from "vscode-languageclient/node";
import type { Server } from "./server";

/** Selects the server's views of CUDA C++. The client does not synchronize them, but the server answers requests for them. */
const selector: vscode.DocumentSelector = { scheme: "dmir", pattern: "**/*.cu" };

/** Lenses above kernels and links inside them that lead to their source lines. */
export function kernelLinks(server: Server): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.languages.registerCodeLensProvider(selector, {
      provideCodeLenses: async ({ uri }, token) => {
        const lenses = await server.request<CodeLens[] | null>("textDocument/codeLens", { textDocument: { uri: uri.toString() } }, token);
        return (lenses ?? []).map((lens) => new vscode.CodeLens(editorRange(lens.range), lens.command));
      },
    }),
    vscode.languages.registerDocumentLinkProvider(selector, {
      provideDocumentLinks: async ({ uri }, token) => {
        const links = await server.request<DocumentLink[] | null>("textDocument/documentLink", { textDocument: { uri: uri.toString() } }, token);
        return (links ?? []).map((link) => {
          const shown = new vscode.DocumentLink(editorRange(link.range), vscode.Uri.parse(link.target ?? "", true));
          if (link.tooltip !== undefined) shown.tooltip = link.tooltip;
          return shown;
        });
      },
    }),
  );
}

function editorRange({ start, end }: Range): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}
