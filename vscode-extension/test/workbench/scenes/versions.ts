import * as assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import type { Scene } from "../scene";

const dark = { "workbench.colorTheme": "Default Dark Modern" };
const light = { "workbench.colorTheme": "Default Light Modern" };

/** Comparisons with other versions, and the history of what was applied. */
export const versionScenes: Scene[] = [
  {
    name: "versions: a comparison with HEAD, a revision that is not there, and a pass",
    settings: () => light,
    file: "kernel.dmir",
    prepare: (folder) => {
      for (const args of [["init", "-q"], ["add", "kernel.dmir"], ["commit", "-q", "-m", "The layer as it was written first"]]) {
        execFileSync("git", ["-C", folder, "-c", "user.name=A", "-c", "user.email=a@example.com", ...args]);
      }
    },
    play: async (wb) => {
      await wb.resize(1500, 900);
      await wb.page.keyboard.press("Control+B");
      await wb.squiggles().first().waitFor();
      await wb.untilEffect("dmir: Apply All Safe Fixes", async () => (await wb.page.locator(".tab.dirty").count()) > 0);
      await wb.command("dmir: Compare Cost with HEAD");
      await wb.tab("Changes").first().waitFor();
      const panel = wb.panel();
      await wb.until("ops that moved into a kernel", async () => /into kernel/.test(await panel.locator("body").innerText()));
      await wb.screenshot("compared-head");

      // Both places of a row lead to their version.
      const fused = panel.locator("tr.fused").first();
      await fused.getByRole("button").nth(1).click();
      await wb.page.locator(".active-line-number").first().waitFor();
      await fused.getByRole("button").first().click();
      await wb.tab(/HEAD/).waitFor();
      await wb.screenshot("compared-head-opened");
      await wb.page.keyboard.press("Control+W");

      await wb.tab("Changes").first().click();
      await panel.locator("#base").selectOption({ label: "another revision or file…" });
      await panel.locator("input#base").fill("nowhere");
      await panel.locator("input#base").press("Enter");
      await wb.until("why there is no comparison", async () => /no revision "nowhere"/.test(await panel.locator("body").innerText()));
      await wb.screenshot("compared-nowhere");
      await panel.locator("#base").selectOption("text");
      await panel.locator("#version").selectOption("after-fuse");
      await wb.until("the function after fusing", async () => /@split after fuse/.test(await panel.locator("body").innerText()));
      await wb.screenshot("compared-pass");
    },
  },
  {
    name: "versions: the history of what was applied, and the revert of one",
    settings: () => dark,
    file: "kernel.dmir",
    play: async (wb) => {
      await wb.resize(1500, 900);
      await wb.page.keyboard.press("Control+B");
      await wb.squiggles().first().waitFor();
      await wb.untilEffect("dmir: Apply All Safe Fixes", async () => (await wb.page.locator(".tab.dirty").count()) > 0);
      await wb.command("dmir: Show History");
      await wb.tab("History kernel.dmir").waitFor();
      const panel = wb.panel();
      await panel.locator("tbody tr", { hasText: "Apply all safe fixes" }).waitFor();
      await wb.tab("kernel.dmir").first().click();
      await wb.goTo(1, 1);
      await wb.page.keyboard.type("// A note.\n");
      await wb.goTo(5, 8);
      await wb.actionMenu();
      await wb.page.locator(".action-widget .monaco-list-row.action", { hasText: "Write in generic form" }).first().click();
      await wb.until("two entries", async () => (await panel.locator("tbody tr").count()) === 2);
      await wb.screenshot("history-dark");
      // The second one edited what the first one wrote.
      const [written, fixed] = [panel.locator("tbody tr").first(), panel.locator("tbody tr").last()];
      assert.match(await fixed.innerText(), /−\d/);
      assert.match(await fixed.innerText(), /revert “Write in generic form” first/);
      await written.getByRole("button", { name: "Revert" }).click();
      await wb.until("the reverted entry", async () => (await panel.locator("tr.reverted").count()) === 1);
      await fixed.getByRole("button", { name: "Revert" }).click();
      await wb.until("both reverted", async () => (await panel.locator("tr.reverted").count()) === 2);
      const text = (await wb.lines()).join("\n");
      assert.match(text, /A.note/);
      await wb.command("Preferences: Toggle between Light/Dark Themes");
      await wb.page.locator(".monaco-workbench.vs").waitFor();
      await wb.page.waitForTimeout(500);
      await wb.screenshot("history-light");
      await wb.tab("kernel.dmir").first().click();
      await wb.page.keyboard.press("Control+Z");
      await wb.until("the entry again", async () => (await panel.locator("tr.reverted").count()) === 1);
    },
  },
];
