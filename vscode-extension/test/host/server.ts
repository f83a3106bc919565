import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as vscode from "vscode";
import { eventually, findings, hints, open } from "./help";

/** Restarts of the server. */
export function serverSuite(): void {
  describe("the server", () => {
    it("comes back after a restart, and the file with it", async () => {
      const { document } = await open("ffn.dmir");
      const [before] = await eventually("one server", serverProcesses, (all) => all.length === 1);
      await vscode.commands.executeCommand("dmir.restartServer");
      const [after] = await eventually("one new server", serverProcesses, (all) => all.length === 1 && all[0] !== before);
      assert.ok(after !== undefined);
      await eventually("findings", () => findings(document), (all) => all.length > 0);
    });

    it("comes back after a crash", async () => {
      const { document } = await open("ffn.dmir");
      const [pid] = await eventually("one server", serverProcesses, (all) => all.length === 1);
      assert.ok(pid !== undefined);
      process.kill(pid, "SIGKILL");
      await eventually("a new server", serverProcesses, (all) => all.length === 1 && all[0] !== pid);
      await eventually("hints", () => hints(document), (all) => all.length > 0);
    });
  });
}

/** Process ids of this extension host's children that run `dmir lsp`. */
function serverProcesses(): number[] {
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const parent = /^PPid:\s*(\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
        const words = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        return Number(parent) === process.pid && words.includes("lsp");
      } catch {
        return false; // the process has ended
      }
    })
    .map(Number);
}
