import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { cost, measured, type Scene } from "../scene";
import type { Workbench } from "../workbench";

const light = { "workbench.colorTheme": "Default Light Modern" };
const dark = { "workbench.colorTheme": "Default Dark Modern" };

/** The column of costs at the left of the code. */
export const columnScenes: Scene[] = [
  {
    name: "column: costs are on the screen beside a panel, where the editor has 80 and 100 characters",
    settings: () => dark,
    file: "examples/bert_encoder.dmir",
    play: async (wb) => {
      await wb.page.keyboard.press("Control+B");
      await wb.goTo(30, 1);
      await wb.until("costs", async () => (await costs(wb)).length > 2);
      await wb.command("dmir: Show Movement Graph");
      await wb.tab("Graph @bert_encoder").waitFor();
      for (const characters of [80, 100]) {
        await widen(wb, characters);
        await wb.until("aligned costs", async () => aligned(await wb.lines()));
        await wb.screenshot(`column-${characters}`);
      }
    },
  },
  {
    name: "column: it follows edits, is no part of the text, and is off where inlay hints are",
    settings: () => light,
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.resize(1100, 700);
      await wb.page.keyboard.press("Control+B");
      await wb.until("costs", async () => (await costs(wb)).length > 4);
      const before = await steadyCosts(wb);
      await wb.goTo(4, 1);
      await wb.page.keyboard.press("Enter");
      await wb.page.keyboard.type("  ");
      await wb.until("a column before the new line", async () => aligned(await wb.lines()));
      assert.deepEqual(await steadyCosts(wb), before);
      await wb.page.keyboard.press("Control+Z");
      await wb.page.keyboard.press("Control+Z");
      await wb.page.locator(".view-line", { hasText: "dm.einsum" }).first().hover({ position: { x: 30, y: 8 } });
      await wb.page.locator(".monaco-hover:visible", { hasText: "intensity" }).first().waitFor();
      await wb.screenshot("column-hover");
      await wb.page.keyboard.press("Escape");
      await wb.more("Roofline");
      await wb.tab("Roofline @ffn").waitFor();
    },
  },
  {
    name: "column: a program in StableHLO has the costs of its own lines, and the dialect beside it",
    settings: () => light,
    file: "jax.mlir",
    play: async (wb) => {
      await wb.resize(1500, 700);
      await wb.page.keyboard.press("Control+B");
      await wb.until("costs", async () => (await costs(wb)).length > 2);
      await wb.page.locator(".codelens-decoration a", { hasText: "Convert to dm" }).first().click();
      await wb.page.locator(".view-line", { hasText: "dm.matmul" }).first().waitFor();
      await wb.until("costs of both", async () => (await costs(wb)).length > 5);
      await wb.screenshot("stablehlo");
    },
  },
  {
    name: "column: the signature of a training step folds, the costs stay",
    settings: () => light,
    file: "examples/bert_encoder_train.dmir",
    play: async (wb) => {
      await wb.resize(1000, 800);
      await wb.page.keyboard.press("Control+B");
      await wb.goTo(33, 1);
      await wb.until("costs", async () => (await costs(wb)).length > 0);
      await wb.untilEffect("dmir: Fold Signatures and Types", async () => !(await wb.lines()).some((line) => line.includes("%x: !tokens, %dy")));
      await wb.goTo(61, 1);
      await wb.until("costs of the updates", async () => (await costs(wb)).length > 8 && aligned(await wb.lines()));
      await wb.screenshot("column-folded");
    },
  },
  {
    name: "column: two editors of one document have their own lines",
    settings: () => dark,
    file: "long.dmir",
    prepare: (folder) => {
      const functions = Array.from({ length: 500 }, (_, n) => `func.func @f${n}(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {\n  %y = dm.exp %x : tensor<64x64xf32>\n  return %y : tensor<64x64xf32>\n}\n`);
      fs.writeFileSync(path.join(folder, "long.dmir"), functions.join("\n"));
    },
    play: async (wb) => {
      await wb.page.keyboard.press("Control+B");
      const both = (lines: string[]): boolean =>
        ["@f0(", "@f499("].every((name) => lines.some((line) => line.includes(name) && cost.test(line.slice(0, columnWidth))));
      await wb.until("costs", async () => (await costs(wb)).length > 4);
      await wb.page.keyboard.press("Control+\\");
      await wb.until("a second editor", async () => (await wb.page.locator(".editor-instance").count()) === 2);
      await wb.goTo(2496, 1);
      await wb.until("the costs of both ends", async () => both(await wb.lines()));
      assert.ok(both((await wb.steady(async () => (await wb.lines()).join("\n"))).split("\n")));
      await wb.screenshot("column-two-editors");
    },
  },
  {
    name: "column: measured times, in the dark",
    settings: () => ({ ...dark, "dmir.run.device": "reference" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.page.keyboard.press("Control+B");
      await wb.until("costs", async () => (await costs(wb)).length > 4);
      await wb.lens(/^Run/).first().click();
      await wb.until("measured times", async () => measured.test((await wb.lines()).join("\n")));
      await wb.clearNotifications();
      await wb.screenshot("column-measured");
    },
  },
  {
    name: "column: inlay hints after the lines in its place",
    settings: () => ({ ...light, "dmir.hints.position": "end" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.until("hints", async () => /f32>.*\d(ns|µs|ms) \d/.test(await wb.line("dm.einsum")));
      assert.doesNotMatch(await wb.line("dm.einsum"), /^ *\d/);
      await wb.screenshot("hints-end");
    },
  },
  {
    name: "column: off where the user has switched inlay hints off",
    settings: () => ({ ...light, "editor.inlayHints.enabled": "off" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.lens(/^Run/).first().waitFor();
      await wb.squiggles().first().waitFor();
      assert.doesNotMatch(await wb.steady(async () => (await wb.lines()).join("\n")), cost);
    },
  },
];

async function costs(wb: Workbench): Promise<string[]> {
  return (await wb.lines()).map((line) => line.slice(0, columnWidth)).filter((column) => cost.test(column));
}

/** The costs once they are steady, sorted: lines are in the page in no order. */
async function steadyCosts(wb: Workbench): Promise<string[]> {
  const all = await wb.steady(async () => (await costs(wb)).sort().join("\n"));
  return all.split("\n");
}

const columnWidth = 14;

/** Reports whether each line begins with a column, and some with figures. */
function aligned(lines: string[]): boolean {
  const code = lines.filter((line) => line.trim() !== "");
  return code.every((line) => /^[ \d.,nµmskMGTB•=≠]{14}/.test(line)) && code.some((line) => cost.test(line));
}

/** Sizes the window so that the code, without line numbers, has so many characters with the column. */
async function widen(wb: Workbench, characters: number): Promise<void> {
  let width = 2 * characters * 8 + 200;
  await wb.until(`an editor of ${characters} characters`, async () => {
    await wb.resize(Math.round(width), 800);
    await wb.page.waitForTimeout(300); // the editor follows the window
    const has = await wb.page.evaluate<{ characters: number; character: number }>(editorWidth);
    width += 2 * (characters - has.characters) * has.character;
    return Math.abs(characters - has.characters) < 1;
  });
}

/** In the page: the width of the code in characters of its font, and of one in pixels. */
const editorWidth = `(() => {
  const editor = document.querySelector(".editor-instance");
  const { fontFamily, fontSize } = getComputedStyle(editor.querySelector(".view-lines"));
  const probe = document.createElement("span");
  Object.assign(probe.style, { fontFamily, fontSize, position: "absolute" });
  probe.textContent = "0".repeat(100);
  document.body.append(probe);
  const character = probe.getBoundingClientRect().width / 100;
  probe.remove();
  const code = editor.querySelector(".overflow-guard").clientWidth - editor.querySelector(".margin").clientWidth;
  return { characters: code / character, character };
})()`;
