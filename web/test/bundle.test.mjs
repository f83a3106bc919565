// The committed bundle is what its source makes.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { bundle } from "../build.mjs";

for (const [file, text] of await bundle()) {
  test(path.basename(file), () => {
    assert.ok(fs.readFileSync(file, "utf8") === text, `${file} is not what web/src makes: run scripts/build-web.sh and commit the result`);
  });
}
