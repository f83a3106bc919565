import * as assert from "node:assert/strict";
import { amount, cost, lensTexts, measured, type Scene } from "../scene";

/** The main story: from opening a file to the movement graph. */
export const story: Scene = {
  name: "the story: open, see the waste, fix it, run it, see where the bytes go",
  settings: () => ({ "dmir.run.device": "reference", "workbench.colorTheme": "Default Light Modern" }),
  file: "ffn.dmir",
  play: async (wb, code) => {
    await wb.page.keyboard.press("Control+B");
    await wb.squiggles().first().waitFor();
    await wb.lens(/^Run/).first().waitFor();
    await wb.until("the cost of the einsum", async () => cost.test(await wb.line("dm.einsum")));
    await wb.until("totals in the lenses", async () => amount.test(await lensTexts(wb)));
    await wb.until("the machine in the status bar", async () => /h200/.test(await wb.statusItem().innerText()));
    assert.equal(code.bundledServers().length, 1, "the server is the package's own");
    await wb.screenshot("story-1-opened");

    const before = await wb.steady(() => wb.squiggles().count());
    await wb.goTo(4, 10); // a hint is no problem that VS Code lists
    await wb.hover("the compiler fuses such ops by itself");
    await wb.screenshot("story-2-problem");
    await wb.page.keyboard.press("Escape");
    await wb.actionMenu();
    await wb.screenshot("story-3-fixes");
    await wb.page.keyboard.press("Enter");
    await wb.until("a squiggle less", async () => (await wb.squiggles().count()) < before);
    await wb.until("the file to differ from the saved one", async () => (await wb.page.locator(".tab.dirty").count()) > 0);
    await wb.screenshot("story-4-fixed");

    await wb.lens(/^Run/).first().click();
    await wb.notifications(/ffn.*\d\s?(ns|µs|ms|s)\b/s).first().waitFor();
    await wb.until("a measured time", async () => measured.test((await wb.lines()).join("\n")));
    await wb.screenshot("story-5-run");
    await wb.clearNotifications();

    await wb.lens(/^Graph/).first().click();
    await wb.tab("Graph @ffn").waitFor();
    assert.match((await wb.panel().locator("#data").textContent()) ?? "", /"dm\.einsum"/);
    await wb.screenshot("story-6-graph");

    // A row of the panel leads to its line, the cursor selects its row, and an edit updates both.
    const panel = wb.panel();
    await panel.getByRole("button", { name: "Table", exact: true }).click();
    await panel.locator("#table tbody tr", { hasText: "einsum" }).getByRole("button").click();
    await wb.page.locator(".active-line-number", { hasText: /^4$/ }).waitFor();
    await wb.tab("ffn.dmir").click();
    await wb.goTo(8, 3);
    await panel.locator("#table tr[aria-selected=true]", { hasText: "relu" }).waitFor();
    await wb.screenshot("story-7-table");
    assert.ok((await panel.locator("#table tbody tr", { hasText: "kernel" }).count()) > 0);
    await wb.tab("ffn.dmir").click();
    await wb.page.keyboard.press("Control+Z");
    await wb.until("a graph without the kernel", async () => (await panel.locator("#table tbody tr", { hasText: "kernel" }).count()) === 0);
  },
};
