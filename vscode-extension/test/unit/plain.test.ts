import * as assert from "node:assert/strict";
import { plain } from "../../src/plain";

describe("the text of a notification", () => {
  // What VS Code makes links of, see its linkedText.ts.
  const link = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/i;

  it("has no links, whatever a function is called", () => {
    for (const name of ["[fix](command:x)", "a [b](https://c) [d](file:///e \"f\")", "]([x](command:y)"]) {
      assert.doesNotMatch(plain(`@${name} ran in 1 ms`), link);
    }
  });

  it("is otherwise unchanged", () => {
    assert.equal(plain("@layer ran in 1 ms on [cuda] (a GPU)"), "@layer ran in 1 ms on [cuda] (a GPU)");
  });
});
