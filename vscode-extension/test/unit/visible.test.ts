import * as assert from "node:assert/strict";
import { type Lines, linesInView, wholeLines } from "../../src/visible";

const lines = (start: number, end: number): Lines => ({ start: { line: start }, end: { line: end } });

describe("the lines that heat requests", () => {
  it("are all lines of a short file, or if none is visible", () => {
    assert.equal(linesInView(wholeLines, [lines(0, 40)]), undefined);
    assert.equal(linesInView(100_000, []), undefined);
  });

  it("are the visible lines of a long file, and as many on either side", () => {
    assert.deepEqual(linesInView(100_000, [lines(1000, 1039)]), { first: 960, last: 1079 });
    assert.deepEqual(linesInView(100_000, [lines(10, 49)]), { first: 0, last: 89 });
    assert.deepEqual(linesInView(100_000, [lines(99_950, 99_999)]), { first: 99_900, last: 99_999 });
  });

  it("include folded lines between visible ones", () => {
    assert.deepEqual(linesInView(100_000, [lines(500, 509), lines(590, 599)]), { first: 400, last: 699 });
  });
});
