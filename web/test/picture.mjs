// Takes pictures of a report page, as a person sees it.
// usage: node picture.mjs PAGE.html OUT [HEIGHT]    writes OUT-light.png and OUT-dark.png; in a window of that height where the figure becomes larger by it
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(new URL("../../vscode-extension/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const [page, out, tall] = process.argv.slice(2);
if (!page || !out) throw new Error("usage: node picture.mjs PAGE.html OUT [HEIGHT]");
const browser = await chromium.launch({
  executablePath: process.env.DMIR_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

async function open(colorScheme, height) {
  const context = await browser.newContext({ viewport: { width: 1280, height }, reducedMotion: "reduce", colorScheme });
  const tab = await context.newPage();
  await tab.goto(`file://${path.resolve(page)}`);
  await tab.locator("#figure[data-drawn], #diff table, #plans .none").first().waitFor();
  return { context, tab, scale: async () => Number((await tab.locator("#figure").getAttribute("data-view")).split(" ")[2]) };
}

let height = 800;
if (tall) {
  const [low, high] = [await open("light", height), await open("light", Number(tall))];
  if ((await high.scale()) > 1.15 * (await low.scale())) height = Number(tall);
  await low.context.close();
  await high.context.close();
}
for (const colorScheme of ["light", "dark"]) {
  const { context, tab } = await open(colorScheme, height);
  await tab.screenshot({ path: `${out}-${colorScheme}.png` });
  await context.close();
}
await browser.close();
