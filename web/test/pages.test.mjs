// The pages in a real browser, from a file, from a loopback server and as in a web view.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { address, chosen, data, drawn, html, launch, loopback, open, pages, picture, picturePath, settled, until, view, webview } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(async () => {
  await browser.close();
});

/** Opens a page, runs a test on it, and checks that it reported no error. */
async function on(where, options, play) {
  const page = await open(browser, where, options);
  try {
    await play(page);
    assert.deepEqual(page.complaints, []);
  } finally {
    await page.context().close();
  }
}

const all = fs.readdirSync(pages).filter((f) => f.endsWith(".html")).map((f) => f.slice(0, -5));

// One window opens them all, every other one in the dark; a page follows when the system's colours change.
describe("every page opens from a file", () => {
  let page;
  before(async () => {
    page = await open(browser, address(all[0]));
  });
  after(() => page.context().close());
  for (const [i, name] of all.entries()) {
    const themes = i % 2 === 0 ? ["light", "dark"] : ["dark", "light"];
    test(name, async () => {
      page.complaints = [];
      await page.emulateMedia({ colorScheme: themes[0] });
      await page.goto(address(name));
      assert.notEqual(await page.title(), "broken");
      assert.equal(await page.locator("img").count(), 0);
      for (const theme of name.startsWith("deep") ? themes.slice(0, 1) : themes) {
        await page.emulateMedia({ colorScheme: theme });
        await page.locator(`html[data-theme=${theme}]`).waitFor();
        if (name.endsWith(".plans")) assert.ok((await page.locator("#plans table, #plans .none").count()) > 0);
        else if (name.endsWith(".diff")) assert.ok((await page.locator("#diff table").count()) > 0);
        else await page.locator("#figure[data-drawn]").waitFor();
        await settled(page);
      }
      assert.deepEqual(page.complaints, []);
    });
  }
});

/** The nodes of a graph other than arguments and results, which are folded where there are many. */
const opsOf = (name) => data(name).graph.nodes.filter((n) => n.kind !== "argument" && n.kind !== "result");

