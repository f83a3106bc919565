import * as assert from "node:assert/strict";
import { Debounced } from "../../src/debounced";

describe("a debounced call", () => {
  const eventually = async (what: string, good: () => boolean): Promise<void> => {
    for (const deadline = Date.now() + 60_000; !good(); ) {
      assert.ok(Date.now() < deadline, what);
      await wait(5);
    }
  };
  const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  it("happens once, however often it is scheduled", async () => {
    let done = 0;
    const later = new Debounced(5, () => done++);
    for (let i = 0; i < 10; i++) later.schedule();
    assert.equal(done, 0);
    await eventually("it is done", () => done > 0);
    await wait(50);
    assert.equal(done, 1);
    later.schedule();
    await eventually("it is done again", () => done > 1);
    await wait(50);
    assert.equal(done, 2);
  });

  it("does not happen after disposal", async () => {
    let done = 0;
    const later = new Debounced(5, () => done++);
    later.schedule();
    later.dispose();
    await wait(50);
    assert.equal(done, 0);
  });
});
