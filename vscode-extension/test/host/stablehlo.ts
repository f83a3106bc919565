import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { at, diagnostics, eventually, hints, label, lenses, open, revert } from "./help";

/** Programs of JAX, in StableHLO. */
export function stableHLOSuite(): void {
  describe("a program in StableHLO", () => {
    after(async () => vscode.commands.executeCommand("workbench.action.closeAllEditors"));

    const jax = async (): Promise<vscode.TextEditor> => {
      await open("jax.mlir");
      await eventually("its language", () => vscode.window.activeTextEditor?.document.languageId, (id) => id === "dmir");
      return open("jax.mlir");
    };

    it("shows the cost of each op after its own line", async () => {
      const { document } = await jax();
      const shown = await eventually("hints", () => hints(document), (all) => all.length >= 3);
      for (const text of ["stablehlo.dot_general", "stablehlo.add", "stablehlo.tanh"]) {
        const hint = shown.find((h) => h.position.line === at(document, text).line);
        assert.ok(hint, `no hint after ${text}`);
        assert.match(label(hint), /\d+(\.\d)?[kM]B/);
      }
      assert.deepEqual(diagnostics(document), []);
    });

    it("is shown in the dialect beside its text, and both stay in step", async () => {
      const editor = await jax();
      const all = await eventually("a lens", () => lenses(editor.document), (l) => l.some((x) => x.command?.title === "Convert to dm"));
      const lens = all.find((l) => l.command?.title === "Convert to dm");
      assert.ok(lens?.command);
      await vscode.commands.executeCommand(lens.command.command, ...(lens.command.arguments as unknown[]));
      const converted = (): string =>
        vscode.workspace.textDocuments.find((d) => d.uri.scheme === "dmir" && d.uri.path.startsWith("/converted/"))?.getText() ?? "";
      await eventually("the program", converted, (text) => /dm\.matmul[^]*dm\.tanh/.test(text));
      const tanh = at(editor.document, "stablehlo.tanh").translate(0, "stablehlo.".length - 1);
      await editor.edit((b) => {
        b.replace(new vscode.Range(tanh, tanh.translate(0, 4)), "sqrt");
      });
      await eventually("the edit in it", converted, (text) => text.includes("dm.sqrt"));
      await revert(await open("jax.mlir"));
    });

    it("is told from other MLIR files", async () => {
      const { document } = await open("other.mlir");
      await jax();
      assert.equal(document.languageId, "mlir");
      assert.deepEqual(diagnostics(document), []);
    });
  });
}
