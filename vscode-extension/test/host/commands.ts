import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import type { RunResult, Target } from "../../src/protocol";
import { at, eventually, hints, label, lenses, open, set } from "./help";

/** What a person can have done. */
export function commandSuite(): void {
  describe("Run", () => {
    it("runs the function at the cursor and shows the measured time", async () => {
      const editor = await open("ffn.dmir");
      const { document } = editor;
      const cursor = at(document, "dm.relu");
      editor.selection = new vscode.Selection(cursor, cursor);
      const shown = async (): Promise<string> => (await hints(document)).map(everything).join("\n");
      const before = await eventually("hints", shown, (text) => text !== "");
      assert.doesNotMatch(before, /\bran \d/);

      await set("run.device", "reference");
      const result = await vscode.commands.executeCommand<RunResult | undefined>("dmir.runFunction");
      await set("run.device", undefined);
      assert.ok(result?.ok, `the run failed: ${JSON.stringify(result)}`);
      assert.match(result.func, /^@?ffn$/);
      assert.match(result.device, /reference/);
      assert.ok(result.elapsed_ns > 0);
      assert.ok(result.results.length > 0);
      await eventually("measured times", shown, (text) => /\bran \d/.test(text));
    });

    it("runs the function that is named, as the lens does", async () => {
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
      await set("target", other);
      await eventually("another table", () => table.getText(), (text) => text !== before && text.includes(other));
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
    it("is one of those the server knows", async () => {
      const targets = await vscode.commands.executeCommand<Target[]>("dmir.targets");
      assert.ok(targets.some((t) => t.name === "h200"), JSON.stringify(targets));
      for (const t of targets) assert.ok(t.title.length > 0);
    });

    it("changes the totals above a function", async () => {
      const { document } = await open("ffn.dmir");
      const titles = async (): Promise<string> => (await lenses(document)).map((l) => l.command?.title ?? "").join("\n");
      const before = await eventually("lenses", titles, (text) => text !== "");
      await set("target", await anotherTarget());
      await eventually("other totals", titles, (text) => text !== "" && text !== before);
      await set("target", undefined);
      await eventually("the old totals", titles, (text) => text === before);
    });
  });
}

async function anotherTarget(): Promise<string> {
  const targets = await vscode.commands.executeCommand<Target[]>("dmir.targets");
  const other = targets.find((t) => t.name !== "h200");
  assert.ok(other, "the server knows only one machine");
  return other.name;
}

/** What a hint says, its tooltip included. */
function everything(hint: vscode.InlayHint): string {
  const parts = typeof hint.label === "string" ? [] : hint.label.map((part) => text(part.tooltip));
  return [label(hint), text(hint.tooltip), ...parts].join(" ");
}

function text(tooltip: string | vscode.MarkdownString | undefined): string {
  return typeof tooltip === "object" ? tooltip.value : (tooltip ?? "");
}
