import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { cost, lensTexts, type Scene } from "../scene";
import type { Workbench } from "../workbench";

/** The folder of a person who traced a program: model.py, and its trace in .dmir/traces. */
export const traced = (folder: string): void => {
  fs.cpSync(path.resolve(__dirname, "../../../testdata/traced"), folder, { recursive: true });
};

/** Costs beside a Python file whose program was traced. */
export const pythonScenes: Scene[] = [
  {
    name: "python: costs stand beside the lines of a traced program, and follow edits",
    settings: () => ({ "workbench.colorTheme": "Default Light Modern" }),
    file: "model.py",
    prepare: traced,
    play: async (wb) => {
      await wb.resize(1200, 760);
      await wb.page.keyboard.press("Control+B");
      await wb.until("costs as compiled", async () => (await costs(wb)).length === 6 && (await lensTexts(wb)).includes("as compiled"));
      const before = await costs(wb);
      assert.match(before.find((line) => line.includes("jax.nn.relu")) ?? "", /\dµs +\d+kB/);
      assert.match(await lensTexts(wb), /step: [\s\S]*Trace again/);
      await wb.screenshot("python");
      await wb.page.locator(".view-line", { hasText: "jax.nn.relu" }).first().hover({ position: { x: 260, y: 8 } });
      const hover = wb.page.locator(".monaco-hover:visible", { hasText: "as written" }).first();
      await hover.waitFor();
      assert.match(await hover.innerText(), /backward[\s\S]*kernels: [\s\S]*trace: step · jax/);
      await wb.screenshot("python-hover");
      await wb.page.keyboard.press("Escape");
      await wb.goTo(7, 30);
      await wb.page.keyboard.type(" # edited");
      await wb.goTo(1, 1);
      await wb.page.keyboard.press("Enter");
      await wb.until("one cost less", async () => (await costs(wb)).length === 5 && (await lensTexts(wb)).includes("the file has changed since"));
      await wb.screenshot("python-older");
    },
  },
  {
    name: "python: a trace that cannot be made again says why",
    settings: () => ({}),
    file: "model.py",
    prepare: (folder) => {
      traced(folder);
      const file = path.join(folder, ".dmir/traces/step.json");
      const trace = JSON.parse(fs.readFileSync(file, "utf8")) as { command: string[] };
      trace.command = ["sh", "-c", "echo 'ValueError: shapes do not match' >&2; exit 1"];
      fs.writeFileSync(file, JSON.stringify(trace));
    },
    play: async (wb) => {
      await wb.lens(/^Trace again/).first().click();
      await wb.notifications(/step was not traced: ValueError: shapes do not match/).first().waitFor();
    },
  },
];

/** The lines on the screen with a cost. */
async function costs(wb: Workbench): Promise<string[]> {
  return (await wb.lines()).filter((line) => cost.test(line));
}