describe("movement graph", () => {
  test("draws every op, argument and result", () =>
    on(address("bert_encoder.graph"), {}, async (page) => {
      const nodes = data("bert_encoder.graph").graph.nodes;
      assert.equal(await drawn(page), opsOf("bert_encoder.graph").length);
      await picture(page, "graph-folded");
      await page.keyboard.press("a");
      await until("arguments and results", async () => (await drawn(page)) === nodes.length);
      await picture(page, "graph");
      await page.keyboard.press("c");
      await until("closed groups", async () => (await drawn(page)) === nodes.filter((n) => n.parent < 0).length);
      await picture(page, "graph-closed");
      await page.keyboard.press("e");
      await until("open groups", async () => (await drawn(page)) === nodes.length);
      await page.keyboard.press("a");
      await until("folded again", async () => (await drawn(page)) === opsOf("bert_encoder.graph").length);
    }));

  test("a training step: its phases, its heaviest path, and many values as one line", () =>
    on(address("bert_encoder_train.graph"), {}, async (page) => {
      const { nodes, edges } = data("bert_encoder_train.graph").graph;
      const within = (id) => nodes.filter((n) => n.parent === id && n.kind !== "argument" && n.kind !== "result");
      const [grad, update] = within(-1);
      assert.deepEqual([grad.op, update.op, within(-1).length], ["dm.grad", "update", 2]);
      assert.ok(edges.some((e) => e.heavy && e.from === grad.id && e.to === update.id));
      await picture(page, "graph-training");
      await page.keyboard.press("c");
      await until("closed groups", async () => (await drawn(page)) === 2);
      await picture(page, "graph-phases");
    }));

  test("the gradient of a training step opens: forward and backward, op by op, each with its line in the text", () =>
    on(address("bert_encoder_train.graph"), {}, async (page) => {
      const { graph, functions } = data("bert_encoder_train.graph");
      const within = (id) => graph.nodes.filter((n) => n.parent === id);
      const grad = graph.nodes.find((n) => n.op === "dm.grad");
      const passes = within(grad.id);
      assert.deepEqual(passes.map((n) => n.op), ["forward", "backward"]);
      assert.equal(passes[0].flop + passes[1].flop, grad.flop);
      assert.equal(passes[0].moved_bytes + passes[1].moved_bytes, grad.moved_bytes);
      const [, encoder] = functions;
      for (const n of graph.nodes.filter((n) => n.parent > grad.id && n.op.startsWith("dm.") && n.id < grad.id + 120)) assert.ok(n.line > encoder.line, `${n.op} has line ${n.line}`);
      await page.keyboard.press("c");
      await until("closed groups", async () => (await drawn(page)) === 2);
      await page.locator("#figure").focus();
      await page.keyboard.press("Home");
      await page.keyboard.press(" ");
      await until("forward and backward", async () => (await drawn(page)) === 4);
      // The derivative of an op leads to the op's line.
      const rule = graph.nodes.find((n) => n.op === "∂ softmax");
      await page.keyboard.press("/");
      await page.keyboard.type("∂ softmax");
      await until("the rule", async () => (await chosen(page)).includes("∂ softmax"));
      assert.equal(await page.locator("#card .reveal").innerText(), `Line ${rule.line}`);
      assert.equal(rule.line, graph.nodes.find((n) => n.op === "dm.softmax").line);
    }));

  test("the heaviest path is marked, searched for, sorted, and switched off", () =>
    on(address("bert_encoder_train.graph"), {}, async (page) => {
      const heavy = data("bert_encoder_train.graph").graph.nodes.filter((n) => n.heavy).length;
      const pixels = () => page.locator("#figure").evaluate((c) => c.toDataURL());
      const chip = page.locator("#switches button", { hasText: "Heaviest path" });
      assert.equal(await chip.getAttribute("aria-pressed"), "true");
      await settled(page);
      const marked = await pixels();
      await chip.click();
      await until("no mark", async () => (await chip.getAttribute("aria-pressed")) === "false");
      await settled(page);
      assert.notEqual(await pixels(), marked);
      await page.keyboard.press("h");
      await settled(page);
      assert.equal(await chip.getAttribute("aria-pressed"), "true");
      await page.keyboard.press("/");
      await page.keyboard.type("heaviest path");
      assert.equal(await page.locator("#found").innerText(), `1 / ${heavy}`);
      assert.match(await page.locator("#card").innerText(), /heaviest path\s+on it/);
      await page.locator("#search").press("Escape");
      await page.locator("#tableButton").click();
      await page.locator("thead button", { hasText: "Path" }).click();
      const column = await page.locator("#table tbody tr").evaluateAll((rows) => rows.map((r) => [...r.children].some((c) => c.textContent === "heaviest")));
      assert.deepEqual(column, [...column].sort((a, b) => b - a));
      assert.equal(column.filter(Boolean).length, heavy);
    }));

  test("zooming into a group opens it at its place, zooming out closes it; switched off it does neither", () =>
    on(address("deep.graph"), {}, async (page) => {
      const box = await page.locator("#figure").boundingBox();
      const wheel = async (dy, times) => {
        for (let i = 0; i < times; i++) {
          await page.mouse.wheel(0, dy);
          await settled(page);
        }
      };
      await page.keyboard.press("c");
      const closed = await drawn(page);
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await page.keyboard.press("z");
      await wheel(-200, 12);
      assert.ok((await drawn(page)) <= closed, "a group opened");
      assert.equal(await page.locator("#switches button", { hasText: "Zoom opens" }).getAttribute("aria-pressed"), "false");
      await page.keyboard.press("z");
      await page.keyboard.press("0");
      const fitted = Number((await view(page)).split(" ")[2]);
      let open = closed;
      for (let i = 0; i < 40 && open <= closed; i++) {
        await wheel(-100, 1);
        open = await drawn(page);
      }
      assert.ok(open > closed, "no group opened");
      await picture(page, "graph-zoomed");
      let again = open;
      for (let i = 0; i < 80 && again !== closed; i++) {
        await wheel(100, 1);
        again = await drawn(page);
      }
      assert.equal(again, closed);
      await page.keyboard.press("0");
      assert.equal(Number((await view(page)).split(" ")[2]), fitted);
      // What the user opens after a zoom stays open when the zoom goes back.
      for (let i = 0, n = closed; i < 40 && n <= closed; i++) {
        await wheel(-100, 1);
        n = await drawn(page);
      }
      await page.keyboard.press("e");
      await page.keyboard.press("0");
      const opened = await drawn(page);
      await wheel(100, 10);
      assert.equal(await drawn(page), opened);
    }));

  test("the minimap shows the part on the screen, of closed and open groups, and moves it", () =>
    on(address("deep.graph"), {}, async (page) => {
      const minimap = page.locator("#minimap");
      const pixels = () => minimap.evaluate((c) => c.toDataURL());
      const near = async () => {
        for (let i = 0; i < 8; i++) await page.keyboard.press("+");
        await settled(page);
        assert.ok(await minimap.isVisible());
        return pixels();
      };
      await page.keyboard.press("z");
      await page.keyboard.press("c");
      const closed = await near();
      await page.keyboard.press("e");
      const open = await near();
      assert.notEqual(open, closed);
      await page.keyboard.press("+");
      await until("a smaller part", async () => (await pixels()) !== open);
      const before = await view(page);
      const box = await minimap.boundingBox();
      await page.mouse.click(box.x + box.width / 2, box.y + box.height - 12);
      await until("the end of the graph", async () => Number((await view(page)).split(" ")[1]) > Number(before.split(" ")[1]));
      assert.equal((await view(page)).split(" ")[2], before.split(" ")[2]);
    }));

  test("search finds by name, op and class, goes on and opens what a match is in", () =>
    on(address("bert_encoder.graph"), {}, async (page) => {
      await page.keyboard.press("c");
      await page.keyboard.press("/");
      await page.keyboard.type("softmax");
      const nodes = data("bert_encoder.graph").graph.nodes;
      const matches = nodes.filter((n) => `${n.result} ${n.op}`.includes("softmax")).length;
      assert.equal(await page.locator("#found").innerText(), `1 / ${matches}`);
      const first = await chosen(page);
      await page.keyboard.press("Enter");
      await until("another match", async () => (await chosen(page)) !== first);
      await page.keyboard.press("Shift+Enter");
      await until("the first match", async () => (await chosen(page)) === first);
      await page.locator("#search").fill("normalization layer");
      await until("two words", async () => (await page.locator("#found").innerText()) === `1 / ${nodes.filter((n) => n.op === "dm.layer_norm").length}`);
      await page.locator("#search").fill("%1 softmax");
      await until("the op in its kernel", async () => (await chosen(page)) === "%1 = softmax");
      await page.locator("#search").fill("nowhere");
      assert.equal(await page.locator("#found").innerText(), "none");
      await page.locator("#search").press("Escape");
      assert.equal(await page.locator("#found").innerText(), "");
    }));

  test("the keys walk along the lines and into kernels", () =>
    on(address("bert_encoder.graph"), {}, async (page) => {
      await page.locator("#figure").focus();
      await page.keyboard.press("a");
      await page.keyboard.press("Home");
      assert.equal(await chosen(page), "%x");
      const way = [];
      for (let i = 0; i < 4; i++) {
        await page.keyboard.press("ArrowDown");
        way.push(await chosen(page));
      }
      assert.deepEqual(way, ["%qkv = einsum", "%q, %k, %v = kernel", "%0 = add", "%1 = slice"]);
      await page.keyboard.press("ArrowRight");
      assert.equal(await chosen(page), "%2 = slice");
      for (const up of ["%0 = add", "%q, %k, %v = kernel", "%qkv = einsum"]) {
        await page.keyboard.press("ArrowUp");
        assert.equal(await chosen(page), up);
      }
      await page.keyboard.press("ArrowDown");
      const open = await drawn(page);
      await page.keyboard.press("Space");
      await until("a closed kernel", async () => (await drawn(page)) < open);
      assert.match(await page.locator("#live").innerText(), /kernel.*time .* moved/s);
      const before = await view(page);
      await page.keyboard.press("+");
      await until("nearer", async () => (await view(page)) !== before);
      await page.keyboard.press("0");
      await until("all of it", async () => Number((await view(page)).split(" ")[2]) > 0);
      await page.keyboard.press("?");
      assert.ok(await page.locator("dialog").isVisible());
      await page.keyboard.press("Escape");
      assert.ok(!(await page.locator("dialog").isVisible()));
    }));

  test("a class that is filtered out leaves the table", () =>
    on(address("bert_encoder.graph"), {}, async (page) => {
      await page.keyboard.press("t");
      const nodes = data("bert_encoder.graph").graph.nodes;
      assert.equal(await page.locator("#table tbody tr").count(), nodes.length);
      await page.locator(".chip[data-class=movement]").click();
      assert.equal(await page.locator(".chip[data-class=movement]").getAttribute("aria-pressed"), "false");
      assert.equal(await page.locator("#table tbody tr").count(), nodes.filter((n) => n.class !== "movement").length);
    }));

  test("the table is sorted by its headings and navigated by keys", () =>
    on(address("bert_encoder.graph"), {}, async (page) => {
      await page.locator("#tableButton").click();
      await page.locator("thead button", { hasText: "Time" }).click();
      assert.equal(await page.locator("th[aria-sort=descending]").innerText(), "Time ▾");
      const times = await page.locator("#table tbody tr td:nth-child(4)").allInnerTexts();
      const byTime = data("bert_encoder.graph").graph.nodes.filter((n) => n.time_ns > 0).sort((a, b) => b.time_ns - a.time_ns);
      assert.equal(times[0], byTime[0].time_label);
      await page.locator("#table tbody button").first().focus();
      await page.keyboard.press("ArrowDown");
      assert.equal(await page.locator("tr[aria-selected=true]").getAttribute("data-item"), await page.locator("#table tbody tr").nth(1).getAttribute("data-item"));
      await picture(page, "graph-table");
    }));

  test("a page of a file copies the place of a selected node", () =>
    on(address("bert_encoder.graph"), {}, async (page) => {
      await page.locator("#figure").focus();
      await page.keyboard.press("/");
      await page.keyboard.type("qk_t");
      await page.locator("#card .reveal").click();
      await until("the place", async () => (await page.locator("#toast").innerText()).startsWith("examples/bert_encoder.dmir:49:"));
    }));

  test("tooltips of a node and a line", () =>
    on(address("one.graph"), {}, async (page) => {
      const box = await page.locator("#figure").boundingBox();
      const [x, y, k] = (await view(page)).split(" ").map(Number);
      // One argument, one op, one result, in the middle: the op is at the middle of the figure.
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      await until("a tooltip", () => page.locator("#tip").isVisible());
      assert.match(await page.locator("#tip").innerText(), /%y = exp[\s\S]*time[\s\S]*memory[\s\S]*read[\s\S]*4.19 MB/);
      const nodes = 3;
      assert.equal(await drawn(page), nodes);
      assert.ok(k > 0 && Number.isFinite(x) && Number.isFinite(y));
      let line = false;
      for (let dy = 20; dy < box.height / 2 && !line; dy += 6) {
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2 - dy);
        await settled(page);
        line = /read from memory/.test(await page.locator("#tip").textContent()) && (await page.locator("#tip").isVisible());
      }
      assert.ok(line, "no line shows what it moves");
    }));
});

describe("by keyboard alone, and for screen readers", () => {
  const kinds = ["graph", "roofline", "memory", "mesh", "timeline", "plans", "diff"];
  const pageOf = (kind) => ["bert_encoder", "mlp_megatron", "bert"].map((name) => `${name}.${kind}`).find((name) => all.includes(name)) ?? all.find((name) => name.endsWith(`.${kind}`));

  for (const kind of kinds) {
    test(`${kind}: Tab reaches every control, with a visible mark and a name`, () =>
      on(address(pageOf(kind)), {}, async (page) => {
        await settled(page);
        const expected = await page.evaluate(() => {
          const found = [...document.querySelectorAll("button, select, input, a[href], summary, [tabindex]")].filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex >= 0);
          found.forEach((e, i) => { e.dataset.stop = String(i); });
          return found.length;
        });
        assert.ok(expected > 0 && expected < 400, `${expected} controls`);
        const seen = new Set();
        for (let i = 0; i < expected + 8 && seen.size < expected; i++) {
          await page.keyboard.press("Tab");
          const at = await page.evaluate(() => {
            const e = document.activeElement;
            const name = e.getAttribute("aria-label") ?? (e.textContent.trim() || e.getAttribute("title") || "");
            return { stop: e.dataset.stop, name, marked: getComputedStyle(e).outlineStyle !== "none", what: e.outerHTML.slice(0, 120) };
          });
          if (at.stop === undefined) continue; // the page itself, or an area that scrolls
          assert.ok(at.marked, `no mark at ${at.what}`);
          assert.notEqual(at.name, "", `no name of ${at.what}`);
          seen.add(at.stop);
        }
        assert.equal(seen.size, expected);
      }));
  }

  for (const kind of kinds.filter((k) => k !== "plans" && k !== "diff")) {
    test(`${kind}: keys select, say what is selected, show it in the text, search, filter and list`, () =>
      on(address(pageOf(kind)), {}, async (page) => {
        await settled(page);
        await page.keyboard.press("Tab");
        while (!(await page.evaluate(() => document.activeElement.id === "figure"))) await page.keyboard.press("Tab");
        await page.keyboard.press("End");
        await page.keyboard.press("Home");
        assert.ok(await page.locator("#card").isVisible());
        assert.notEqual(await page.locator("#live").innerText(), "");
        for (let i = 0; i < 40 && (await page.locator("#card .reveal").count()) === 0; i++) await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        await until("the place", async () => /:\d+/.test(await page.locator("#toast").innerText()));
        await page.keyboard.press("Escape");
        assert.ok(!(await page.locator("#card").isVisible()));
        await page.keyboard.press("t");
        await until("the table", () => page.locator("#table").isVisible());
        await page.keyboard.press("t");
        const chip = page.locator("#legend .chip[data-class]").first();
        if ((await chip.count()) === 0) return;
        await chip.focus();
        await page.keyboard.press("Space");
        assert.equal(await chip.getAttribute("aria-pressed"), "false");
        assert.ok(await chip.evaluate((e) => e === document.activeElement));
      }));
  }

  test("a class of the legend has one name and a state that says whether it is shown", () =>
    on(address("bert_encoder.graph"), {}, async (page) => {
      const chip = page.getByRole("button", { name: /^Show contraction, \d+ ops$/, pressed: true });
      assert.equal(await chip.count(), 1);
      await chip.click();
      assert.equal(await page.getByRole("button", { name: /^Show contraction, \d+ ops$/, pressed: false }).count(), 1);
      for (const e of await page.locator("[aria-pressed]").all()) assert.doesNotMatch(`${await e.getAttribute("title")} ${await e.getAttribute("aria-label")}`, /\bhide\b/i);
    }));
});

