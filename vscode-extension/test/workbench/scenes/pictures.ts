import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { cost, measured, type Scene } from "../scene";

/** The pictures of the walkthrough: its example, step by step. scripts/pictures.sh takes them, and others, from the screenshots. */
export const pictureScenes: Scene[] = [
  {
    name: "pictures: the steps of the walkthrough",
    settings: () => ({ "dmir.run.device": "reference", "workbench.colorTheme": "Default Light Modern", "breadcrumbs.enabled": false }),
    file: "example.dmir",
    prepare: (folder) => {
      fs.copyFileSync(path.resolve(__dirname, "../../walkthrough/example.dmir"), path.join(folder, "example.dmir"));
    },
    play: async (wb) => {
      await wb.resize(1150, 640);
      await wb.page.keyboard.press("Control+B");
      await wb.lens(/^Run/).first().waitFor();
      await wb.squiggles().first().waitFor();
      await wb.until("costs", async () => cost.test(await wb.line("dm.matmul")));
      await wb.screenshot("picture-open");

      await wb.goTo(9, 10);
      await wb.hover("intensity");
      await wb.screenshot("picture-hints");
      await wb.page.keyboard.press("Escape");

      // The example has waste that a person removes, which the walkthrough's command does.
      const before = await wb.steady(() => wb.squiggles().count());
      await wb.goTo(10, 10);
      await wb.actionMenu();
      await wb.screenshot("picture-fix");
      await wb.page.keyboard.press("Escape");
      await wb.untilEffect("dmir: Apply All Safe Fixes", async () => (await wb.page.locator(".tab.dirty").count()) > 0);
      await wb.until("a squiggle less", async () => (await wb.squiggles().count()) < before);

      await wb.lens(/^Run/).first().click();
      await wb.until("measured times", async () => measured.test((await wb.lines()).join("\n")));
      await wb.until("the end of the run", async () => (await wb.notifications(/^Running/).count()) === 0);
      await wb.page.mouse.move(0, 0);
      await wb.screenshot("picture-run");
      await wb.clearNotifications();

      await wb.goTo(10, 5);
      await wb.command("dmir: Show CUDA");
      await wb.tab("ffn.cu").first().waitFor();
      await wb.lens(/^lines? .* of the program/).first().waitFor();
      const start = wb.page.locator(".view-line", { hasText: /^struct.k0/ }).first();
      await wb.until("the kernel's colours", async () => (await start.locator("span[class*=mtk]").count()) > 1);
      await wb.page.keyboard.press("ArrowLeft"); // the kernel is selected, and its colours are to be seen
      await wb.until("no selection", async () => (await wb.page.locator(".selected-text:visible").count()) === 0);
      await wb.screenshot("picture-cuda");
      await wb.tab("ffn.cu").first().click();
      await wb.page.keyboard.press("Control+W");

      await wb.lens(/^Graph/).first().click();
      await wb.tab("Graph @ffn").waitFor();
      assert.match((await wb.panel().locator("#data").textContent()) ?? "", /"dm\.matmul"/);
      await wb.screenshot("picture-panel");
    },
  },
];
