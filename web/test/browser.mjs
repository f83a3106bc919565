// Helpers of the pages' tests: a browser, and the three hosts of a page.
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(new URL("../../vscode-extension/package.json", import.meta.url));
const { chromium } = require("playwright-core");

export const pages = need("DMIR_PAGES");
const pictures = need("DMIR_SCREENSHOTS");

function need(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run scripts/test-pages.sh`);
  return value;
}

export function launch() {
  return chromium.launch({
    executablePath: need("DMIR_CHROMIUM"),
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

export const html = (name) => fs.readFileSync(path.join(pages, `${name}.html`), "utf8");
export const data = (name) => JSON.parse(fs.readFileSync(path.join(pages, `${name}.json`), "utf8"));
export const address = (name) => `file://${path.join(pages, `${name}.html`)}`;

/** Opens a page and records its errors, its warnings and requests to other origins. */
export async function open(browser, where, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.complaints = [];
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") page.complaints.push(m.text());
  });
  page.on("pageerror", (e) => page.complaints.push(e.message));
  page.on("dialog", (d) => {
    page.complaints.push(`a dialog: ${d.message()}`);
    void d.dismiss();
  });
  page.on("request", (r) => {
    if (!r.url().startsWith(new URL(where).origin === "null" ? "file://" : new URL(where).origin)) page.complaints.push(`a request to ${r.url()}`);
  });
  if (options.script) await page.addInitScript(options.script);
  await page.goto(where);
  return page;
}

/** The loopback server: the page under a policy with a nonce, a stream of events, and the page's posts. */
export async function loopback(name) {
  const nonce = "bm9uY2Ugb2YgdGhpcyBydW4";
  const posts = [];
  const refusals = []; // of the next posts: the reasons
  let stream;
  const server = http.createServer((request, response) => {
    if (request.url === "/token/") {
      response.writeHead(200, {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'`,
      });
      response.end(html(name).replaceAll("dmir-nonce-placeholder", nonce));
    } else if (request.url === "/token/events") {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      response.write(": hello\n\n");
      stream = response;
    } else if (request.method === "POST") {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", () => {
        posts.push({ to: request.url, type: request.headers["content-type"], body: JSON.parse(body) });
        if (refusals.length > 0) response.writeHead(400).end(refusals.shift());
        else response.writeHead(204).end();
      });
    } else response.writeHead(404).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${server.address().port}/token/`,
    posts,
    refusals,
    listening: () => stream !== undefined,
    send: (message) => stream.write(`data: ${JSON.stringify(message)}\n\n`),
    close: () => {
      stream?.end();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A script that sets up a page as a VS Code web view does before the page's own scripts run. */
export function webview({ theme = "vscode-dark", state } = {}) {
  return `
    window.posted = [];
    window.kept = ${JSON.stringify(state ?? null)} ?? undefined;
    window.acquireVsCodeApi = () => ({
      postMessage: (m) => { window.posted.push(m); },
      getState: () => window.kept,
      setState: (s) => { window.kept = s; },
    });
    document.addEventListener("readystatechange", () => {}, { once: true });
    new MutationObserver((_, o) => {
      if (!document.body) return;
      o.disconnect();
      document.body.classList.add(${JSON.stringify(theme)});
      const s = document.documentElement.style;
      s.setProperty("--vscode-editor-background", "#101820");
      s.setProperty("--vscode-foreground", "#f0f0f0");
    }).observe(document, { childList: true, subtree: true });
  `;
}

export async function picture(page, name) {
  await page.waitForTimeout(120); // a frame is drawn
  await page.screenshot({ path: path.join(pictures, `page-${name}.png`) });
}

export const picturePath = (name) => path.join(pictures, name);

/** Waits for the frame that draws all changes so far. */
export const settled = (page) => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => resolve())));

const drawnAs = async (page, name) => {
  await page.locator(`#figure[${name}]`).waitFor({ state: "attached" });
  await settled(page);
  return page.locator("#figure").getAttribute(name);
};
export const drawn = (page) => drawnAs(page, "data-drawn").then(Number);
export const view = (page) => drawnAs(page, "data-view");
export const chosen = (page) => page.locator("#card .title").innerText();

/** Waits until a condition holds. */
export async function until(what, ask) {
  const end = Date.now() + 60_000;
  while (!(await ask())) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}