describe("small windows", () => {
  const tall = (page, id) => page.locator(id).evaluate((e) => e.offsetHeight);

  test("a narrow panel, and a page at 200 %, leave most of the room to the picture", async () => {
    for (const [name, width, height] of [["bert_encoder.graph", 270, 640], ["bert_encoder.roofline", 640, 400], ["bert_encoder.memory", 270, 500]]) {
      if (!all.includes(name)) continue;
      await on(address(name), { viewport: { width, height } }, async (page) => {
        await settled(page);
        const main = await tall(page, "main");
        assert.ok(main > height * 0.6, `${name} in ${width} × ${height}: ${main} pixels for the picture`);
        await picture(page, `small-${name}-${width}`);
      });
    }
  });

  test("the mesh opens without a card over its devices", () =>
    on(address(all.find((n) => n.endsWith(".mesh"))), { viewport: { width: 900, height: 600 } }, async (page) => {
      await settled(page);
      assert.ok(!(await page.locator("#card").isVisible()));
      await page.locator("#figure").focus();
      await page.keyboard.press("ArrowDown");
      assert.ok(await page.locator("#card").isVisible());
    }));

  test("buttons have an edge in themes that give them no colour", () =>
    on(address("bert_encoder.graph"), { script: webview() }, async (page) => {
      await page.evaluate(() => {
        for (const name of ["button-secondaryBackground", "button-border"]) document.documentElement.style.setProperty(`--vscode-${name}`, "#00000000"); // as in Dark Modern
      });
      await picture(page, "buttons-dark-modern");
      for (const id of ["#tableButton", "#openButtons button", "#legend .chip"]) {
        const edge = await page.locator(id).first().evaluate((e) => getComputedStyle(e).borderTopColor);
        assert.doesNotMatch(edge, /rgba\(.*, 0\)/);
      }
    }));
});

describe("hosts", () => {
  test("loopback: strict policy, reveal, select; new data keeps selection, groups and view", async () => {
    const host = await loopback("bert_encoder.graph");
    try {
      await on(host.address, {}, async (page) => {
        await until("the stream", host.listening);
        assert.equal(await drawn(page), opsOf("bert_encoder.graph").length);
        await page.locator("#figure").focus();
        await page.keyboard.press("/");
        await page.keyboard.type("%gamma einsum");
        await page.keyboard.press("Escape");
        await page.locator("#figure").focus();
        await page.keyboard.press("Enter");
        await until("a post", () => host.posts.length === 1);
        assert.deepEqual(host.posts[0], { to: "/token/reveal", type: "application/json", body: { line: 58, column: 3, endColumn: host.posts[0].body.endColumn } });
        await page.keyboard.press("+");
        await page.keyboard.press("+");
        host.send({ type: "select", line: 51 });
        await until("the selection", async () => /%dropped = kernel/.test(await chosen(page)));
        await page.locator("#figure").focus();
        await page.keyboard.press("Space");
        const [nodes, seen] = [await drawn(page), await view(page)];
        const next = data("bert_encoder.graph");
        for (const n of next.graph.nodes) if (n.line > 0) n.line += 2;
        next.totals.time_label = "123 µs";
        host.send({ type: "data", data: next });
        await until("new totals", async () => (await page.locator("#totals").innerText()).includes("123 µs"));
        assert.match(await chosen(page), /%dropped = kernel/);
        assert.equal(await page.locator("#card .reveal").innerText(), "Line 53");
        assert.equal(await drawn(page), nodes);
        assert.equal(await view(page), seen);
        // Ops above what is seen: it stays where it is on the screen.
        const [zoom] = seen.split(" ").slice(-1);
        host.send({ type: "data", data: data("bert_encoder_fused.graph") });
        await until("the other version", async () => (await page.locator("#totals").innerText()).includes(data("bert_encoder_fused.graph").totals.time_label));
        assert.match(await chosen(page), /%dropped = kernel/);
        assert.equal((await view(page)).split(" ").at(-1), zoom);
        host.close();
        await until("the loss", () => page.locator("#status").isVisible());
        page.complaints = page.complaints.filter((c) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(c));
      });
    } finally {
      host.close();
    }
  });

  test("web view: colours of VS Code, messages, and stored state", () =>
    on(address("attention_symbolic.graph"), { script: webview(), colorScheme: "light" }, async (page) => {
      assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
      assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(16, 24, 32)");
      assert.deepEqual(await page.locator("#functions option").evaluateAll((all) => all.map((o) => o.value)), ["attention", "fused"]);
      await page.locator("#functions").selectOption("fused");
      await page.locator("#figure").focus();
      await page.keyboard.press("Home");
      await page.keyboard.press("Enter");
      const posted = await page.evaluate(() => window.posted);
      assert.deepEqual(posted[0], { type: "function", name: "fused" });
      assert.equal(posted[1].type, "reveal");
      assert.ok(posted[1].line > 0 && posted[1].column > 0 && posted[1].endColumn > posted[1].column);
      await page.evaluate((d) => { window.postMessage({ type: "data", data: d }); }, data("ffn.graph"));
      await until("the other program", async () => (await page.locator("h1").innerText()).includes("@ffn"));
      await page.evaluate((d) => { window.postMessage({ type: "data", data: { ...d, stale: "of the text before the error in line 5" } }); }, data("ffn.graph"));
      await until("figures of earlier text", async () => (await page.locator("header.stale .warning").innerText()) === "Of the text before the error in line 5");
      await page.evaluate((d) => { window.postMessage({ type: "data", data: d }); }, data("ffn.graph"));
      await until("figures of this text", async () => (await page.locator("header.stale").count()) === 0);
      await page.evaluate(() => { window.postMessage({ type: "select", line: 6 }); });
      await until("a chosen line", async () => (await page.locator("#card .reveal").count()) === 1);
      assert.match(await page.evaluate(() => window.kept.selected), /%/);
      await page.evaluate(() => { window.postMessage("noise"); window.postMessage({ type: "data" }); window.postMessage(null); });
      await picture(page, "webview");
      await page.evaluate(() => { document.body.className = "vscode-light"; });
      await until("the light theme", async () => (await page.locator("html").getAttribute("data-theme")) === "light");
    }));

  test("web view: a second policy, of the host, with its nonce", () => {
    const nonce = "aG9zdA";
    const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'">`;
    const file = picturePath("page-embedded.html");
    fs.writeFileSync(file, html("ffn.graph").replaceAll("dmir-nonce-placeholder", nonce).replace("<head>", `<head>${policy}`));
    return on(`file://${file}`, {}, async (page) => {
      assert.equal(await drawn(page), data("ffn.graph").graph.nodes.length);
      assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).display), "block", "the style took no effect");
    });
  });

  test("web view: restores its state", () =>
    on(address("bert_encoder.graph"), { script: webview({ state: { kind: "graph", function: "bert_encoder", selected: "op dm.einsum %qk_t ", figure: [["kernel dm.kernel %q, %k, %v ", false]] } }) }, async (page) => {
      assert.equal(await chosen(page), "%qk_t = einsum");
      assert.equal(await drawn(page), opsOf("bert_encoder.graph").length - 7);
    }));
});

