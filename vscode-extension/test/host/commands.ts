import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import type { CompileResult, PlanResult, RunResult, Target } from "../../src/protocol";
import { at, eventually, findings, hints, label, lenses, open, set } from "./help";

/** Commands on functions and files. */
export function commandSuite(): void {
  describe("Run", () => {
    it("runs the function at the cursor and shows the measured time", async () => {
      const editor = await open("ffn.dmir");
      const { document } = editor;
      const cursor = at(document, "dm.relu");
      editor.selection = new vscode.Selection(cursor, cursor);
      const shown = async (): Promise<string> => (await hints(document)).map(everything).join("\n");
      const before = await eventually("hints", shown, (text) => text !== "");
      assert.doesNotMatch(before, /•/);

      await set("run.device", "reference");
      const run = async (): Promise<string> => (await lenses(document)).map((l) => l.command?.title ?? "").join("\n");
      await eventually("the device", run, (text) => text.includes("Run on reference")); // the server asks for settings
      const result = await vscode.commands.executeCommand<RunResult | undefined>("dmir.runFunction");
      await set("run.device", undefined);
      assert.ok(result?.ok, `the run failed: ${JSON.stringify(result)}`);
      assert.match(result.func, /^@?ffn$/);
      assert.match(result.device, /reference/);
      assert.ok(result.elapsed_ns > 0);
      assert.ok(result.results.length > 0);
      await eventually("measured times", shown, (text) => /•/.test(text));
    });

    it("runs a named function, as the lens does", async () => {
      const { document } = await open("ffn.dmir");
      const all = await eventually("lenses", () => lenses(document), (l) => l.length > 0);
      const lens = all.find((l) => l.command?.command === "dmir.run" && l.range.start.line === at(document, "@ffn_fused").line);
      assert.ok(lens?.command, "no Run lens above @ffn_fused");
      const result = await vscode.commands.executeCommand<RunResult | undefined>(
        "dmir.run",
        ...((lens.command.arguments ?? []) as unknown[]),
      );
      assert.ok(result?.ok, `the run failed: ${JSON.stringify(result)}`);
      assert.match(result.func, /ffn_fused/);
    });
  });

  describe("Compile", () => {
    it("reports the result for the function at the cursor", async () => {
      const editor = await open("ffn.dmir");
      const cursor = at(editor.document, "dm.relu");
      editor.selection = new vscode.Selection(cursor, cursor);
      const result = await vscode.commands.executeCommand<CompileResult | undefined>("dmir.compileFunction");
      assert.ok(result?.ok, `not compiled: ${JSON.stringify(result)}`);
      assert.match(result.message, /^@ffn compiled for sm_\d+a? in .* kernels? moves? .* \(.* as written, minimum .*\)/);
      assert.ok(result.kernels.length > 0);
    });

    it("shows the kernel of the line at the cursor, with links to its lines", async () => {
      const editor = await open("ffn.dmir");
      const { document } = editor;
      const cursor = at(document, "dm.relu");
      editor.selection = new vscode.Selection(cursor, cursor);
      await vscode.commands.executeCommand("dmir.showCuda");
      const shown = await eventually(
        "the CUDA text",
        () => vscode.window.visibleTextEditors.find((e) => e.document.uri.scheme === "dmir" && e.document.uri.path === "/cuda/ffn.cu"),
        (e) => e?.document.getText().includes("DM_KERNEL") === true && !e.selection.isEmpty,
      );
      assert.ok(shown);
      assert.match(shown.document.getText(shown.selection), /DM_KERNEL/);
      const all = await eventually("lenses of kernels", () => lenses(shown.document), (l) => l.length > 0);
      const own = all.find((l) => l.range.start.line === shown.selection.start.line);
      assert.match(own?.command?.title ?? "", /^lines? .*predicted/);
      await vscode.commands.executeCommand(own?.command?.command ?? "", ...((own?.command?.arguments ?? []) as unknown[]));
      await eventually(
        "the lines",
        () => vscode.window.activeTextEditor,
        (e) => e?.document.uri.toString() === document.uri.toString() && e.selection.contains(cursor),
      );
      const links = await vscode.commands.executeCommand<vscode.DocumentLink[]>("vscode.executeLinkProvider", shown.document.uri);
      assert.ok(links.some((l) => l.target?.toString().startsWith(document.uri.toString())), JSON.stringify(links));
    });

    it("shows the function after a pass, with the cost of each line", async () => {
      await open("ffn.dmir");
      await vscode.commands.executeCommand("dmir.showView", "after-fuse");
      const shown = await eventually(
        "the fused function",
        () => vscode.workspace.textDocuments.find((d) => d.uri.scheme === "dmir" && d.uri.path.startsWith("/after-fuse/")),
        (d) => d?.getText().includes("dm.kernel") === true,
      );
      assert.ok(shown);
      await eventually("its costs", () => hints(shown), (h) => h.length > 0);
      assert.deepEqual(findings(shown), []);
    });
  });

  describe("Plan", () => {
    after(async () => vscode.commands.executeCommand("workbench.action.closeAllEditors"));

    it("shows the program with the best plan, and writes it as one step of undo", async () => {
      const editor = await open("examples/mlp_train.dmir");
      const { document } = editor;
      const args = { uri: document.uri.toString(), func: "train" };
      const before = document.getText();
      const result = await vscode.commands.executeCommand<PlanResult | undefined>("dmir.planFunction", { ...args, devices: 4, target: "dgx-h100" });
      assert.ok(result?.ok, `not planned: ${JSON.stringify(result)}`);
      assert.match(result.message, /^@train on 4 × DGX H100: .* a step/);
      const planned = await eventually(
        "the program with the plan",
        () => vscode.workspace.textDocuments.find((d) => d.uri.scheme === "dmir" && d.uri.path.startsWith("/planned-1/")),
        (d) => d?.getText().includes("dm.mesh @plan") === true,
      );
      assert.equal(document.getText(), before);

      await vscode.window.showTextDocument(document, vscode.ViewColumn.One);
      await vscode.commands.executeCommand("dmir.applyPlan", args);
      assert.equal(document.getText(), planned?.getText());
      await vscode.commands.executeCommand("undo");
      assert.equal(document.getText(), before);
    });
  });

  describe("Cost", () => {
    it("opens a read-only table of the whole file that follows the target", async () => {
      await open("ffn.dmir");
      await vscode.commands.executeCommand("dmir.showCost");
      const table = await eventually(
        "the cost document",
        () => vscode.workspace.textDocuments.find((d) => d.uri.scheme === "dmir-cost"),
        (d) => d !== undefined,
      );
      assert.ok(table);
      assert.match(table.getText(), /\d (kB|MB)/);

      const other = await anotherTarget();
      const before = table.getText();
      await set("target", other.name);
      await eventually("another table", () => table.getText(), (text) => text !== before && text.includes(other.title));
      await set("target", undefined);
      await eventually("the old table", () => table.getText(), (text) => text === before);
    });

    it("opens the table of one function", async () => {
      const { document } = await open("ffn.dmir");
      await vscode.commands.executeCommand("dmir.cost", { uri: document.uri.toString(), func: "ffn_fused" });
      const table = await eventually(
        "the cost document",
        () => vscode.workspace.textDocuments.find((d) => d.uri.scheme === "dmir-cost" && d.uri.path.endsWith("@ffn_fused")),
        (d) => d !== undefined,
      );
      assert.match(table?.getText() ?? "", /ffn_fused/);
    });
  });

  describe("the target machine", () => {
    it("is one that the server knows", async () => {
      const targets = await vscode.commands.executeCommand<Target[]>("dmir.targets");
      assert.ok(targets.some((t) => t.name === "h200"), JSON.stringify(targets));
      for (const t of targets) assert.ok(t.title.length > 0);
    });

    it("changes the totals above a function", async () => {
      const { document } = await open("ffn.dmir");
      const titles = async (): Promise<string> => (await lenses(document)).map((l) => l.command?.title ?? "").join("\n");
      const before = await eventually("lenses", titles, (text) => text !== "");
      await set("target", (await anotherTarget()).name);
      await eventually("other totals", titles, (text) => text !== "" && text !== before);
      await set("target", undefined);
      await eventually("the old totals", titles, (text) => text === before);
    });
  });
}

async function anotherTarget(): Promise<Target> {
  const targets = await vscode.commands.executeCommand<Target[]>("dmir.targets");
  const other = targets.find((t) => t.name !== "h200");
  assert.ok(other, "the server knows only one machine");
  return other;
}

/** The text of a hint and its tooltip. */
function everything(hint: vscode.InlayHint): string {
  const parts = typeof hint.label === "string" ? [] : hint.label.map((part) => text(part.tooltip));
  return [label(hint), text(hint.tooltip), ...parts].join(" ");
}

function text(tooltip: string | vscode.MarkdownString | undefined): string {
  return typeof tooltip === "object" ? tooltip.value : (tooltip ?? "");
}
