import * as assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { cost, type Scene } from "../scene";
import type { Workbench } from "../workbench";

const dark = { "workbench.colorTheme": "Default Dark Modern" };
const light = { "workbench.colorTheme": "Default Light Modern" };

/** Panels, heat, virtual documents, and the commands that open them. */
export const panelScenes: Scene[] = [
  {
    name: "panels: roofline, memory plan and graph of a layer, in the dark",
    settings: () => dark,
    file: "examples/bert_encoder.dmir",
    play: async (wb) => {
      await wb.resize(1600, 900);
      await wb.page.keyboard.press("Control+B");
      await wb.more("Roofline");
      await wb.tab("Roofline @bert_encoder").waitFor();
      await drawn(wb);
      await wb.screenshot("roofline-dark");
      await wb.tab("bert_encoder.dmir").click();
      await wb.more("Memory plan");
      await wb.tab("Memory plan @bert_encoder").waitFor();
      await drawn(wb);
      await wb.screenshot("memory-dark");
      await wb.tab("bert_encoder.dmir").click();
      await wb.goTo(50, 1);
      await wb.command("dmir: Show Movement Graph");
      await wb.tab("Graph @bert_encoder").waitFor();
      await drawn(wb);
      await wb.screenshot("graph-dark");
    },
  },
  {
    name: "planning: a training step for four devices, applied and undone",
    settings: () => ({ ...light, "dmir.plan.devices": 4, "dmir.plan.target": "dgx-h100", "breadcrumbs.enabled": false }),
    file: "examples/mlp_train.dmir",
    play: async (wb) => {
      const editors = wb.page.locator(".editor-group-container");
      const mesh = (group: number): Promise<boolean> => editors.nth(group).locator(".view-line", { hasText: "dm.mesh" }).first().isVisible();
      await wb.resize(1600, 900);
      await wb.page.keyboard.press("Control+B");
      await wb.goTo(20, 1);
      await wb.lens(/^Plan for 4 × DGX H100/).first().click();
      await wb.tab("Plans @train").waitFor();
      await drawn(wb);
      assert.equal(await editors.count(), 2, "the panel joins the planned program");
      const panel = wb.panel().locator("body");
      assert.match(await panel.innerText(), /4 × dgx-h100[^]*Mesh/);
      await wb.screenshot("plans-light");

      await wb.tab(/^train.dmir/).click();
      await wb.until("the planned program", () => mesh(1));
      assert.equal(await wb.page.locator(".tab.dirty").count(), 0, "the plan is not in the file");
      await wb.screenshot("planned");
      await wb.tab("Plans @train").click();

      await wb.tab("mlp_train.dmir").click();
      await wb.lens(/^Apply the plan/).first().click();
      await wb.page.locator(".tab.dirty").waitFor();
      await wb.goTo(1, 1);
      await wb.until("the plan in the file", () => mesh(0));
      await wb.until("a panel of an older text", async () => /before it was edited/.test(await panel.innerText()));
      await wb.page.keyboard.press("Control+Z");
      await wb.until("the saved text after one undo", async () => (await wb.page.locator(".tab.dirty").count()) === 0);
      assert.equal(await mesh(0), false);

      await wb.goTo(20, 1);
      await wb.command("dmir: Plan Training Step for Several Devices");
      await wb.page.locator(".quick-input-widget", { hasText: "Number of devices to plan for" }).waitFor();
      await wb.quickInput().fill("8");
      await wb.quickInput().press("Enter");
      await wb.until("plans for eight devices", async () => /8 × dgx-h100/.test(await panel.innerText()));
      await wb.command("Preferences: Toggle between Light/Dark Themes");
      await wb.page.locator(".monaco-workbench.vs-dark").waitFor();
      await wb.page.waitForTimeout(500);
      await wb.screenshot("plans-dark");
    },
  },
  {
    name: "comparing: what an edit moves more or less than the saved file",
    settings: () => light,
    file: "kernel.dmir",
    play: async (wb) => {
      await wb.page.keyboard.press("Control+B");
      await wb.squiggles().first().waitFor();
      await wb.untilEffect("dmir: Apply All Safe Fixes", async () => (await wb.page.locator(".tab.dirty").count()) > 0);
      await wb.lens(/^Compare/).first().click();
      await wb.tab("Changes").first().waitFor();
      await drawn(wb);
      await wb.until("the difference", async () => /[−-]\d/.test(await wb.panel().locator("body").innerText()));
      await wb.screenshot("compared");
    },
  },
  {
    name: "changes in git: costs on both sides, and the change of each line",
    settings: () => dark,
    file: "changed.dmir",
    prepare: (folder) => {
      const git = (...args: string[]): void => {
        execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.org", ...args], { cwd: folder, stdio: "ignore" });
      };
      const text = (ops: string): string =>
        `func.func @f(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {\n${ops}  return %c : tensor<1024x1024xf32>\n}\n`;
      const op = (result: string, name: string, operand: string): string => `  ${result} = ${name} ${operand} : tensor<1024x1024xf32>\n`;
      const file = path.join(folder, "changed.dmir");
      fs.writeFileSync(file, text(op("%a", "dm.exp", "%x") + op("%b", "dm.tanh", "%a") + op("%c", "dm.neg", "%b")));
      git("init", "-q");
      git("add", "changed.dmir");
      git("commit", "-q", "-m", "before");
      fs.writeFileSync(file, text(op("%a", "dm.exp", "%x") + op("%b", "dm.relu", "%a") + op("%d", "dm.abs", "%b") + op("%c", "dm.neg", "%d")));
    },
    play: async (wb) => {
      await wb.resize(1500, 800);
      await wb.page.keyboard.press("Control+B");
      await wb.lens(/^Run/).first().waitFor();
      await wb.page.locator(".editor-actions a[aria-label^='Open Changes']").first().click();
      await wb.page.locator(".monaco-diff-editor .editor.original .view-line").first().waitFor();
      // What is drawn before and behind the lines of a side is no text of the page.
      const beside = (side: string, pseudo: string): Promise<string> =>
        wb.page.evaluate<string>(
          `[...document.querySelectorAll(".monaco-diff-editor .editor.${side} .view-line span")].map((e) => getComputedStyle(e, "${pseudo}").content).join(" ").replaceAll("\\u00a0", " ")`,
        );
      for (const side of ["original", "modified"]) await wb.until(`costs on the ${side} side`, async () => cost.test(await beside(side, "::before")));
      await wb.until("the change of the line that is new", async () => /\+\d.*µs · \+8\.39 MB/.test(await beside("modified", "::after")));
      await wb.screenshot("changes-in-git");
    },
  },
  {
    name: "heat: lines tinted by time, in both kinds of theme",
    settings: () => ({ ...light, "dmir.heat": "time" }),
    file: "examples/bert_encoder.dmir",
    play: async (wb) => {
      await wb.resize(1360, 900);
      await wb.page.keyboard.press("Control+B");
      await wb.lens(/^Run/).first().waitFor();
      await wb.goTo(50, 1);
      await wb.until("tinted lines", async () => (await tints(wb)).size > 1);
      await wb.screenshot("heat-light");
      await wb.command("Preferences: Toggle between Light/Dark Themes");
      await wb.page.locator(".monaco-workbench.vs-dark").waitFor();
      await wb.page.waitForTimeout(500);
      await wb.screenshot("heat-dark");
      await wb.command("dmir: Cycle Heat");
      await wb.page.locator(".statusbar-item", { hasText: "Heat by bytes" }).waitFor();
    },
  },
  {
    name: "heat of a long file: what is scrolled to is tinted, and what is scrolled back to",
    settings: () => ({ ...light, "dmir.heat": "time" }),
    file: "long.dmir",
    prepare: (folder) => {
      fs.writeFileSync(path.join(folder, "long.dmir"), Array.from({ length: 1000 }, (_, i) => layer(i)).join("\n"));
    },
    play: async (wb) => {
      await wb.lens(/^Run/).first().waitFor();
      for (const line of [6000, 10, 3000]) {
        await wb.goTo(line, 1);
        await wb.until(`tinted lines around ${line}`, async () => (await tints(wb)).size > 1);
      }
    },
  },
  {
    name: "the menu of the status bar: switches and what can be shown",
    settings: () => ({}),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.squiggles().first().waitFor();
      await wb.goTo(4, 5);
      await wb.page.locator(".statusbar-item[id*='dmir.totals']", { hasText: "@ffn" }).waitFor();
      await wb.page.locator(".statusbar-item[id*='dmir.state']").click();
      await wb.page.locator(".quick-input-list .monaco-list-row", { hasText: "Movement graph" }).waitFor();
      await wb.screenshot("menu");
      await wb.pick("Cost hints");
      await wb.until("no hints", async () => !cost.test((await wb.lines()).join("\n")));
      await wb.command("dmir: Toggle Cost Hints");
      await wb.until("hints again", async () => cost.test((await wb.lines()).join("\n")));
      await wb.command("dmir: Toggle Lint");
      await wb.until("no squiggles", async () => (await wb.squiggles().count()) === 0);
      await wb.command("dmir: Toggle Lint");
      await wb.squiggles().first().waitFor();
    },
  },
  {
    name: "the program at another level follows the text",
    settings: () => light,
    file: "examples/attention_symbolic.dmir",
    play: async (wb) => {
      await wb.page.keyboard.press("Control+B");
      await wb.lens(/^Cost/).first().waitFor();
      await wb.command("dmir: Show Program at Another Level");
      await wb.pick("Composites expanded");
      await wb.tab("attention_symbolic.dmir").nth(1).waitFor();
      await wb.until("simpler ops", async () => (await wb.lines()).some((line) => line.includes("dm.exp ")));
      await wb.screenshot("expanded");
    },
  },
  {
    name: "compiling: kernels beside the text, each with the lines it came from",
    settings: () => light,
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.page.keyboard.press("Control+B");
      await wb.more("Show CUDA");
      await wb.tab("ffn.cu").first().waitFor();
      await wb.lens(/^lines? .* of the program/).first().waitFor();
      await wb.screenshot("cuda");
      await wb.lens(/^lines? .* of the program/).first().click();
      await wb.until("the lines of the kernel", async () => (await wb.lines()).some((line) => line.includes("dm.einsum")));
    },
  },
  {
    name: "the walkthrough: an example that can be read and run",
    settings: () => light,
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.lens(/^Run/).first().waitFor();
      await wb.command("Welcome: Open Walkthrough...");
      await wb.pick("Get started with dmir");
      const welcome = wb.page.locator(".gettingStartedContainer");
      await welcome.getByText("Open a program").first().waitFor();
      await wb.page.waitForTimeout(1000);
      await wb.screenshot("walkthrough");
      await welcome.getByRole("button", { name: "Open Example" }).click();
      await wb.tab(/Untitled|A feed-forward/).first().waitFor();
      await wb.until("hints in the example", async () => cost.test((await wb.lines()).join("\n")));
      await wb.screenshot("walkthrough-example");
    },
  },
  {
    name: "the extension's page: its icon and its README",
    settings: () => light,
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.resize(1400, 1000);
      await wb.page.keyboard.press("Control+Shift+X");
      await wb.page.locator(".extensions-list .monaco-list-row", { hasText: "dmir" }).first().click();
      await wb.page.locator(".extension-editor .name", { hasText: "dmir" }).waitFor();
      await wb.panel().getByText("Set-up").first().waitFor();
      const broken = await wb.panel().locator("img").evaluateAll((all) => all.filter((i) => (i as { naturalWidth?: number }).naturalWidth === 0).length);
      assert.equal(broken, 0, "no picture of the README is missing");
      await wb.screenshot("extension-page");
    },
  },
];

/** A function of six lines with different costs. */
function layer(i: number): string {
  const type = "tensor<64x64xf32>";
  return `func.func @layer${i}(%x: ${type}, %w: ${type}) -> ${type} {
  %0 = dm.einsum "ij,jk->ik" %x, %w : (${type}, ${type}) -> ${type}
  %1 = dm.exp %0 : ${type}
  %2 = dm.softmax %1, dim = 1 : ${type}
  return %2 : ${type}
}
`;
}

/** Waits until a panel has drawn its data. */
async function drawn(wb: Workbench): Promise<void> {
  await wb.panel().locator("#data").waitFor({ state: "attached" });
  await wb.page.waitForTimeout(500);
}

/** The colours behind the lines on the screen. */
async function tints(wb: Workbench): Promise<Set<string>> {
  const all = await wb.page.locator(".view-overlays .cdr[class*='ced-']").evaluateAll((elements) =>
    elements.map((e) => (globalThis as unknown as { getComputedStyle(e: unknown): { backgroundColor: string } }).getComputedStyle(e).backgroundColor),
  );
  return new Set(all.filter((color) => color.startsWith("rgb") && color !== "rgba(0, 0, 0, 0)"));
}