describe("roofline", () => {
  test("a dot per op, walked by time", () =>
    on(address("bert_encoder.roofline"), {}, async (page) => {
      const { dots } = data("bert_encoder.roofline").roofline;
      assert.equal(await drawn(page), dots.length);
      await picture(page, "roofline");
      await page.locator("#figure").focus();
      const seen = await view(page);
      const times = [];
      for (let i = 0; i < dots.length; i++) {
        await page.keyboard.press("ArrowDown");
        times.push(await chosen(page));
      }
      assert.equal(new Set(times).size, dots.length);
      const longest = dots.reduce((a, b) => (b.time_ns > a.time_ns ? b : a));
      assert.ok(times[0].startsWith(longest.result));
      assert.equal(await view(page), seen);
      await page.locator(".chip[data-class=elementwise]").click();
      await until("fewer dots", async () => (await drawn(page)) === dots.filter((d) => d.class !== "elementwise").length);
    }));

  for (const name of ["low.roofline", "bert_encoder.roofline", "cnn_train.roofline"]) {
    test(`names stand whole within the axes: ${name}`, () =>
      on(address(name), {}, async (page) => {
        const names = await page.evaluate(() => {
          window.dispatchEvent(new Event("beforeprint"));
          const svg = document.querySelector("#paper figure svg");
          const [frame] = [...svg.querySelectorAll("rect")].map((r) => ["y", "height"].map((a) => Number(r.getAttribute(a)))).filter(([, h]) => h > 300);
          return [...svg.querySelectorAll("text")].filter((t) => t.textContent.startsWith("%")).map((t) => ({ text: t.textContent, above: Number(t.getAttribute("y")) - frame[0], below: frame[0] + frame[1] - Number(t.getAttribute("y")) }));
        });
        assert.ok(names.length > 0, "no names");
        for (const n of names) assert.ok(n.above >= 6 && n.below >= 6, `${n.text} is cut: ${n.above} from above, ${n.below} from beneath`);
      }));
  }

  test("ops with symbolic costs are listed with the reason", () =>
    on(address("attention_symbolic.roofline"), {}, async (page) => {
      assert.match(await page.locator("#notes").innerText(), /depends on b, n/);
      assert.match(await page.locator(".warning").innerText(), /--bind b=…,n=…/);
    }));
});

describe("memory plan", () => {
  test("a rectangle per buffer, the peak and what is live there", () =>
    on(address("bert_encoder.memory"), {}, async (page) => {
      const { memory } = data("bert_encoder.memory");
      assert.equal(await drawn(page), memory.buffers.length);
      assert.equal(await page.locator("#notes li").count(), memory.buffers.filter((b) => b.at_peak).length);
      await picture(page, "memory");
      await page.keyboard.press("/");
      await page.keyboard.type("relu");
      assert.equal(await chosen(page), "%relu");
      await page.locator("#figure").focus();
      await page.keyboard.press("ArrowUp");
      assert.notEqual(await chosen(page), "%relu");
    }));

  test("without a plan, the reason", () =>
    on(address("attention_symbolic.memory"), {}, async (page) => {
      assert.match(await page.locator("#blank").innerText(), /depends on/);
    }));
});

describe("a program that was traced from Python", () => {
  const panels = ["graph", "roofline", "memory"];
  for (const kind of panels) {
    test(`${kind}: grouped by line and by module; a group lights up its items`, () =>
      on(address(`traced.${kind}`), {}, async (page) => {
        const { groups, memory } = data(`traced.${kind}`);
        const size = (g) => (memory ? g.held_bytes : g.time_ns);
        const listed = (all) => all.filter((g) => size(g) > 0).sort((a, b) => size(b) - size(a));
        const names = () => page.locator("#groups .name").allInnerTexts();
        assert.equal(await page.locator("#groups").isVisible(), false);
        await page.locator("#groupBy").selectOption("by line");
        assert.deepEqual(await names(), listed(groups.lines).map((g) => g.name));
        const first = listed(groups.lines)[0];
        const entry = page.locator("#groups button").first();
        assert.match(await entry.innerText(), new RegExp(`${first.name}\\s+${memory ? first.held_label : first.time_label}`));
        await entry.click();
        assert.equal(await entry.getAttribute("aria-pressed"), "true");
        const index = groups.lines.indexOf(first);
        const items = kind === "graph" ? data(`traced.${kind}`).graph.nodes : kind === "roofline" ? [...data(`traced.${kind}`).roofline.dots] : memory.buffers;
        const inside = items.filter((x) => (x.in_lines ?? []).includes(index)).length;
        if (kind !== "roofline") assert.equal(await page.locator("#found").innerText(), String(inside));
        await picture(page, `traced-${kind}`);
        await page.locator("#tableButton").click();
        assert.match(await page.locator("#table tr.head").first().innerText(), new RegExp(first.name));
        assert.equal(await page.locator("#table tr.head").count(), 1);
        await page.keyboard.press("Escape");
        await until("everything again", async () => (await page.locator("#found").innerText()) === "");
        assert.ok((await page.locator("#table tr.head").count()) > 1);
        const rows = page.locator("#table tbody tr:not(.head) button");
        await rows.first().focus();
        for (let i = 1; i < (await rows.count()); i++) await page.keyboard.press("ArrowDown");
        assert.ok(await rows.last().evaluate((e) => e === document.activeElement), "the keys go over the heads of groups");
        await page.locator("#tableButton").click();
        await page.locator("#figure").focus();
        await page.keyboard.press("g");
        assert.equal(await page.locator("#groups").isVisible(), false);
        await page.keyboard.press("g");
        assert.deepEqual(await names(), listed(groups.modules).map((g) => g.name || "the program itself"));
        await picture(page, `traced-${kind}-modules`);
      }));
  }

  test("its modules are groups of the graph, forward and backward apart", () =>
    on(address("traced.graph"), {}, async () => {
      const { nodes } = data("traced.graph").graph;
      assert.deepEqual(nodes.filter((n) => n.kind === "scope").map((n) => n.op), ["mlp", "mlp, backward"]);
    }));
});

describe("diff", () => {
  test("the ops that changed most come first", () =>
    on(address("bert.diff"), {}, async (page) => {
      const f = data("bert.diff").diff.functions[0];
      assert.equal(await page.locator("table.ops tbody tr").count(), f.ops.length);
      const most = Math.max(...f.ops.map((o) => Math.abs(o.moved_bytes.change)));
      const first = await page.locator("table.ops tbody tr").first().innerText();
      assert.ok(f.ops.some((o) => Math.abs(o.moved_bytes.change) === most && first.includes(o.result)));
      await page.locator("#measure").selectOption("time_ns");
      await page.keyboard.press("Tab");
      await page.locator("#search").fill("dropout2");
      assert.ok((await page.locator("table.ops tbody tr").count()) < f.ops.length);
      await page.locator("#search").press("Escape");
      await page.locator("table.ops tbody tr.added button").first().click();
      await until("the place in the new version", async () => /bert_encoder_fused.dmir:\d+:\d+/.test(await page.locator("#toast").innerText()));
      await picture(page, "diff");
    }));

  test("nothing differs", () =>
    on(address("same.diff"), {}, async (page) => {
      assert.match(await page.locator("#diff .none").innerText(), /Nothing differs/);
    }));
});

/** The diff of BERT's two versions as an editor sends it: with versions to choose. */
function editorDiff(change = {}) {
  const d = data("bert.diff");
  const choices = [["saved", "the saved file", "this document"], ["git:HEAD", "HEAD", "a revision"], ["git:1a2b3c4", "1a2b3c4 2026-01-02 A <b>subject</b>", "a revision"], ["after-fuse", "after fuse", "the function, compiled"]];
  const bases = choices.map(([value, label, group]) => ({ value, label, group }));
  return { ...d, diff: { ...d.diff, base: "git:HEAD", version: "text", bases, versions: [{ value: "text", label: "the text", group: "this document" }, bases[3]], ...change } };
}

const made = [];
after(() => {
  for (const folder of made) fs.rmSync(folder, { recursive: true });
});

/** Stores a page with other data, and returns its address. */
function withData(name, of, d) {
  const json = JSON.stringify(d).replaceAll("<", "\\u003c");
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "dmir-page-")), `${name}.html`);
  fs.writeFileSync(file, html(of).replace(/(id="data">)[^<]*/, (_, head) => head + json));
  made.push(path.dirname(file));
  return `file://${file}`;
}

