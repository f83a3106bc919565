import { cost, lensTexts, measured, type Scene } from "../scene";

/** Language features in the workbench. */
export const editingScenes: Scene[] = [
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
    settings: () => ({ "dmir.run.device": "reference", "workbench.colorTheme": "Default Light Modern" }),
    file: "examples/bert_encoder.dmir",
    play: async (wb) => {
      await wb.resize(1360, 1000);
      await wb.page.keyboard.press("Control+B");
      await wb.lens(/^Run/).first().waitFor();
      await wb.goTo(50, 1);
      await wb.squiggles().first().waitFor();
      await wb.until("hints", async () => (await wb.lines()).filter((line) => cost.test(line)).length > 10);
      await wb.screenshot("example");
      await wb.goTo(30, 1);
      await wb.lens(/^Run/).first().click();
      await wb.notifications(/bert_encoder ran in/).first().waitFor({ timeout: 300_000 });
      await wb.until("measured times", async () => measured.test((await wb.lines()).join("\n")));
      await wb.screenshot("example-run");
    },
  },
];

/** Played last, since it changes user settings. */
export const choosingMachine: Scene = {
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
};
