import * as assert from "node:assert/strict";
import * as vm from "node:vm";
import { comparisonOf, functionOf, revealOf, revertOf } from "../../src/panel/messages";
import { embed, panelOf, errorPage, titleOf } from "../../src/panel/page";
import { isPanelKind, type PanelArguments } from "../../src/protocol";

const html =
  '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src \'sha256-x\'">\n<title>@ffn</title><style nonce="dmir-nonce-placeholder">a{}</style></head>\n' +
  '<body><script type="application/json" id="data">{"note":"\\u003cscript>"}</script><script nonce="dmir-nonce-placeholder">draw("<style>")</script></body></html>';
const panel: PanelArguments = { uri: "file:///a/</script>.dmir", kind: "graph", function: "ffn" };

describe("a page in a webview", () => {
  const page = embed(html, "N0nce", panel);

  it("may load nothing and run only its own scripts", () => {
    assert.equal(page.match(/Content-Security-Policy/g)?.length, 1);
    const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(page)?.[1] ?? "";
    assert.match(policy, /^default-src 'none';/);
    assert.match(policy, /script-src 'nonce-N0nce'/);
    assert.doesNotMatch(policy, /unsafe|http|\*/);
    assert.ok(page.indexOf("Content-Security-Policy") < page.indexOf("<title>"), "the policy stands before what it is for");
  });

  it("has the nonce in place of the placeholder, and nowhere else", () => {
    const tags = page.replace(/"<style>"/, "").match(/<(script|style)[^>]*>/g) ?? [];
    assert.deepEqual(tags, [
      '<script nonce="N0nce">',
      '<style nonce="N0nce">',
      '<script type="application/json" id="data">',
      '<script nonce="N0nce">',
    ]);
    assert.match(page, /\{"note":"\\u003cscript>"\}/, "the data are as they were");
    assert.match(page, /draw\("<style>"\)/, "and so are the scripts");
  });

  it("cannot be ended by a file's name", () => {
    assert.equal(page.match(/<\/script>/g)?.length, 3);
  });

  it("is complete without a head", () => {
    assert.match(embed("<p>hello</p>", "N", panel), /Content-Security-Policy[\s\S]*<p>hello<\/p>$/);
  });

  it("shows an error as text", () => {
    assert.match(errorPage("no function @a<b>&c"), /<p>no function @a&#60;b&#62;&#38;c<\/p>/);
  });
});

/** The part of a webview that a page can access. */
class FakeWebview {
  sent: unknown[] = [];
  private acquired = false;

  constructor(public state: unknown) {}

  load(page: string): { getState(): unknown; setState(s: unknown): void; postMessage(m: unknown): void } {
    const context = vm.createContext({
      acquireVsCodeApi: () => {
        assert.equal(this.acquired, false, "VS Code gives its API once");
        this.acquired = true;
        return {
          getState: () => this.state,
          setState: (state: unknown) => {
            this.state = state;
          },
          postMessage: (message: unknown) => this.sent.push(message),
        };
      },
    });
    const script = /<script nonce="[^"]+">(\([\s\S]*?)<\/script>/.exec(page)?.[1] ?? assert.fail("no script");
    vm.runInContext(script, context);
    return vm.runInContext("acquireVsCodeApi()", context) as ReturnType<FakeWebview["load"]>;
  }
}

describe("the API for pages in a webview", () => {
  it("stores the page's state beside the panel's arguments", () => {
    const view = new FakeWebview({ panel: { uri: "old" }, page: { zoom: 2 } });
    const api = view.load(embed(html, "N", panel));
    assert.deepEqual(api.getState(), { zoom: 2 });
    api.setState({ zoom: 3 });
    assert.deepEqual(JSON.parse(JSON.stringify(view.state)), { panel, page: { zoom: 3 } });
    assert.deepEqual(panelOf(view.state, isPanelKind), panel);
    api.postMessage({ type: "function", name: "other" });
    assert.deepEqual(panelOf(view.state, isPanelKind), { ...panel, function: "other" });
    assert.deepEqual(api.getState(), { zoom: 3 });
    assert.equal(view.sent.length, 1);
  });
});

describe("the panel of a stored state", () => {
  for (const [name, state, want] of [
    ["none", undefined, undefined],
    ["no panel", { page: {} }, undefined],
    ["an unknown kind", { panel: { uri: "file:///a", kind: "pie" } }, undefined],
    ["no file", { panel: { kind: "graph" } }, undefined],
    ["no function", { panel: { uri: "file:///a", kind: "diff" } }, { uri: "file:///a", kind: "diff" }],
    ["any function", { panel: { uri: "file:///a", kind: "diff", function: "" } }, { uri: "file:///a", kind: "diff" }],
    ["all", { panel: { ...panel } }, panel],
    ["versions", { panel: { uri: "file:///a", kind: "diff", base: "git:HEAD", version: "" } }, { uri: "file:///a", kind: "diff", base: "git:HEAD" }],
  ] as const) {
    it(`where it names ${name}`, () => {
      assert.deepEqual(panelOf(state, isPanelKind), want);
    });
  }
});

describe("a panel's tab", () => {
  it("names the function, or the file", () => {
    assert.equal(titleOf(panel), "Graph @ffn");
    assert.equal(titleOf({ uri: "file:///a%20b/my%20layer.dmir", kind: "diff" }), "Changes my layer.dmir");
  });
});

describe("a page's message to reveal a place", () => {
  for (const [message, want] of [
    [{ type: "reveal", line: 3, column: 2, endColumn: 9 }, { line: 3, column: 2, endColumn: 9 }],
    [{ type: "reveal", line: 3 }, { line: 3, column: 1, endColumn: 1 }],
    [{ type: "reveal", line: 3, column: 5, endColumn: 2 }, { line: 3, column: 5, endColumn: 5 }],
    [{ type: "reveal", line: 0, column: 0, endColumn: 0 }, undefined],
    [{ type: "reveal", line: "3" }, undefined],
    [{ type: "other", line: 3 }, undefined],
    [null, undefined],
    ["reveal", undefined],
  ] as const) {
    it(JSON.stringify(message), () => {
      assert.deepEqual(revealOf(message), want);
    });
  }
});

describe("a page's message to show another function", () => {
  for (const [message, want] of [
    [{ type: "function", name: "ffn" }, "ffn"],
    [{ type: "function", name: "" }, ""],
    [{ type: "function" }, undefined],
    [{ type: "reveal", name: "ffn" }, undefined],
  ] as const) {
    it(JSON.stringify(message), () => {
      assert.equal(functionOf(message), want);
    });
  }
});

describe("a page's message about versions or the history", () => {
  it("names both versions, of which either may be the default", () => {
    assert.deepEqual(comparisonOf({ type: "compare", base: "git:HEAD", version: "" }), { base: "git:HEAD", version: "" });
    for (const message of [null, { type: "compare" }, { type: "compare", base: 1, version: "text" }, { type: "reveal", base: "a", version: "b" }]) {
      assert.equal(comparisonOf(message), undefined);
    }
  });
  it("names the entry to revert", () => {
    assert.equal(revertOf({ type: "revert", id: 3 }), 3);
    for (const message of [null, { type: "revert" }, { type: "revert", id: -1 }, { type: "revert", id: "3" }, { type: "function", id: 3 }]) {
      assert.equal(revertOf(message), undefined);
    }
  });
  it("names the version that a place is in", () => {
    assert.deepEqual(revealOf({ type: "reveal", line: 3, version: "git:HEAD" }), { line: 3, column: 1, endColumn: 1, version: "git:HEAD" });
  });
});
