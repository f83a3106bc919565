import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import type { Browser } from "playwright-core";
import { need, VSCode, workspace } from "./vscode";
import { Workbench } from "./workbench";

const amount = /\d\s?(B|kB|MB|GB)\b/;

/** One story in the workbench, played on a fresh window. */
interface Scene {
  name: string;
  settings: () => Record<string, unknown>;
  file: string;
  /** Puts more into the scene's copy of the workspace. */
  prepare?: (folder: string) => void;
  play: (workbench: Workbench) => Promise<void>;
}

const trusted: Scene[] = [
  {
    name: "reading: hints, squiggles, lenses and the machine",
    settings: () => ({}),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.squiggles().first().waitFor();
      await wb.lens(/^Run/).first().waitFor();
      await wb.until("a hint after the einsum", async () => amount.test(after(await wb.line("dm.einsum"), "->")));
      assert.match((await wb.lensText().allInnerTexts()).join(" "), amount);
      assert.match(await wb.statusItem().innerText(), /h200/);
      await wb.page.keyboard.press("Control+B");
      await wb.screenshot("reading");
    },
  },
  {
    name: "fixing: the quick fix takes its squiggle away",
    settings: () => ({}),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.squiggles().first().waitFor();
      const before = (await wb.lines()).join("\n");
      await wb.command("Go to Next Problem (Error, Warning, Info)");
      await wb.screenshot("problem");
      await wb.page.keyboard.press("Escape");
      await wb.page.keyboard.press("Control+.");
      const action = wb.page.locator(".action-widget .monaco-list-row.action").first();
      await action.waitFor();
      await wb.screenshot("quick-fix");
      await wb.page.keyboard.press("Enter");
      await wb.until("the file changed", async () => (await wb.lines()).join("\n") !== before);
      await wb.page.waitForTimeout(1500);
      await wb.screenshot("quick-fixed");
    },
  },
  {
    name: "running: the Run lens says the measured time",
    settings: () => ({ "dmir.run.device": "reference" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.lens(/^Run/).first().click();
      await wb.notifications(/ffn.*\d\s?(ns|µs|ms|s)\b/s).first().waitFor();
      await wb.until("a measured time", async () => /\bran \d/.test((await wb.lines()).join("\n") + (await lensTexts(wb))));
      await wb.screenshot("run");
    },
  },
  {
    name: "costing: the Cost lens opens the table",
    settings: () => ({}),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.lens(/^Cost/).first().click();
      await wb.page.locator(".tab", { hasText: "Cost of ffn.dmir @ffn" }).waitFor();
      await wb.until("the table", async () => (await wb.lines()).some((line) => line.includes("contraction")));
      await wb.screenshot("cost");
    },
  },
  {
    name: "without a binary: one message that says what to do",
    settings: () => ({ "dmir.path": "/nowhere/dmir" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.notifications(/dmir was not found \(tried \/nowhere\/dmir\)/).waitFor();
      await wb.screenshot("no-binary");
      await wb.page.waitForTimeout(2000);
      assert.equal(await wb.notifications().count(), 1);
    },
  },
  {
    name: "with a program that is no server: one message, and a way on",
    settings: () => ({ "dmir.path": "/bin/false" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.notifications(/\/bin\/false does not start as a language server/).waitFor();
      await wb.page.waitForTimeout(2000);
      assert.equal(await wb.notifications().count(), 1);
      await wb.screenshot("no-server");
    },
  },
  {
    name: "with a server that keeps crashing: one message, after a few tries",
    settings: () => ({ "dmir.path": "${workspaceFolder}/crashing" }),
    file: "ffn.dmir",
    prepare: (folder) => {
      const script = `#!/bin/sh\nexec timeout --foreground --signal=KILL 3 '${need("DMIR_BINARY")}' "$@"\n`;
      fs.writeFileSync(path.join(folder, "crashing"), script, { mode: 0o755 });
    },
    play: async (wb) => {
      await wb.notifications(/keeps crashing/).waitFor();
      await wb.page.waitForTimeout(2000);
      assert.equal(await wb.notifications().count(), 1);
      assert.equal(await wb.page.getByRole("button", { name: "Restart", exact: true }).count(), 1);
      await wb.screenshot("crashing");
    },
  },
  {
    name: "cancelling: the notification's Cancel ends the run",
    settings: () => ({ "dmir.run.device": "reference" }),
    file: "slow.dmir",
    play: async (wb) => {
      await wb.lens(/^Run/).first().click();
      await wb.notifications(/Running @slow/).waitFor();
      await wb.page.waitForTimeout(1000);
      await wb.screenshot("running");
      await wb.page.getByRole("button", { name: "Cancel" }).click();
      await wb.page.locator(".statusbar-item", { hasText: "Run of @slow cancelled" }).waitFor();
      await wb.until("no notification", async () => (await wb.notifications().count()) === 0);
    },
  },
  {
    name: "the example: a whole layer is read and run",
    settings: () => ({ "dmir.run.device": "reference" }),
    file: "examples/bert_encoder.dmir",
    play: async (wb) => {
      await wb.page.setViewportSize({ width: 1360, height: 1000 });
      await wb.page.keyboard.press("Control+B");
      await wb.lens(/^Run/).first().waitFor();
      await wb.goTo(50, 1);
      await wb.squiggles().first().waitFor();
      await wb.until("hints", async () => (await wb.lines()).filter((line) => amount.test(after(line, "->"))).length > 10);
      await wb.screenshot("example");
      await wb.goTo(30, 1);
      await wb.lens(/^Run/).first().click();
      await wb.notifications(/bert_encoder ran in/).first().waitFor({ timeout: 300_000 });
      await wb.until("measured times", async () => /\bran \d/.test((await wb.lines()).join("\n")));
      await wb.screenshot("example-run");
    },
  },
  // Last, for it writes the person's settings.
  {
    name: "choosing a machine: the status bar's pick changes the numbers",
    settings: () => ({}),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.lens(/^Run/).first().waitFor();
      await wb.until("totals", async () => /h200/.test(await lensTexts(wb)));
      await wb.statusItem().click();
      await wb.quickInput().waitFor();
      await wb.page.locator(".quick-input-list .monaco-list-row").nth(1).waitFor();
      await wb.screenshot("targets");
      await wb.pick("a100-80");
      await wb.until("the other machine", async () => /a100/.test(await wb.statusItem().innerText()));
      await wb.until("its totals", async () => /a100/.test(await lensTexts(wb)));
      await wb.screenshot("other-target");
    },
  },
];

