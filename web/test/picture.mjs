// Takes pictures of a report page, as a person sees it.
// usage: node picture.mjs PAGE.html OUT [KEYS]    writes OUT-light.png and OUT-dark.png, after typing the keys
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(new URL("../../vscode-extension/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const [page, out, keys = ""] = process.argv.slice(2);
if (!page || !out) throw new Error("usage: node picture.mjs PAGE.html OUT [KEYS]");
const browser = await chromium.launch({
  executablePath: process.env.DMIR_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
for (const colorScheme of ["light", "dark"]) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", colorScheme });
  const tab = await context.newPage();
  await tab.goto(`file://${path.resolve(page)}`);
  await tab.locator("#figure[data-drawn], #diff table, #plans .none").first().waitFor();
  for (const key of keys) await tab.keyboard.press(key);
  if (keys !== "") await tab.waitForTimeout(300);
  await tab.screenshot({ path: `${out}-${colorScheme}.png` });
  await context.close();
}
await browser.close();
