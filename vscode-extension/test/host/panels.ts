import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { at, eventually, lenses, open, revert, set } from "./help";

/** Panels and virtual documents beside the text. */
export function panelSuite(): void {
  describe("a panel", () => {
    after(async () => vscode.commands.executeCommand("workbench.action.closeAllEditors"));

    for (const [command, title] of [
      ["dmir.showGraph", "Graph @ffn_fused"],
      ["dmir.showRoofline", "Roofline @ffn_fused"],
      ["dmir.showMemoryPlan", "Memory plan @ffn_fused"],
      ["dmir.compareWithSaved", "Changes ffn.dmir"],
      ["dmir.compareWithHead", "Changes ffn.dmir"],
      ["dmir.showHistory", "History ffn.dmir"],
    ] as const) {
      it(`is opened by ${command} for the function at the cursor`, async () => {
        const editor = await open("ffn.dmir");
        const inside = at(editor.document, "dm.yield");
        editor.selection = new vscode.Selection(inside, inside);
        await eventually("lenses", () => lenses(editor.document), (all) => all.length > 0);
        await vscode.commands.executeCommand(command);
        await eventually(title, panelTitles, (titles) => titles.includes(title));
      });
    }

    it("exists once for each kind and file, whichever function it shows", async () => {
      const { document } = await open("ffn.dmir");
      for (const func of ["ffn", "ffn_fused"]) {
        await vscode.commands.executeCommand("dmir.panel", { uri: document.uri.toString(), kind: "graph", function: func });
        await eventually(`Graph @${func}`, panelTitles, (titles) => titles.includes(`Graph @${func}`));
      }
      assert.equal(panelTitles().filter((title) => title.startsWith("Graph")).length, 1);
    });

    it("is marked as old while the text is invalid", async () => {
      const editor = await open("ffn.dmir");
      const { document } = editor;
      await vscode.commands.executeCommand("dmir.panel", { uri: document.uri.toString(), kind: "graph", function: "ffn" });
      await eventually("the graph", panelTitles, (titles) => titles.includes("Graph @ffn"));
      const name = at(document, "@ffn(");
      await editor.edit((b) => {
        b.replace(new vscode.Range(name, name.translate(0, 3)), "gone");
      });
      await eventually("an old graph", panelTitles, (titles) => titles.includes("Graph @ffn (old)"));
      await revert(editor);
      await eventually("a graph of now", panelTitles, (titles) => titles.includes("Graph @ffn"));
    });
  });

  describe("the program at another level", () => {
    after(async () => vscode.commands.executeCommand("workbench.action.closeAllEditors"));

    for (const [view, has] of [
      ["generic", /"dm\.einsum"\(/],
      ["expanded", /dm\.einsum/],
      ["fixed", /dm\.kernel/],
    ] as const) {
      it(`is shown as ${view}, and follows the text`, async () => {
        const editor = await open("ffn.dmir");
        await vscode.commands.executeCommand("dmir.showView", view);
        const shown = await eventually("the document", () => virtual(view), (d) => d !== undefined && has.test(d.getText()));
        assert.equal(shown?.languageId, "dmir");
        assert.match(shown.getText(), /dm\.relu/);
        const relu = at(editor.document, "dm.relu").translate(0, 2);
        await editor.edit((b) => {
          b.replace(new vscode.Range(relu, relu.translate(0, 4)), "tanh");
        });
        await eventually("the edit in it", () => virtual(view)?.getText() ?? "", (text) => text.includes("dm.tanh"));
        await revert(await open("ffn.dmir"));
      });
    }
  });

  describe("lint of the workspace", () => {
    it("reports findings in files that are not open", async () => {
      const { document } = await open("ffn.dmir");
      const closed = vscode.Uri.joinPath(document.uri, "../closed.dmir");
      await vscode.workspace.fs.writeFile(closed, Buffer.from("func.func @f() {\n  dm.nonsense\n  return\n}\n"));
      try {
        void vscode.commands.executeCommand("dmir.lintAll");
        await eventually("errors in closed.dmir", () => vscode.languages.getDiagnostics(closed), (all) => all.length > 0);
        void vscode.commands.executeCommand("dmir.clearLint");
        await eventually("none any more", () => vscode.languages.getDiagnostics(closed), (all) => all.length === 0);
      } finally {
        await vscode.workspace.fs.delete(closed);
      }
    });
  });

  describe("switches", () => {
    const read = (name: string): unknown => vscode.workspace.getConfiguration("dmir").get(name);

    it("turn hints and lint off and on in the scope of the setting", async () => {
      for (const [command, name] of [
        ["dmir.toggleHints", "hints.enabled"],
        ["dmir.toggleLint", "lint.enabled"],
      ] as const) {
        await set(name, true);
        await vscode.commands.executeCommand(command);
        assert.equal(read(name), false);
        assert.equal(vscode.workspace.getConfiguration("dmir").inspect(name)?.workspaceValue, false);
        await vscode.commands.executeCommand(command);
        assert.equal(read(name), true);
        await set(name, undefined);
      }
    });

    it("cycle heat through all scales", async () => {
      await set("heat", "off");
      const seen: unknown[] = [];
      for (let i = 0; i < 4; i++) {
        await vscode.commands.executeCommand("dmir.cycleHeat");
        seen.push(read("heat"));
      }
      assert.deepEqual(seen, ["time", "bytes", "waste", "off"]);
      await set("heat", undefined);
    });
  });
}

function panelTitles(): string[] {
  return vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .filter((tab) => tab.input instanceof vscode.TabInputWebview && tab.input.viewType.endsWith("dmir.panel"))
    .map((tab) => tab.label);
}

function virtual(view: string): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((d) => d.uri.scheme === "dmir" && d.uri.path.startsWith(`/${view}/`));
}
