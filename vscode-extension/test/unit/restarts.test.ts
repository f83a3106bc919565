import * as assert from "node:assert/strict";
import { RestartBudget } from "../../src/restarts";

describe("restarts after crashes", () => {
  it("stop after the limit within the window", () => {
    const budget = new RestartBudget(3, 1000, () => 0);
    assert.deepEqual([1, 2, 3, 4, 5].map(() => budget.crashed()), [true, true, true, false, false]);
  });

  it("continue while crashes are rare", () => {
    let now = 0;
    const budget = new RestartBudget(1, 1000, () => now);
    for (let i = 0; i < 10; i++) {
      assert.equal(budget.crashed(), true);
      now += 1001;
    }
  });

  it("start over when the user restarts the server", () => {
    const budget = new RestartBudget(1, 1000, () => 0);
    budget.crashed();
    assert.equal(budget.crashed(), false);
    budget.reset();
    assert.equal(budget.crashed(), true);
  });
});
