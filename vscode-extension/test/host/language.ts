import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { at, code, diagnostics, errors, eventually, everything, findings, hints, label, lenses, open, revert, set } from "./help";

const amount = /\d\s?(B|kB|MB|GB|FLOP|kFLOP|MFLOP|GFLOP|ns|µs|ms)\b/;

/** Language features in the editor. */
export function languageSuite(): void {
  describe("a .dmir file", () => {
    it("underlines wasted movement", async () => {
      const { document } = await open("ffn.dmir");
      const found = await eventually("a finding", () => findings(document), (all) => all.length > 0);
      assert.deepEqual(errors(document), []);
      assert.equal(found[0]?.source, "dmir");
    });

    it("shows the cost of each op after its line", async () => {
      const { document } = await open("ffn.dmir");
      const shown = await eventually("hints", () => hints(document), (all) => all.length >= 4);
      for (const text of ["dm.einsum", "dm.add", "dm.relu", "dm.kernel"]) {
        const line = at(document, text).line;
        const hint = shown.find((h) => h.position.line === line);
        assert.ok(hint, `no hint after ${text}`);
        assert.match(label(hint), amount);
        assert.ok(label(hint).trim().length <= 12, `too long: ${label(hint)}`);
      }
    });

    it("leaves the hints to the column at the left unless it is switched off", async () => {
      const { document } = await open("ffn.dmir");
      await set("hints.position", "left");
      try {
        await eventually("no hints", () => hints(document), (all) => all.length === 0);
      } finally {
        await set("hints.position", "end");
      }
      await eventually("hints", () => hints(document), (all) => all.length > 0);
    });

    it("shows no hints when they are switched off", async () => {
      const { document } = await open("ffn.dmir");
      await eventually("hints", () => hints(document), (all) => all.length > 0);
      await set("hints.enabled", false);
      try {
        await eventually("no hints", () => hints(document), (all) => all.length === 0);
      } finally {
        await set("hints.enabled", undefined);
      }
      await eventually("hints again", () => hints(document), (all) => all.length > 0);
    });

    it("reports no findings when the linter is switched off", async () => {
      const { document } = await open("ffn.dmir");
      await eventually("a finding", () => findings(document), (all) => all.length > 0);
      await set("lint.enabled", false);
      try {
        await eventually("no findings", () => findings(document), (all) => all.length === 0);
      } finally {
        await set("lint.enabled", undefined);
      }
      await eventually("a finding again", () => findings(document), (all) => all.length > 0);
    });

    it("has Run, Cost and totals above each function", async () => {
      const { document } = await open("ffn.dmir");
      const shown = await eventually("lenses", () => lenses(document), (all) => all.length >= 6);
      for (const name of ["@ffn(", "@ffn_fused("]) {
        const line = at(document, name).line;
        const titles = shown.filter((l) => l.range.start.line === line).map((l) => l.command?.title ?? "");
        assert.ok(titles.some((t) => t.startsWith("Run")), `no Run above ${name}: ${titles.join(", ")}`);
        assert.ok(titles.some((t) => t.startsWith("Cost")), `no Cost above ${name}: ${titles.join(", ")}`);
        assert.ok(titles.some((t) => amount.test(t)), `no totals above ${name}: ${titles.join(", ")}`);
      }
    });

    it("has totals and More… alone beside another editor", async () => {
      const { document } = await open("ffn.dmir");
      await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside });
      const short = await eventually("short rows", () => lenses(document), (all) => all.length === 4);
      const titles = short.map((l) => l.command?.title ?? "");
      assert.equal(titles.filter((t) => t === "More…").length, 2, titles.join(", "));
      await vscode.commands.executeCommand("workbench.action.joinAllGroups");
      await eventually("long rows", () => lenses(document), (all) => all.length >= 6);
    });

    it("explains an op on hover", async () => {
      const { document } = await open("ffn.dmir");
      const hovers = await vscode.commands.executeCommand<vscode.Hover[]>(
        "vscode.executeHoverProvider",
        document.uri,
        at(document, "dm.einsum"),
      );
      const text = hovers.flatMap((h) => h.contents.map((c) => (c instanceof vscode.MarkdownString ? c.value : ""))).join("\n");
      assert.match(text, /einsum/);
    });

    it("finds the definition and the uses of a value", async () => {
      const { document } = await open("ffn.dmir");
      const use = document.positionAt(document.getText().indexOf("dm.add %h") + "dm.add %".length);
      const places = await vscode.commands.executeCommand<(vscode.Location | vscode.LocationLink)[]>(
        "vscode.executeDefinitionProvider",
        document.uri,
        use,
      );
      const [place] = places;
      assert.ok(place, "no definition");
      const range = "range" in place ? place.range : place.targetRange;
      assert.equal(range.start.line, at(document, "%h = ").line);
    });

    it("completes ops and explains them", async () => {
      const { document } = await open("ffn.dmir");
      const offset = document.getText().indexOf("dm.relu") + "dm.re".length;
      const list = await vscode.commands.executeCommand<vscode.CompletionList>(
        "vscode.executeCompletionItemProvider",
        document.uri,
        document.positionAt(offset),
        undefined,
        1000,
      );
      const softmax = list.items.find((item) => item.label === "dm.softmax");
      assert.ok(softmax, "dm.softmax is not offered");
      const { documentation } = softmax;
      assert.match(documentation instanceof vscode.MarkdownString ? documentation.value : (documentation ?? ""), /sum to 1/);
    });

    it("has an outline", async () => {
      const { document } = await open("ffn.dmir");
      const symbols = await vscode.commands.executeCommand<vscode.DocumentSymbol[]>(
        "vscode.executeDocumentSymbolProvider",
        document.uri,
      );
      const names = symbols.flatMap((s) => [s, ...s.children]).map((s) => s.name.replace(/^@/, ""));
      assert.ok(names.includes("ffn") && names.includes("ffn_fused"), names.join(", "));
    });

    it("formats, and keeps the comments", async () => {
      const { document } = await open("messy.dmir");
      const edits = await vscode.commands.executeCommand<vscode.TextEdit[]>("vscode.executeFormatDocumentProvider", document.uri, {
        tabSize: 2,
        insertSpaces: true,
      });
      const edit = new vscode.WorkspaceEdit();
      edit.set(document.uri, edits);
      await vscode.workspace.applyEdit(edit);
      const line = document.lineAt(at(document, "dm.exp").line).text;
      assert.match(line, /^ {2}%y = dm\.exp %x : tensor<64x64xf32> +\/\/ kept$/);
      await revert(await open("messy.dmir"));
    });
  });

  describe("a quick fix", () => {
    it("removes its finding", async () => {
      const editor = await open("ffn.dmir");
      const { document } = editor;
      const before = await eventually("a finding", () => findings(document), (all) => all.length > 0);
      const { finding, edit } = await firstFix(document, before);
      await vscode.workspace.applyEdit(edit);
      const fixed = code(finding);
      const count = (all: vscode.Diagnostic[]): number => all.filter((d) => code(d) === fixed).length;
      await eventually("one finding less", () => findings(document), (after) => count(after) < count(before));
      assert.deepEqual(errors(document), [], "the fixed file is still right");
      await restore(editor, before);
    });
  });

  describe("all safe fixes at once", () => {
    it("remove their findings and leave a valid file", async () => {
      const editor = await open("kernel.dmir");
      const { document } = editor;
      const before = await eventually("a finding", () => findings(document), (all) => all.length > 0);
      const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
        "vscode.executeCodeActionProvider",
        document.uri,
        everything(document),
        "source.fixAll.dmir",
        20,
      );
      const edit = actions[0]?.edit ?? assert.fail("there is no action that fixes all");
      await vscode.workspace.applyEdit(edit);
      await eventually("fewer findings", () => findings(document), (after) => after.length < before.length);
      assert.deepEqual(errors(document), []);
      await restore(editor, before);
    });
  });

  describe("a broken op", () => {
    it("is an error that hides no other diagnostics", async () => {
      const { document } = await open("broken.dmir");
      await eventually("an error", () => errors(document), (all) => all.length > 0);
      assert.equal(errors(document)[0]?.range.start.line, at(document, "dm.nonsense").line);
      const shown = await eventually("hints", () => hints(document), (all) => all.length > 0);
      for (const text of ["dm.exp", "dm.tanh"]) {
        const line = at(document, text).line;
        assert.ok(shown.some((h) => h.position.line === line), `no hint after ${text}`);
      }
    });

    it("appears and disappears with an edit", async () => {
      const editor = await open("ffn.dmir");
      const { document } = editor;
      await eventually("no errors", () => errors(document), (all) => all.length === 0);
      const end = document.lineAt(at(document, "dm.relu").line).range.end;
      await editor.edit((b) => {
        b.insert(end, "\n  %bad = dm.add %h,");
      });
      await eventually("an error", () => errors(document), (all) => all.length > 0);
      await revert(editor);
      await eventually("no errors again", () => errors(document), (all) => all.length === 0);
      await eventually("the findings again", () => diagnostics(document), (all) => all.length > 0);
    });
  });
}

/** Reverts edits and waits for the previous findings: those that an edit left in place are shown at once, the rest later. */
async function restore(editor: vscode.TextEditor, before: vscode.Diagnostic[]): Promise<void> {
  await revert(editor);
  await eventually("the findings of before", () => findings(editor.document), (all) => all.length === before.length);
}

/** The first finding that has a quick fix, and the fix's edit. */
async function firstFix(
  document: vscode.TextDocument,
  found: vscode.Diagnostic[],
): Promise<{ finding: vscode.Diagnostic; edit: vscode.WorkspaceEdit }> {
  for (const finding of found) {
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider",
      document.uri,
      finding.range,
      vscode.CodeActionKind.QuickFix.value,
      20,
    );
    const edit = actions.find((a) => a.edit !== undefined)?.edit;
    if (edit !== undefined) return { finding, edit };
  }
  assert.fail("no finding has a quick fix");
}
