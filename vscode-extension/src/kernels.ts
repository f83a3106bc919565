import * as vscode from "vscode";
import type { CodeLens, DocumentLink, Range } from "vscode-languageclient/node";
import type { Server } from "./server";

/** The server's views of CUDA C++. They are no programs, so the client does not tell the server of them; it knows them all the same. */
const selector: vscode.DocumentSelector = { scheme: "dmir", pattern: "**/*.cu" };

/** Lenses above kernels and links in them that lead to the lines of the program that they came from. */
export function kernelLinks(server: Server): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.languages.registerCodeLensProvider(selector, {
      provideCodeLenses: async ({ uri }, token) => {
        const lenses = await server.ask<CodeLens[] | null>("textDocument/codeLens", { textDocument: { uri: uri.toString() } }, token);
        return (lenses ?? []).map((lens) => new vscode.CodeLens(editorRange(lens.range), lens.command));
      },
    }),
    vscode.languages.registerDocumentLinkProvider(selector, {
      provideDocumentLinks: async ({ uri }, token) => {
        const links = await server.ask<DocumentLink[] | null>("textDocument/documentLink", { textDocument: { uri: uri.toString() } }, token);
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