const untrusted: Scene[] = [
  {
    name: "without trust: costs are shown, nothing runs until trust is given",
    settings: () => ({ "dmir.run.device": "reference" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await refusedRun(wb);
      await wb.screenshot("untrusted");
      await giveTrust(wb);
      await wb.lens(/^Run/).first().click();
      await wb.notifications(/ffn.*\d\s?(ns|µs|ms|s)\b/s).first().waitFor();
    },
  },
  {
    name: "without trust: the workspace cannot name the program to start",
    settings: () => ({ "dmir.path": "/nowhere/dmir" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await refusedRun(wb);
      assert.equal(await wb.notifications(/nowhere/).count(), 0);
      await giveTrust(wb);
      await wb.notifications(/dmir was not found \(tried \/nowhere\/dmir\)/).waitFor();
    },
  },
];

async function refusedRun(wb: Workbench): Promise<void> {
  await wb.squiggles().first().waitFor();
  await wb.lens(/^Run/).first().click();
  await wb.notifications(/only in a trusted workspace/).waitFor();
}

/** Goes the way that the message offers. */
async function giveTrust(wb: Workbench): Promise<void> {
  await wb.page.getByRole("button", { name: "Manage Workspace Trust" }).click();
  await wb.page.locator(".workspace-trust-editor").getByRole("button", { name: /^Trust$/ }).click();
  await wb.page.locator(".workspace-trust-editor", { hasText: "You trust this folder" }).waitFor();
  await wb.page.locator(".tab", { hasText: "ffn.dmir" }).first().click();
}

/** Plays every scene with the packaged extension; throws with the names of those that failed. */
export async function workbenchLeg(browser: Browser): Promise<void> {
  const failed: string[] = [];
  const only = process.env["DMIR_SCENE"] ?? "";
  for (const [trustEverything, all] of [[true, trusted], [false, untrusted]] as const) {
    const scenes = all.filter((scene) => scene.name.includes(only));
    if (scenes.length === 0) continue;
    const code = await VSCode.start({ vsix: need("DMIR_VSIX"), trustEverything });
    try {
      for (const scene of scenes) {
        if (!(await played(browser, code, scene))) failed.push(scene.name);
      }
    } finally {
      await code.stop();
    }
  }
  if (failed.length > 0) throw new Error(`these scenes failed: ${failed.join("; ")}`);
}

async function played(browser: Browser, code: VSCode, scene: Scene): Promise<boolean> {
  const folder = workspace(scene.settings());
  scene.prepare?.(folder);
  const workbench = await Workbench.open(browser, code.address(folder, { openFile: path.join(folder, scene.file) }));
  try {
    await scene.play(workbench);
    console.log(`  ok   ${scene.name}`);
    return true;
  } catch (err) {
    console.log(`  FAIL ${scene.name}\n${err instanceof Error ? (err.stack ?? err.message) : String(err)}`);
    await workbench.screenshot(`failed-${scene.name.replace(/\W+/g, "-")}`);
    return false;
  } finally {
    await workbench.close();
    fs.rmSync(folder, { recursive: true });
  }
}

async function lensTexts(wb: Workbench): Promise<string> {
  return (await wb.lensText().allInnerTexts()).join(" ");
}

function after(line: string, mark: string): string {
  return line.slice(line.lastIndexOf(mark));
}
