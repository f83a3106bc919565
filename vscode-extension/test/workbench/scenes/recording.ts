import * as fs from "node:fs";
import * as path from "node:path";
import type { Locator } from "playwright-core";
import { cost, lensTexts, measured, type Scene } from "../scene";
import { need } from "../vscode";
import type { Workbench } from "../workbench";

/** What the strip at the top says at each step. */
const steps = ["See", "Fix", "Compile", "Run"];

/** In the page: a strip in place of the title, with the step and a sentence, and a pointer, which screenshots lack; and what changes them. */
const overlay = `
  const style = document.createElement("style");
  style.textContent = \`
    #strip { position: fixed; inset: 0 0 auto 0; height: 36px; z-index: 99998; background: #1b2230; color: #fff; display: flex; align-items: center; gap: 6px; padding: 0 14px; font: 15px system-ui, sans-serif; pointer-events: none; }
    #strip b { font-weight: 500; padding: 3px 11px; border-radius: 12px; color: #9aa5b8; }
    #strip b.now { background: #ffffff; color: #1b2230; font-weight: 700; }
    #strip span { margin-left: 14px; }
    #pointer { position: fixed; z-index: 99999; width: 20px; height: 26px; pointer-events: none; }
  \`;
  const strip = document.createElement("div");
  strip.id = "strip";
  const svg = "http://www.w3.org/2000/svg";
  const pointer = document.createElementNS(svg, "svg");
  pointer.id = "pointer";
  pointer.setAttribute("viewBox", "0 0 20 26");
  const arrow = document.createElementNS(svg, "path");
  arrow.setAttribute("d", "M2 2 L2 20 L6.5 16 L9.5 23 L12.5 21.8 L9.6 15 L15.5 14.6 Z");
  arrow.setAttribute("fill", "#000");
  arrow.setAttribute("stroke", "#fff");
  arrow.setAttribute("stroke-width", "1.4");
  pointer.append(arrow);
  document.body.append(style, strip, pointer);
  const part = (tag, text, name) => Object.assign(document.createElement(tag), { textContent: text, className: name });
  window.filmSay = (steps, now, sentence) => strip.replaceChildren(...steps.map((s) => part("b", s, s === now ? "now" : "")), part("span", sentence, ""));
  window.filmPoint = (x, y) => Object.assign(pointer.style, { left: x + "px", top: y + "px" });
`;

/** A recording: screenshots with the time for which each is shown, which scripts/recording joins. */
class Film {
  private at = { x: 560, y: 420 };
  private readonly frames: { png: Buffer; ms: number }[] = [];

  private constructor(readonly wb: Workbench) {}

  static async begin(wb: Workbench): Promise<Film> {
    const film = new Film(wb);
    await wb.page.evaluate(`{${overlay}}`);
    await film.point(film.at.x, film.at.y);
    return film;
  }

  /** Marks a step and says what is to be seen. */
  async say(step: string, sentence: string): Promise<void> {
    await this.wb.page.evaluate(`filmSay(${JSON.stringify(steps)}, ${JSON.stringify(step)}, ${JSON.stringify(sentence)})`);
  }

  /** Shows what is on the screen for a time. */
  async hold(ms: number): Promise<void> {
    this.frames.push({ png: await this.wb.page.screenshot(), ms });
  }

  /** Moves the pointer to a place in an element, by default its middle, and with it the mouse. */
  async move(to: Locator, x?: number, y?: number): Promise<void> {
    const box = await to.boundingBox();
    if (!box) throw new Error("the recording points at what is not shown");
    const from = this.at;
    const end = { x: box.x + (x ?? box.width / 2), y: box.y + (y ?? box.height / 2) };
    const count = 7;
    for (let i = 1; i <= count; i++) {
      const t = i / count;
      const ease = t * t * (3 - 2 * t);
      this.at = { x: from.x + (end.x - from.x) * ease, y: from.y + (end.y - from.y) * ease };
      await this.point(this.at.x, this.at.y);
      await this.hold(i === count ? 300 : 60);
    }
    await this.wb.page.mouse.move(end.x, end.y);
  }

  private async point(x: number, y: number): Promise<void> {
    await this.wb.page.evaluate(`filmPoint(${x - 2}, ${y - 2})`);
  }

