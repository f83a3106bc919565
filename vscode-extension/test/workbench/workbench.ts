import * as path from "node:path";
import { chromium, type Browser, type FrameLocator, type Locator, type Page } from "playwright-core";
import { need } from "./vscode";

/** A time-out that a loaded machine does not reach. */
const timeout = 90_000;
/** The time-out of one attempt of a repeated action. */
const brief = { timeout: 5_000 };

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: need("DMIR_CHROMIUM"),
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** In the page: the lines of the editors; the column is drawn in front of the first character, by a style. */
const columnAndText = `[...document.querySelectorAll(".editor-instance .view-line")].map((line) => {
  const drawn = [...line.querySelectorAll("span")].map((span) => getComputedStyle(span, "::before").content);
  const column = drawn.find((content) => content !== "none" && content !== "normal") ?? "";
  return column.replace(/^"|"$/g, "") + line.innerText;
})`;

/** The workbench as seen by the user: the screen, the mouse and the keyboard. */
export class Workbench {
  private constructor(readonly page: Page) {}

  static async open(browser: Browser, address: string): Promise<Workbench> {
    const context = await browser.newContext({ viewport: { width: 1500, height: 640 } });
    const page = await context.newPage();
    page.setDefaultTimeout(timeout);
    await page.goto(address);
    await page.waitForSelector(".monaco-workbench");
    return new Workbench(page);
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }

  async screenshot(name: string): Promise<void> {
    await this.page.waitForTimeout(400); // for fading animations
    await this.page.screenshot({ path: path.join(need("DMIR_SCREENSHOTS"), `${process.env["DMIR_PICTURES"] ?? ""}${name}.png`) });
  }

  /** The page inside the active panel. */
  panel(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready:visible").frameLocator("iframe#active-frame");
  }

  tab(name: string | RegExp): Locator {
    return this.page.locator(".tab", { hasText: name });
  }

  squiggles(): Locator {
    return this.page.locator(".editor-instance .squiggly-warning, .editor-instance .squiggly-info, .editor-instance .squiggly-hint");
  }

  /** The text of the lines on the screen, with the column at the left and inlay hints, with plain spaces. */
  async lines(): Promise<string[]> {
    const lines = await this.page.evaluate<string[]>(columnAndText);
    return lines.map((line) => line.replaceAll("\u00a0", " "));
  }

  async line(containing: string): Promise<string> {
    return (await this.lines()).find((line) => line.includes(containing)) ?? "";
  }

  lens(title: RegExp): Locator {
    return this.page.locator(".codelens-decoration a[role=button]", { hasText: title });
  }

  /** Picks an entry of the last lens of the first row. */
  async more(title: string): Promise<void> {
    await this.lens(/^More/).first().click();
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click();
  }

  /** The texts above functions, clickable or not. */
  lensText(): Locator {
    return this.page.locator(".codelens-decoration");
  }

  statusItem(): Locator {
    return this.page.locator("#dmir\\.dmir\\.dmir\\.target, .statusbar-item[id*='dmir.target']");
  }

  notifications(text?: RegExp): Locator {
    const toasts = this.page.locator(".notifications-toasts .notification-list-item-message");
    return text === undefined ? toasts : toasts.filter({ hasText: text });
  }

  async clearNotifications(): Promise<void> {
    await this.command("Notifications: Clear All Notifications");
  }