describe("diff in an editor", () => {
  const where = () => withData("editor_diff", "bert.diff", editorDiff());
  const posted = (page) => page.evaluate(() => window.posted);

  test("an op that moved into a kernel is one row, and each of its places leads to its version", () =>
    on(where(), { script: webview() }, async (page) => {
      const ops = data("bert.diff").diff.functions[0].ops;
      const fused = ops.filter((o) => o.status === "fused");
      assert.ok(fused.length > 5 && !ops.some((o) => o.status === "removed"));
      assert.equal(await page.locator("tr.fused").count(), fused.length);
      const row = page.locator("tr.fused").first();
      assert.match(await row.innerText(), /into kernel/);
      await row.getByRole("button").nth(0).click();
      await row.getByRole("button").nth(1).click();
      const [before, after] = await posted(page);
      const pair = fused.find((o) => o.old_place.line === before.line && o.line === after.line);
      assert.ok(pair);
      assert.equal(before.version, "git:HEAD");
      assert.equal(after.version, undefined);
      await picture(page, "diff-editor-dark");
    }));

  test("both versions can be chosen, named and opened", () =>
    on(where(), { script: webview({ theme: "vscode-light" }) }, async (page) => {
      await page.locator("#base").selectOption("git:1a2b3c4");
      await page.locator("#version").selectOption("after-fuse");
      assert.deepEqual(await posted(page), [{ type: "compare", base: "git:1a2b3c4", version: "text" }, { type: "compare", base: "git:1a2b3c4", version: "after-fuse" }]);
      assert.match(await page.locator(".versions").innerText(), /comparing…/);
      await page.locator("#base").selectOption({ label: "another revision or file…" });
      await page.locator("input#base").fill("main~3");
      // An edit of the text meanwhile takes nothing of what is typed.
      await page.evaluate((d) => { window.postMessage({ type: "data", data: d }); }, editorDiff({ old: "HEAD (12345678)" }));
      await until("the new data", async () => (await page.locator(".versions").innerText()).includes("12345678"));
      await page.keyboard.type(":x");
      await page.keyboard.press("Enter");
      assert.deepEqual((await posted(page)).at(-1), { type: "compare", base: "main~3:x", version: "text" });
      await page.getByRole("button", { name: "Open" }).first().click();
      assert.deepEqual((await posted(page)).at(-1), { type: "reveal", line: 1, column: 1, endColumn: 1, version: "main~3:x" });
      await picture(page, "diff-editor");
      await page.evaluate((d) => { window.postMessage({ type: "data", data: d }); }, editorDiff({ functions: [], same: false, reason: "there is no revision “x” in the repository" }));
      await until("the reason", async () => /Cannot compare: there is no revision “x”/.test(await page.locator("#diff .none").innerText()));
      assert.equal(await page.locator("#base").count(), 1);
    }));

  /** Where the focus is: the row and the control in it. */
  const focus = (page) =>
    page.evaluate(() => {
      const now = document.activeElement;
      return [now.closest("[data-key]")?.getAttribute("data-key"), now.getAttribute("data-part") ?? now.id];
    });

  test("the keys walk along rows, in the column of a version", () =>
    on(where(), { script: webview() }, async (page) => {
      const rows = await page.locator("tbody tr").evaluateAll((all) => all.map((r) => r.getAttribute("data-key")));
      const both = await page.locator("tbody tr:has([data-part=base]):has([data-part=version])").evaluateAll((all) => all.map((r) => r.getAttribute("data-key")));
      assert.ok(both.length > 5);
      const walked = [];
      for (let i = 0; i < rows.length; i++) {
        await page.keyboard.press("ArrowDown");
        walked.push(await focus(page));
      }
      assert.deepEqual(walked.map(([key]) => key), rows);
      await page.keyboard.press("ArrowDown"); // the last row is the last
      assert.deepEqual(await focus(page), walked.at(-1));
      await page.locator(`[data-key="${both[1]}"] [data-part=base]`).focus();
      await page.keyboard.press("ArrowUp");
      const above = rows[rows.indexOf(both[1]) - 1];
      assert.deepEqual(await focus(page), [above, both.includes(above) ? "base" : (await page.locator(`[data-key="${above}"] [data-part]`).first().getAttribute("data-part"))]);
    }));

  test("new data leaves the focus where it is, and none takes it", () =>
    on(where(), { script: webview() }, async (page) => {
      let times = 0;
      const load = async (change = {}) => {
        const old = `version ${times++}`;
        await page.evaluate((d) => { window.postMessage({ type: "data", data: d }); }, editorDiff({ old, bases: [{ value: "git:HEAD", label: old, group: "a revision" }], ...change }));
        await until("the new data", async () => (await page.locator("#base, .versions").allInnerTexts()).join(" ").includes(old));
      };
      for (const control of ["tr:has([data-part=base]) [data-part=version]", ".versions #version", ".versions [data-part=refresh]", "summary"]) {
        await page.locator(control).first().focus();
        const before = await focus(page);
        await load();
        assert.deepEqual(await focus(page), before, control);
      }
      // Nothing takes the place of a row that is gone.
      const gone = page.locator("tr.added [data-part]").first();
      const key = await gone.evaluate((b) => b.closest("[data-key]").getAttribute("data-key"));
      await gone.focus();
      await load({ functions: editorDiff().diff.functions.map((f) => ({ ...f, ops: f.ops.map((o) => (o.status === "added" ? { ...o, line: 0 } : o)) })) });
      assert.notEqual((await focus(page))[0], key);
      // While a version is asked for, the user may search.
      await page.locator("#base").selectOption({ label: "another revision or file…" });
      assert.deepEqual(await focus(page), ["versions", "base"]);
      await page.keyboard.type("main");
      await page.locator("#search").focus();
      await page.keyboard.type("dropout");
      assert.deepEqual(await focus(page), [undefined, "search"]);
      await load();
      assert.deepEqual(await focus(page), [undefined, "search"]);
      assert.equal(await page.locator("input#base").inputValue(), "main");
      assert.equal(await page.locator("#search").inputValue(), "dropout");
    }));

  test("a rejected comparison shows the reason, and is asked for again", async () => {
    const host = await loopback("bert.diff");
    try {
      await on(host.address, {}, async (page) => {
        await until("the stream", host.listening);
        host.send({ type: "data", data: editorDiff() });
        await page.locator("#base").waitFor();
        host.refusals.push("cannot compile @bert: DM801");
        await page.locator("#version").selectOption("after-fuse");
        const note = page.locator(".versions [role=status]");
        await until("the reason", async () => (await note.innerText()) === "no comparison: cannot compile @bert: DM801");
        assert.ok(await page.locator("#status").isHidden(), "the reason is told twice");
        await page.getByRole("button", { name: "Retry" }).click();
        await until("a second post", () => host.posts.length === 2);
        assert.deepEqual(host.posts[1], host.posts[0]);
        assert.deepEqual(host.posts[1].body, { base: "git:HEAD", version: "after-fuse" });
        assert.equal(await note.innerText(), "comparing…");
        host.send({ type: "data", data: editorDiff({ version: "after-fuse" }) });
        await until("the comparison", async () => (await note.innerText()) === "");
        assert.equal(await page.getByRole("button", { name: "Refresh" }).count(), 1);
        page.complaints = page.complaints.filter((c) => !/400/.test(c));
      });
    } finally {
      host.close();
    }
  });
});