  /** Writes the frames; the names say their order and their times. */
  save(name: string): void {
    const folder = path.join(need("DMIR_SCREENSHOTS"), name);
    fs.rmSync(folder, { recursive: true, force: true });
    fs.mkdirSync(folder);
    this.frames.forEach((f, i) => {
      fs.writeFileSync(path.join(folder, `${String(i).padStart(3, "0")}-${f.ms}.png`), f.png);
    });
  }
}

/** The recording of the README: the finding of its example, the fix, the kernel, and a run. */
export const recording: Scene = {
  name: "recording: see, fix, compile, run",
  onDemand: true,
  settings: () => ({
    "dmir.run.device": "cpu",
    "workbench.colorTheme": "Default Light Modern",
    "breadcrumbs.enabled": false,
    "editor.lineNumbersMinChars": 3,
    "editor.cursorBlinking": "solid",
    "workbench.activityBar.location": "hidden",
    "editor.lightbulb.enabled": "off",
  }),
  file: "examples/ffn.dmir",
  play: async (wb) => {
    await wb.resize(1000, 520);
    await wb.page.keyboard.press("Control+B");
    await wb.lens(/^Run/).first().waitFor();
    await wb.squiggles().first().waitFor();
    await wb.until("costs", async () => cost.test(await wb.line("dm.einsum")));
    await wb.until("the time in the lens", async () => /67\.0/.test(await lensTexts(wb)));
    await wb.goTo(9, 1);

    const film = await Film.begin(wb);
    await film.say("See", "Each line shows its predicted time on an H200, and the bytes it moves");
    await film.hold(2600);
    const squiggle = wb.squiggles().first();
    await film.say("See", "Underlined: the kernel reads back what the line above has just written");
    await film.move(squiggle, 24, 6);
    await wb.page.locator(".monaco-hover:visible", { hasText: "saves" }).first().waitFor();
    await wb.page.waitForTimeout(500);
    await film.hold(3600);

    await wb.page.mouse.move(500, 20);
    await wb.page.locator(".monaco-hover:visible", { hasText: "saves" }).first().waitFor({ state: "hidden" });
    await wb.goTo(10, 10);
    await film.say("Fix", "Each fix says what it saves");
    await wb.actionMenu();
    await wb.page.waitForTimeout(400);
    await film.hold(900);
    const action = wb.page.locator(".action-widget .monaco-list-row.action").first();
    await film.move(action, 60);
    await film.hold(1400);
    await action.click();
    await wb.until("the lower cost", async () => /50\.0/.test(await lensTexts(wb)));
    await wb.steady(() => wb.squiggles().count());
    await wb.page.mouse.move(500, 20);
    await film.say("Fix", "One kernel, and no trip through memory: 117 MB become 50.3 MB, 67.0 µs become 50.0 µs");
    await film.hold(3400);

    await film.say("Compile", "The CUDA of the kernel, beside its lines");
    await wb.command("dmir: Show CUDA");
    await wb.tab("ffn.cu").first().waitFor();
    await wb.lens(/^lines? .* of the program/).first().waitFor();
    const kernel = wb.page.locator(".view-line", { hasText: /^struct.k0/ }).first();
    await wb.until("the kernel's colours", async () => (await kernel.locator("span[class*=mtk]").count()) > 1);
    await wb.page.keyboard.press("ArrowLeft");
    await wb.until("no selection", async () => (await wb.page.locator(".selected-text:visible").count()) === 0);
    await wb.until("the end of the compilation", async () => (await wb.notifications(/^Compiling/).count()) === 0);
    await wb.page.waitForTimeout(500);
    await film.hold(3200);
    await wb.tab("ffn.cu").first().click();
    await wb.page.keyboard.press("Control+W");
    await wb.tab("ffn.cu").first().waitFor({ state: "detached" });

    await film.say("Run", "On this machine's processor, with random tensors");
    const run = wb.lens(/^Run/).first();
    await film.move(run);
    await run.click();
    await wb.page.waitForTimeout(700);
    await film.hold(900);
    await wb.until("measured times", async () => measured.test((await wb.lines()).join("\n")));
    await wb.until("the end of the run", async () => (await wb.notifications(/^Running/).count()) === 0);
    await film.say("Run", "Measured times take the place of the predicted ones");
    await wb.page.waitForTimeout(500);
    await film.hold(4200);
    film.save("recording");
  },
};
