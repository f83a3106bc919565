import * as assert from "node:assert/strict";
import { blankColumn, type Change, columnText, columnWidth, linesToDraw, margin, moved } from "../../src/columnLines";
import type { ColumnHint } from "../../src/protocol";

const hints = (...lines: number[]): Map<number, ColumnHint> =>
  new Map(lines.map((line) => [line, { line, label: `of ${line}`, measured: false, stale: false, tooltip: "" }]));

const after = (from: [number, number], to: [number, number], text: string): [number, string][] => {
  const change: Change = { range: { start: { line: from[0], character: from[1] }, end: { line: to[0], character: to[1] } }, text };
  return [...moved(hints(2, 3, 4, 5), change)].map(([line, { label }]) => [line, label]);
};

describe("the column", () => {
  it("is as wide for each line, and of no-break spaces", () => {
    for (const text of [columnText("34.7µs  50MB"), blankColumn]) {
      assert.equal(text.length, columnWidth);
      assert.doesNotMatch(text, / /);
    }
  });

  it("stays with a line's text while the server has no answer", () => {
    const same: [number, string][] = [[2, "of 2"], [3, "of 3"], [4, "of 4"], [5, "of 5"]];
    assert.deepEqual(after([3, 4], [3, 6], "word"), same);
    assert.deepEqual(after([3, 0], [3, 2], ""), same);
    assert.deepEqual(after([3, 9], [3, 9], "\n  "), [[2, "of 2"], [3, "of 3"], [5, "of 4"], [6, "of 5"]]);
    assert.deepEqual(after([3, 0], [3, 0], "\n"), [[2, "of 2"], [4, "of 3"], [5, "of 4"], [6, "of 5"]]);
    assert.deepEqual(after([3, 0], [4, 0], ""), [[2, "of 2"], [3, "of 4"], [4, "of 5"]]);
    assert.deepEqual(after([2, 5], [5, 1], "x"), [[2, "of 2"]]);
  });

  it("is drawn on the screen and around it", () => {
    const range = (start: number, end: number) => ({ start: { line: start }, end: { line: end } });
    assert.deepEqual(linesToDraw(100, []), []);
    assert.deepEqual(linesToDraw(100, [range(10, 50)]), [{ first: 0, last: 99 }]);
    assert.deepEqual(linesToDraw(90_000, [range(1000, 1040)]), [{ first: 1000 - margin, last: 1040 + margin }]);
    assert.deepEqual(linesToDraw(90_000, [range(1000, 1000), range(60_000, 60_020)]), [
      { first: 1000 - margin, last: 1000 + margin },
      { first: 60_000 - margin, last: 60_020 + margin },
    ]);
  });

  it("is requested once for all editors of a document", () => {
    const range = (start: number, end: number) => ({ start: { line: start }, end: { line: end } });
    const two = [range(5000, 5040), range(1000, 1040)];
    assert.deepEqual(linesToDraw(90_000, two), [...linesToDraw(90_000, [range(1000, 1040)]), ...linesToDraw(90_000, [range(5000, 5040)])]);
    // Parts that are close together are one: a request for each fold would be many.
    const folded = Array.from({ length: 40 }, (_, i) => range(1000 + 10 * i, 1003 + 10 * i));
    assert.deepEqual(linesToDraw(90_000, folded), [{ first: 1000 - margin, last: 1393 + margin }]);
    assert.deepEqual(linesToDraw(90_000, [range(1000, 3000), range(1500, 1540)]), [{ first: 1000 - margin, last: 3000 + margin }]);
  });

  it("is drawn on no line that the document has lost", () => {
    const range = (start: number, end: number) => ({ start: { line: start }, end: { line: end } });
    assert.deepEqual(linesToDraw(10, [range(900, 940)]), [{ first: 0, last: 9 }]);
    assert.deepEqual(linesToDraw(1000, [range(500, 520), range(990, 1040)]), [
      { first: 300, last: 720 },
      { first: 790, last: 999 },
    ]);
  });
});