describe("history", () => {
  const delta = (old, now, change) => ({ old: 1, new: 0, change: change === "0" ? 0 : -1, old_label: old, new_label: now, change_label: change, percent_label: change === "0" ? "" : "−36.4 %" });
  const saved = [{ function: "ffn", moved_bytes: delta("185 MB", "117 MB", "−67.1 MB"), time_ns: delta("74.8 µs", "59.2 µs", "−15.6 µs"), peak_bytes: delta("83.9 MB", "83.9 MB", "0") }];
  const entry = (id, more) => ({ id, title: "Fuse with %0 into a kernel", at: "14:02:45", state: "applied", line: 3, column: 3, end_column: 3, lines: "lines 3–7", note: "", saved, ...more });
  const applied = [entry(4, {}), entry(3, { title: "Write in generic form", saved: [] }), entry(2, { state: "edited", note: "revert “Write in generic form” first" }), entry(1, { state: "reverted" })];
  const of = (list) => ({ ...data("same.diff"), kind: "history", title: "Applied fixes and refactorings", functions: [], diff: undefined, history: { applied: list } });

  for (const theme of ["vscode-light", "vscode-dark"]) {
    test(`what was applied, what it saved, and what can be reverted, ${theme}`, () =>
      on(withData("history", "same.diff", of(applied)), { script: webview({ theme }) }, async (page) => {
        const rows = page.locator("#history tbody tr");
        assert.equal(await rows.count(), 4);
        assert.match(await rows.nth(0).innerText(), /14:02:45[^]*Fuse with %0 into a kernel[^:]*lines 3–7[^]*@ffn[^]*moved 185 MB → 117 MB −67.1 MB \(−36.4 %\)/);
        assert.doesNotMatch(await rows.nth(0).innerText(), /peak|saves/);
        assert.match(await rows.nth(1).innerText(), /no function costs anything else/);
        assert.match(await rows.nth(2).innerText(), /revert “Write in generic form” first/);
        assert.match(await rows.nth(3).innerText(), /reverted/);
        assert.equal(await rows.nth(3).getByRole("button").count(), 0);
        assert.equal(await page.getByRole("button", { name: "Revert" }).count(), 2);
        await page.getByRole("button", { name: "Revert" }).first().click();
        await page.getByRole("button", { name: "lines 3–7" }).last().click();
        assert.deepEqual(await page.evaluate(() => window.posted), [{ type: "revert", id: 4 }, { type: "reveal", line: 3, column: 3, endColumn: 3 }]);
        await picture(page, `history-${theme}`);
        // The row keeps the focus when its buttons go.
        await page.getByRole("button", { name: "Revert" }).first().focus();
        await page.evaluate((d) => { window.postMessage({ type: "data", data: d }); }, of([entry(4, { state: "reverted" }), ...applied.slice(1)]));
        await until("the reverted entry", async () => /reverted/.test(await rows.nth(0).innerText()));
        assert.equal(await page.evaluate(() => document.activeElement.getAttribute("data-key")), "4");
        await page.evaluate((d) => { window.postMessage({ type: "data", data: d }); }, of([]));
        await until("an empty history", async () => /No fix or refactoring/.test(await page.locator("#history").innerText()));
      }));
  }
});

describe("small and large", () => {
  test("a function without ops shows a message", () =>
    on(address("empty.graph"), {}, async (page) => {
      assert.match(await page.locator("#blank").innerText(), /no ops/);
      for (const key of ["Tab", "ArrowDown", "Enter", "Space", "t", "t", "+", "0"]) await page.keyboard.press(key);
    }));

  test("more than 5,000 nodes", () =>
    on(address("deep.graph"), {}, async (page) => {
      const nodes = data("deep.graph").graph.nodes.length;
      assert.ok(nodes > 5000);
      // Equal layers are one node until they are opened.
      assert.ok((await drawn(page)) < 60);
      await picture(page, "deep-layers");
      const closed = await drawn(page);
      const from = Date.now();
      await page.locator("#figure").focus();
      await page.keyboard.press("e");
      await until("open groups", async () => (await drawn(page)) > Math.max(closed, 4000));
      console.log(`# ${nodes} nodes: all groups opened in ${Date.now() - from} ms`);
      await picture(page, "deep");
      const ready = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
      const frame = async (what) => {
        const before = await view(page);
        const ms = await page.evaluate(async () => {
          const canvas = document.getElementById("figure");
          const frames = [];
          for (let i = 0; i < 20; i++) {
            const from = performance.now();
            canvas.dispatchEvent(new WheelEvent("wheel", { deltaX: i % 2 ? 40 : 44, deltaY: 9, shiftKey: false, cancelable: true }));
            await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
            frames.push(performance.now() - from);
          }
          return frames.sort((a, b) => a - b)[10];
        });
        assert.notEqual(await view(page), before, "the figure did not move");
        console.log(`# ${nodes} nodes: a frame of panning, ${what}: ${ms.toFixed(1)} ms`);
      };
      console.log(`# ${nodes} nodes: interactive after ${ready.toFixed(0)} ms`);
      await frame("all of it on the screen");
      await page.keyboard.press("/");
      await page.keyboard.type("%s200 ");
      await page.keyboard.press("Enter");
      await until("the op", async () => (await chosen(page)) === "%s200 = einsum");
      await picture(page, "deep-near");
      await frame("near");
    }));
});

describe("patterns", () => {
  test("draws a picture of each sparse tensor, and says in words where its elements are", () =>
    on(address("gcn_train.pattern"), {}, async (page) => {
      const { patterns } = data("gcn_train.pattern");
      assert.equal(await drawn(page), patterns.length);
      assert.match(await page.locator("#figure").getAttribute("aria-label") ?? await page.content(), /of the elements lie within an eighth of the diagonal/);
      await picture(page, "patterns");
    }));
});

describe("mesh", () => {
  const rows = (page) => page.locator("#table tbody tr").count();
  const card = (page) => page.locator("#card").innerText();

  test("the pieces of a value on each device, with padding, copies and parts of a sum", () =>
    on(address("cube.mesh"), {}, async (page) => {
      const { values, layouts, axes } = data("cube.mesh").mesh;
      assert.equal(axes.map((a) => `${a.name} ${a.size}`).join(), "pod 2,data 2,model 3");
      assert.equal(await chosen(page), "%x");
      assert.match(await card(page), /sharding\s+\{data\}·\{\}·\{model\}\s+why\s+stated\s+a device has\s+5×8×11 f32/);
      assert.match(await card(page), /6 on 12 devices\s+padded\s+dimension 2 from 32 to 33/);
      assert.deepEqual(layouts[values[0].layout].dims[2].parts.map((p) => `${p.label} ${p.padding}`), ["0:11 0", "11:22 0", "22:32 1"]);
      await picture(page, "mesh");
      await page.locator("#figure").focus();
      await page.keyboard.press("ArrowDown");
      assert.equal(await chosen(page), "%w");
      await page.keyboard.press("ArrowRight");
      assert.equal(await chosen(page), "%y");
      assert.match(await card(page), /partial\s+one of 3 to add along \{model\}/);
      await picture(page, "mesh-partial");
      await page.keyboard.press("t");
      assert.equal(await rows(page), values.length);
    }));

  test("the list scrolls to what is found, and by the wheel alone; a device shows where it is", () =>
    on(address("llama_fsdp.mesh"), { colorScheme: "dark" }, async (page) => {
      const { values } = data("llama_fsdp.mesh").mesh;
      const box = await page.locator("#figure").boundingBox();
      const pixels = () => page.locator("#figure").evaluate((c) => c.toDataURL());
      await page.mouse.move(box.x + 100, box.y + 300);
      await settled(page);
      const [before, where] = [await pixels(), await view(page)];
      await page.mouse.wheel(0, 400);
      await until("another part of the list", async () => (await pixels()) !== before);
      assert.equal(await view(page), where);
      await page.keyboard.press("/");
      await page.keyboard.type(values.at(-1).name);
      await until("the last value", async () => (await chosen(page)) === values.at(-1).name);
      await page.locator("#search").press("Escape");
      await page.mouse.move(box.x + box.width * 0.42, box.y + box.height * 0.3);
      await until("a device", async () => /device \d+\s+@pod\s+data\s+\d of 8/.test(await page.locator("#tip").innerText()));
      await picture(page, "mesh-dark");
    }));

  test("a narrow view has the list above the devices", () =>
    on(address("mlp_megatron.mesh"), { viewport: { width: 420, height: 760 } }, async (page) => {
      assert.ok(!(await page.locator("#card").isVisible()));
      await picture(page, "mesh-narrow");
      const box = await page.locator("#figure").boundingBox();
      await page.mouse.click(box.x + 60, box.y + 26 + 22 * 2.5);
      assert.equal(await chosen(page), data("mlp_megatron.mesh").mesh.values[2].name);
    }));
});

