// Draws icon.png (256) and icon-128.png from icon.svg: `node images/render.mjs [chromium]`. Editors and galleries want PNG.
import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";

const here = new URL(".", import.meta.url);
const browser = await chromium.launch({ executablePath: process.argv[2] ?? "/usr/bin/chromium", args: ["--headless", "--no-sandbox"] });
const svg = await readFile(new URL("icon.svg", here), "utf8");
for (const [name, size] of [["icon.png", 256], ["icon-128.png", 128]]) {
  const page = await browser.newPage({ viewport: { width: size, height: size } });
  await page.setContent(`<style>body { margin: 0 } svg { display: block; width: ${size}px; height: ${size}px }</style>${svg}`);
  await page.screenshot({ path: new URL(name, here).pathname, omitBackground: true });
}
await browser.close();
