import * as assert from "node:assert/strict";
import { costAddress, costArguments } from "../../src/costUri";

describe("addresses of cost documents", () => {
  for (const args of [
    { uri: "file:///a/b/ffn.dmir" },
    { uri: "file:///a/b%20c/ffn.dmir", func: "ffn" },
    { uri: "untitled:Untitled-1", func: "a?b#c&d" },
  ]) {
    it(`round-trip ${JSON.stringify(args)}`, () => {
      assert.deepEqual(costArguments(costAddress(args).query), args);
    });
  }

  it("name the file and the function", () => {
    assert.equal(costAddress({ uri: "file:///a/b%20c/my%20ffn.dmir", func: "@ffn" }).path, "/Cost of my ffn.dmir @ffn");
    assert.equal(costAddress({ uri: "file:///a/ffn.dmir" }).path, "/Cost of ffn.dmir");
  });

  it("reject other queries", () => {
    for (const query of ["", "{", "[]", '{"func":"f"}', '{"uri":1}']) assert.equal(costArguments(query), undefined);
  });
});
