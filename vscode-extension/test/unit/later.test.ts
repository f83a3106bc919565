import * as assert from "node:assert/strict";
import { Later } from "../../src/later";

describe("what is done later", () => {
  const eventually = async (what: string, good: () => boolean): Promise<void> => {
    for (const deadline = Date.now() + 60_000; !good(); ) {
      assert.ok(Date.now() < deadline, what);
      await wait(5);
    }
  };
  const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  it("is done once, however often it is asked for", async () => {
    let done = 0;
    const later = new Later(5, () => done++);
    for (let i = 0; i < 10; i++) later.ask();
    assert.equal(done, 0);
    await eventually("it is done", () => done > 0);
    await wait(50);
    assert.equal(done, 1);
    later.ask();
    await eventually("it is done again", () => done > 1);
    await wait(50);
    assert.equal(done, 2);
  });

  it("is not done after the end", async () => {
    let done = 0;
    const later = new Later(5, () => done++);
    later.ask();
    later.dispose();
    await wait(50);
    assert.equal(done, 0);
  });
});
