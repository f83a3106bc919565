import * as assert from "node:assert/strict";
import { type Lens, narrow } from "../../src/lenses";

const lens = (line: number, title: string, command: string, args?: object): Lens => ({
  range: { start: { line } },
  command: { title, command, ...(args === undefined ? {} : { arguments: [args] }) },
});

describe("the lenses beside another editor", () => {
  it("are the totals of each function, and More… with everything else", () => {
    const uri = "file:///f.dmir";
    const hidden = { title: "Roofline", command: "dmir.panel", arguments: [{ uri, kind: "roofline", function: "f" }] };
    const found = narrow([
      lens(2, "12.3 µs on h200", ""),
      lens(2, "Run on the CPU", "dmir.run", { uri, func: "f" }),
      lens(2, "Graph", "dmir.panel", { uri, kind: "graph", function: "f" }),
      lens(2, "More…", "dmir.more", { uri, func: "f", items: [hidden] }),
      { range: { start: { line: 9 } } }, // totals that are resolved when they come into view
      lens(9, "Graph", "dmir.panel", { uri, kind: "graph", function: "g" }),
    ]);
    assert.deepEqual(found.map(({ range, command }) => `${range.start.line} ${command?.title ?? "?"}`), ["2 12.3 µs on h200", "2 More…", "9 ?", "9 More…"]);
    const [{ func, items }] = found[1]?.command?.arguments as [{ func: string; items: { title: string }[] }];
    assert.equal(func, "f");
    assert.deepEqual(items.map(({ title }) => title), ["Run on the CPU", "Graph", "Roofline"]);
    assert.equal((found[3]?.command?.arguments as [{ func: string }])[0].func, "g");
  });
});
