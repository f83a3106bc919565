import * as fs from "node:fs";
import * as path from "node:path";
import type { Scene } from "../scene";

const light = { "workbench.colorTheme": "Default Light Modern" };

/** A function with ops that the compiler fuses. */
function wasteful(i: number): string {
  return `func.func @f${i}(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = dm.exp %x : tensor<64x64xf32>
  %b = dm.tanh %a : tensor<64x64xf32>
  %c = dm.relu %b : tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}
`;
}

/** What is reported, how strongly, and where. */
export const findingScenes: Scene[] = [
  {
    name: "findings of a long file: those in view, and one note about the others",
    settings: () => light,
    file: "long.dmir",
    prepare: (folder) => {
      fs.writeFileSync(path.join(folder, "long.dmir"), Array.from({ length: 1000 }, (_, i) => wasteful(i)).join("\n"));
    },
    play: async (wb) => {
      await wb.page.keyboard.press("Control+B");
      for (const line of [6000, 10, 3500]) {
        await wb.goTo(line, 1);
        await wb.squiggles().first().waitFor();
      }
      await wb.screenshot("findings-long");
      await wb.command("Problems: Focus on Problems View");
      await wb.page.locator(".markers-panel .monaco-list-row", { hasText: "diagnostics: shown are the 240 most important ones" }).waitFor();
      await wb.screenshot("findings-problems");
    },
  },
  {
    name: "findings of files that are not open: on request, and taken back",
    settings: () => light,
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.squiggles().first().waitFor();
      await wb.command("Problems: Focus on Problems View");
      const rows = wb.page.locator(".markers-panel .monaco-list-row");
      await wb.until("no problems", async () => (await rows.count()) === 0);
      await wb.screenshot("findings-none");
      await wb.command("dmir: Lint Workspace");
      await rows.filter({ hasText: "broken.dmir" }).first().waitFor();
      await wb.screenshot("findings-workspace");
      await wb.clearNotifications();
      await wb.command("dmir: Clear Workspace Lint");
      await wb.until("no problems again", async () => (await rows.count()) === 0);
    },
  },
];