describe("timeline", () => {
  test("the steps of both streams, their totals, and what is exposed", () =>
    on(address("overlap.timeline"), {}, async (page) => {
      const t = data("overlap.timeline").timeline;
      assert.ok(t.exposed_ns > 0 && t.exposed_ns < t.communication_ns, "something is hidden, and something is not");
      const apart = t.exposed.reduce((sum, e) => sum + e.end_ns - e.start_ns, 0) - t.exposed_ns;
      assert.ok(Math.abs(apart) <= t.exposed.length, `spans of whole ns add up to the total but for their rounding: ${apart} ns`);
      assert.equal(await drawn(page), t.bars.length);
      const totals = await page.locator("#totals").innerText();
      for (const s of [t.time_label, t.compute_label, t.communication_label, t.exposed_label, ...t.sent.flatMap((s) => [`sent along ${s.axes}`, s.label])]) assert.ok(totals.includes(s), s);
      assert.match(await page.locator("#legend").innerText(), /One of 8 devices, which all run alike/);
      await picture(page, "timeline");
      const comm = t.bars.filter((b) => b.stream === "communication");
      await page.keyboard.press("/");
      await page.keyboard.type("communication");
      assert.equal(await page.locator("#found").innerText(), `1 / ${comm.length}`);
      assert.match(await page.locator("#card").innerText(), /sent along .*algorithm\s+\w+/s);
      await page.locator("#search").press("Escape");
      await page.locator(".chip[data-class=communication]").click();
      await page.keyboard.press("t");
      assert.equal(await page.locator("#table tbody tr").count(), t.bars.length - comm.length);
    }));

  test("the keys walk along a stream and to the other one; zooming moves along time alone", () =>
    on(address("overlap.timeline"), { colorScheme: "dark" }, async (page) => {
      const { bars } = data("overlap.timeline").timeline;
      const title = (b) => (b.result ? `${b.result} = ${b.op.replace("dm.", "")}` : b.op.replace("dm.", ""));
      const [kernels, comm] = ["compute", "communication"].map((s) => bars.filter((b) => b.stream === s));
      await page.locator("#figure").focus();
      await page.keyboard.press("Home");
      assert.equal(await chosen(page), title(bars[0]));
      if (bars[0].stream === "communication") await page.keyboard.press("ArrowUp");
      const here = await chosen(page);
      await page.keyboard.press("ArrowRight");
      const next = await chosen(page);
      assert.ok(kernels.some((b) => title(b) === next) && next !== here);
      await page.keyboard.press("ArrowDown");
      assert.ok(comm.map(title).includes(await chosen(page)));
      await picture(page, "timeline-dark");
      const [, y] = (await view(page)).split(" ");
      for (let i = 0; i < 4; i++) await page.keyboard.press("+");
      await page.keyboard.press("Shift+ArrowDown");
      await page.keyboard.press("Shift+ArrowRight");
      await picture(page, "timeline-near");
      assert.equal((await view(page)).split(" ")[1], y);
      await page.keyboard.press("0");
      assert.equal(await drawn(page), bars.length);
    }));

  test("a page in high contrast", () =>
    on(address("overlap.timeline"), { script: webview({ theme: "vscode-high-contrast" }) }, async (page) => {
      await page.locator("#figure[data-drawn]").waitFor();
      await picture(page, "timeline-contrast");
    }));

  test("without links there are no times, and why", () =>
    on(address("unlinked.timeline"), {}, async (page) => {
      assert.match(await page.locator("#blank").innerText(), /^There is no timeline: /);
    }));
});

describe("plans", () => {
  const rows = (page) => page.locator("#plans .rows tbody tr");
  const ranks = (page) => rows(page).locator("button").allInnerTexts();
  const task = (page) => page.locator("#task").innerText();

  test("a row for each plan, with its figures and the parts of its time", () =>
    on(address("step.plans"), {}, async (page) => {
      const [result] = data("step.plans").plans.results;
      assert.equal(await rows(page).count(), result.plans.length);
      for (const [i, p] of result.plans.entries()) {
        const text = await rows(page).nth(i).innerText();
        for (const word of [p.axes, String(p.stages.length), p.schedule, p.recompute, p.time_label, p.slower_label, p.bubble_share_label, p.tokens_label, p.mfu_label, p.memory_label, p.memory_share_label, p.sent_label, p.gap_label]) assert.ok(text.includes(word), `no ${word} in ${text}`);
        const parts = await rows(page).nth(i).locator("svg.bar").getAttribute("aria-label");
        assert.ok(parts.includes(`compute ${p.compute_label}, exposed communication ${p.exposed_label}`), parts);
        assert.equal(parts.includes(`bubble ${p.bubble_label}`), p.bubble_ns > 0);
      }
      const totals = await page.locator("#totals").innerText();
      for (const f of data("step.plans").plans.model) assert.ok(totals.includes(f.label), f.name);
      assert.ok((await page.locator("#plans caption").first().innerText()).includes(result.bound_label));
      await page.locator("#plans thead button", { hasText: "Time" }).click();
      const times = [...result.plans].sort((a, b) => a.time_ns - b.time_ns).map((p) => String(p.rank));
      assert.deepEqual(await ranks(page), times);
      await page.locator("#plans thead button", { hasText: "Time" }).press("Enter");
      assert.deepEqual(await ranks(page), times.reverse());
      await picture(page, "plans");
    }));

  test("two plans are drawn on one time axis, with every task of each", () =>
    on(address("step.plans"), { colorScheme: "dark" }, async (page) => {
      const { plans } = data("step.plans").plans.results[0];
      const tasks = (...of) => of.reduce((sum, i) => sum + (plans[i].pipeline ? plans[i].pipeline.lanes.reduce((n, l) => n + l.kinds.length, 0) : 2), 0);
      assert.equal(await drawn(page), tasks(0, 1));
      await picture(page, "plans-dark");
      // A third plan takes the place of the one that was chosen first.
      await page.getByRole("button", { name: "Compare plan 5" }).click();
      await until("plans 2 and 5", async () => (await drawn(page)) === tasks(1, 4));
      assert.deepEqual(await page.locator("#plans .rows tr[aria-selected=true] button").allInnerTexts(), ["2", "5"]);
      assert.equal(await page.locator("#plans .memory").count(), 2);
      const memory = await page.locator("#plans .memory").first().innerText();
      for (const s of plans[1].stages) assert.ok(memory.includes(s.memory_label) && memory.includes(s.memory_share_label), s.memory_label);
      for (const p of plans[1].memory_parts) assert.ok(memory.includes(`${p.name} ${p.label}`), p.name);
      await page.getByRole("button", { name: "Compare plan 5" }).press("Space");
      await until("plan 2 alone", async () => (await drawn(page)) === tasks(1));
      await page.getByRole("button", { name: "Compare plan 2" }).press("Space");
      await until("none", async () => !(await page.locator("#figure").isVisible()));
    }));

  test("the keys walk along tasks and devices, zoom and pan; a tooltip has the times of a task", () =>
    on(address("step.plans"), {}, async (page) => {
      const [first] = data("step.plans").plans.results[0].plans;
      await page.locator("#figure").focus();
      await page.keyboard.press("Home");
      assert.match(await task(page), /^forward, micro-batch 0 · Plan 1.* · stage 0 · device 0 · from 0 s/);
      await page.keyboard.press("ArrowRight");
      assert.match(await task(page), /^forward, micro-batch 1 .* device 0/);
      await page.keyboard.press("End");
      assert.match(await task(page), /^gradient of weights, micro-batch 15 .* stage 0 .* device 0/);
      await page.keyboard.press("Home");
      await page.keyboard.press("ArrowDown");
      assert.match(await task(page), /micro-batch 0 .* stage 1 · device 1/);
      for (let i = 0; i < 8; i++) await page.keyboard.press("ArrowDown");
      assert.match(await task(page), /Plan 2.* stage 1 · device 1/);
      await picture(page, "plans-task");
      const seen = await view(page);
      for (let i = 0; i < 6; i++) await page.keyboard.press("+");
      await page.keyboard.press("Shift+ArrowRight");
      await until("nearer", async () => Number((await view(page)).split(" ")[2]) > 4 * Number(seen.split(" ")[2]));
      await picture(page, "plans-near");
      await page.keyboard.press("0");
      assert.equal(await view(page), seen);
      await page.keyboard.press("Enter");
      await until("the place", async () => (await page.locator("#toast").innerText()).startsWith(`examples/step.dmir:${first.stages[1].line}:`));
      await page.keyboard.press("Escape");
      assert.match(await task(page), /walk along tasks/);
      const box = await page.locator("#figure").boundingBox();
      await page.mouse.move(box.x + 122, box.y + 36);
      await until("a tooltip", () => page.locator("#tip").isVisible());
      assert.match(await page.locator("#tip").innerText(), /forward, micro-batch 0[^]*stage\s+0[^]*from\s+0 s[^]*idle before\s+0 s/);
      await page.mouse.down();
      await page.mouse.move(box.x + 90, box.y + 36, { steps: 4 });
      await page.mouse.up();
      assert.notEqual(await view(page), seen);
    }));

  test("a pipeline of tens of thousands of tasks is drawn as shares of its time, and quickly", () =>
    on(address("large.plans"), {}, async (page) => {
      const { plans } = data("large.plans").plans.results[0];
      assert.equal(plans[0].pipeline.lanes.length, 64);
      assert.ok(plans[0].pipeline.lanes[0].kinds.length > 500 && plans[1].pipeline.lanes[0].shares !== undefined);
      await page.locator("#figure").focus();
      await picture(page, "plans-large");
      const whole = await drawn(page);
      assert.equal(whole, 128);
      const ms = await page.evaluate(async () => {
        const frames = [];
        for (let i = 0; i < 10; i++) {
          const from = performance.now();
          document.getElementById("figure").dispatchEvent(new WheelEvent("wheel", { deltaX: i % 2 ? 40 : -40, cancelable: true }));
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
          frames.push(performance.now() - from);
        }
        return frames.sort((a, b) => a - b)[5];
      });
      console.log(`# 64 devices: ${whole} parts drawn, a frame of panning: ${ms.toFixed(1)} ms`);
      for (let i = 0; i < 14; i++) await page.keyboard.press("+");
      await until("single tasks", async () => (await drawn(page)) > 5 * whole);
      await page.keyboard.press("Home");
      assert.match(await task(page), /^forward, micro-batch 0 .* device 0/);
      await page.keyboard.press("0");
      for (let i = 0; i < 64; i++) await page.keyboard.press("ArrowDown");
      assert.match(await task(page), /^device 0 · Plan 2.* forward \d+ % · backward \d+ %.* idle in the step/);
    }));

  test("a sweep: time and cost over devices, and the plans of each number of devices", () =>
    on(address("sweep.plans"), {}, async (page) => {
      const { results } = data("sweep.plans").plans;
      assert.deepEqual(results.map((r) => r.devices), [8, 16, 64, 256, 1024]);
      const charts = page.locator("#plans .charts svg");
      assert.equal(await charts.count(), 2);
      for (const r of results.slice(1)) {
        assert.ok((await charts.first().getAttribute("aria-label")).includes(`${r.devices} devices ${r.time_label}`));
        assert.ok((await charts.last().getAttribute("aria-label")).includes(`${r.devices} devices ${r.cost_label}`));
      }
      // Ideal scaling is a line from the first point: n times the devices, an n-th of the time.
      const lines = await charts.first().locator("polyline[stroke-dasharray]").first().getAttribute("points");
      const [x0, y0, x1, y1, x2, y2] = lines.split(" ").map(Number);
      assert.ok(Math.abs((y1 - y0) / (x1 - x0) - (y2 - y1) / (x2 - x1)) < 0.01 && y1 > y0);
      assert.equal(await charts.first().locator("circle").count(), 4);
      assert.match(await page.locator("#plans caption").first().innerText(), /^1 plan for 1024 devices/);
      await picture(page, "plans-sweep");
      await page.getByRole("button", { name: "64", exact: true }).press("Enter");
      await until("64 devices", async () => (await rows(page).count()) === results[2].plans.length);
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "64");
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("Enter");
      assert.match(await page.locator("#plans .none").innerText(), /^No plan for 8 devices fits in 85.9 GB each/);
    }));

  test("no plan, a page in high contrast, and a narrow one", async () => {
    await on(address("none.plans"), {}, async (page) => {
      assert.match(await page.locator("#plans .none").innerText(), /^No plan for 8 devices/);
      assert.ok(!(await page.locator("#figure").isVisible()));
    });
    await on(address("step.plans"), { script: webview({ theme: "vscode-high-contrast" }) }, async (page) => {
      await drawn(page);
      await picture(page, "plans-contrast");
      await page.locator("#plans .stages button").first().click();
      assert.equal((await page.evaluate(() => window.posted)).at(-1).line, data("step.plans").plans.results[0].plans[0].stages[0].line);
      await page.evaluate((d) => { window.postMessage({ type: "data", data: d }); }, data("sweep.plans"));
      await until("the sweep", async () => (await page.locator("#plans .charts svg").count()) === 2);
    });
    await on(address("step.plans"), { viewport: { width: 420, height: 700 } }, async (page) => {
      assert.ok(!(await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)), "the page is wider than its window");
      await picture(page, "plans-narrow");
    });
  });

  test("everything is reached with the Tab key", () =>
    on(address("sweep.plans"), {}, async (page) => {
      const reached = new Set();
      for (let i = 0; i < 60; i++) {
        await page.keyboard.press("Tab");
        const here = await page.evaluate(() => {
          const e = document.activeElement;
          if (!e || e === document.body) return null;
          return { name: e.id || e.getAttribute("aria-label") || e.textContent, ring: getComputedStyle(e).outlineStyle !== "none" };
        });
        if (!here) break;
        assert.ok(here.ring, `no ring around ${here.name}`);
        reached.add(here.name);
      }
      for (const name of ["Keys and what is shown (?)", "256", "Compare plan 1", "Time", "figure", "0, line 10"]) assert.ok(reached.has(name), `${name} is not reached: ${[...reached].join(", ")}`);
      await page.keyboard.press("?");
      assert.match(await page.locator("dialog").innerText(), /compare the plan/);
    }));
});