  /**
   * Runs a command from the palette once it is the selected entry: the list follows the input with a delay. The entry is clicked,
   * since Enter would be typed into an editor that takes the focus at that moment.
   */
  async command(title: string): Promise<void> {
    await this.again(`the command ${title}`, async () => {
      await this.page.keyboard.press("F1");
      await this.quickInput().fill(`>${title}`, brief);
      await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: title }).click(brief);
    });
  }

  /** Runs a command until its effect shows: one that is chosen while an editor opens may find no active editor. */
  async untilEffect(title: string, effect: () => Promise<boolean>): Promise<void> {
    await this.again(`the effect of ${title}`, async () => {
      await this.command(title);
      await this.until(`the effect of ${title}`, effect, brief.timeout);
    });
  }

  /** Opens the menu of code actions at the cursor, again where VS Code took the key before the actions were there. */
  async actionMenu(): Promise<void> {
    const row = this.page.locator(".action-widget .monaco-list-row.action").first();
    await this.again("the menu of code actions", async () => {
      if (!(await row.isVisible())) await this.page.keyboard.press("Control+.");
      await row.waitFor({ timeout: brief.timeout });
    });
  }

  /**
   * Shows the hover at the cursor by its keys, again where it closed at once. The pointer leaves the text before: it may lie where
   * the entry of a list was clicked, and a pointer over the text closes the hover when what is below it moves.
   */
  async hover(text: string): Promise<void> {
    const shown = this.page.locator(".monaco-hover:visible", { hasText: text }).first();
    await this.page.mouse.move(0, 0);
    await this.again(`the hover with ${text}`, async () => {
      if (!(await shown.isVisible())) {
        await this.page.keyboard.press("Control+K");
        await this.page.keyboard.press("Control+I");
      }
      await shown.waitFor(brief);
    });
  }

  /** What a person could read when a scene failed: the text with its hints, the texts above functions, and the messages. */
  async visible(): Promise<string> {
    const [lines, lenses, messages] = await Promise.all([
      this.lines(),
      this.lensText().allInnerTexts(),
      this.notifications().allInnerTexts(),
    ]);
    return [...lines, ...lenses.map((text) => `above a function: ${text}`), ...messages.map((text) => `message: ${text}`)].join("\n");
  }

  async pick(text: string): Promise<void> {
    await this.quickInput().fill(text);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().click();
  }

  quickInput(): Locator {
    return this.page.locator(".quick-input-widget .quick-input-box input");
  }

  /** Sizes the window. A workbench that has just opened may miss the event, so the event is sent until the layout follows. */
  async resize(width: number, height: number): Promise<void> {
    await this.page.setViewportSize({ width, height });
    await this.again(`a window of ${width} by ${height}`, async () => {
      await this.page.evaluate("window.dispatchEvent(new Event('resize'))");
      await this.page.waitForFunction(
        "document.querySelector('.monaco-workbench')?.clientHeight === window.innerHeight",
        undefined,
        brief,
      );
    });
  }

  /** Moves the cursor to a place of the file, counted from one, by the entry of the list (see command). */
  async goTo(line: number, column: number): Promise<void> {
    await this.again(`the cursor at ${line}:${column}`, async () => {
      await this.page.keyboard.press("Control+G");
      await this.quickInput().fill(`:${line}:${column}`, brief);
      await this.page.locator(".quick-input-list .monaco-list-row", { hasText: new RegExp(`\\b${line}\\b.*\\b${column}\\b`) }).click(brief);
      await this.page.locator("[id='status.editor.selection']", { hasText: `Ln ${line}, Col ${column}` }).waitFor(brief);
    });
  }

  /** Repeats an action until it succeeds: a change of focus, such as by an editor that opens late, closes an input. */
  private async again(what: string, attempt: () => Promise<void>): Promise<void> {
    await this.until(what, () =>
      attempt().then(
        () => true,
        () => false,
      ),
    );
  }

  /** The result of a query once it has been stable for a while. */
  async steady<T>(ask: () => Promise<T>): Promise<T> {
    let value = await ask();
    for (let same = 0; same < 10; ) {
      await this.page.waitForTimeout(100);
      const now = await ask();
      same = now === value ? same + 1 : 0;
      value = now;
    }
    return value;
  }

  /** Waits until a condition holds; fails with its description. */
  async until(what: string, ask: () => Promise<boolean>, patience = timeout): Promise<void> {
    const deadline = Date.now() + patience;
    while (!(await ask())) {
      if (Date.now() > deadline) throw new Error(`never saw ${what}`);
      await this.page.waitForTimeout(100);
    }
  }
}