describe("paper", () => {
  for (const name of ["step.plans", "sweep.plans", "cube.mesh", "overlap.timeline", "bert_encoder.graph", "bert_encoder.roofline", "bert_encoder.memory", "bert.diff", "deep.graph", "attention_symbolic.graph", "empty.graph"]) {
    test(name, () =>
      on(address(name), { colorScheme: "dark" }, async (page) => {
        const file = picturePath(`page-${name}.pdf`);
        await page.pdf({ path: file, preferCSSPageSize: true, printBackground: true });
        assert.ok(fs.statSync(file).size > 8_000, "an empty sheet");
        const d = data(name);
        let text;
        try {
          text = execFileSync("pdftotext", ["-q", file, "-"], { encoding: "utf8" });
        } catch {
          return; // no tool to read it
        }
        assert.ok(text.includes(d.title.split(" ")[0]), "no title");
        const words = { graph: () => d.graph.nodes.filter((n) => n.time_ns > 0).sort((a, b) => b.time_ns - a.time_ns).map((n) => n.time_label), roofline: () => d.roofline.roofs.map((r) => r.label), memory: () => [d.memory.peak_label], mesh: () => d.mesh.values.map((v) => v.piece), timeline: () => [d.timeline.time_label, ...d.timeline.sent.map((s) => s.label)], diff: () => [d.diff.functions[0].moved_bytes.new_label], plans: () => [...d.plans.results.map((r) => r.time_label), ...d.plans.results.at(-1).plans.flatMap((p) => [p.axes, p.mfu_label])] }[d.kind]();
        for (const word of words.slice(0, 12)) assert.ok(text.includes(word), `no ${word}`);
      }));
  }
});

describe("people", () => {
  for (const colorScheme of ["light", "dark"]) {
    test(`text has contrast, ${colorScheme}`, () =>
      on(address("bert_encoder.graph"), { colorScheme }, async (page) => {
        const weak = await page.evaluate(() => {
          const style = getComputedStyle(document.documentElement);
          const rgb = (text) => {
            const probe = document.createElement("canvas").getContext("2d");
            probe.fillStyle = text;
            probe.fillRect(0, 0, 1, 1);
            return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
          };
          const light = (text) => rgb(text).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
          const value = (name) => style.getPropertyValue(name).trim();
          const pairs = [["--text", "--background", 4.5], ["--muted", "--background", 4.5], ["--muted", "--surface", 4.5], ["--more", "--background", 4.5], ["--less", "--background", 4.5], ["--warning", "--background", 4.5], ["--accent", "--background", 3]];
          for (const cls of ["contraction", "normalization", "elementwise", "movement", "communication", "compute", "forward", "backward", "weight", "once", "idle", "unknown", "value"]) pairs.push([`--class-${cls}`, "--background", 3], [`--class-ink-${cls}`, `--class-${cls}`, cls === "elementwise" ? 3 : 4.5]);
          return pairs.filter(([a, b, least]) => ratio(value(a), value(b)) < least).map(([a, b]) => `${a} on ${b}: ${ratio(value(a), value(b)).toFixed(2)}`);
        });
        assert.deepEqual(weak, []);
      }));
  }

  test("everything is reached with the Tab key, and seen to be", () =>
    on(address("bert_encoder.graph"), {}, async (page) => {
      const reached = new Set();
      for (let i = 0; i < 40; i++) {
        await page.keyboard.press("Tab");
        const here = await page.evaluate(() => {
          const e = document.activeElement;
          if (!e || e === document.body) return null;
          return { name: e.id || e.getAttribute("aria-label") || e.textContent, ring: getComputedStyle(e).outlineStyle !== "none" };
        });
        if (!here) break;
        assert.ok(here.ring, `no ring around ${here.name}`);
        reached.add(here.name);
      }
      for (const name of ["search", "figure", "tableButton", "Open all groups (e)"]) assert.ok(reached.has(name), `${name} is not reached: ${[...reached].join(", ")}`);
      assert.ok((await page.locator("#figure").getAttribute("aria-label")).includes("Movement graph"));
    }));

  test("a narrow view", () =>
    on(address("bert_encoder.graph"), { viewport: { width: 420, height: 700 } }, async (page) => {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
      assert.ok(!wide, "the page is wider than its window");
      await page.locator("#figure").focus();
      await page.keyboard.press("Home");
      await picture(page, "narrow");
    }));
});
