// The files of web/src import each other in layers: there is no circle, be it of types alone. What parts share lies below them (state.ts),
// and only the frame knows them all.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

const folder = path.join(import.meta.dirname, "../src");
const imports = new Map(fs.readdirSync(folder).filter((f) => f.endsWith(".ts")).map((file) => {
  const text = fs.readFileSync(path.join(folder, file), "utf8");
  return [file.slice(0, -3), [...text.matchAll(/^(?:import|export)\b[^;]*?from "\.\/([^"]+)"/gm)].map((m) => m[1])];
}));

/** Circles of imports, each as the names on it. */
function circles(graph) {
  const found = [];
  const left = new Set();
  const visit = (file, path) => {
    if (path.includes(file)) found.push([...path.slice(path.indexOf(file)), file].join(" → "));
    else if (!left.has(file)) {
      for (const to of graph.get(file) ?? []) visit(to, [...path, file]);
      left.add(file);
    }
  };
  for (const file of graph.keys()) visit(file, []);
  return found;
}

test("no file imports itself through others", () => {
  assert.ok(imports.get("frame").includes("search"), "imports are read");
  assert.deepEqual(circles(new Map([["a", ["b"]], ["b", ["c"]], ["c", ["b"]]])), ["b → c → b"]);
  assert.deepEqual(circles(imports), []);
});

test("only the page's entry knows the frame", () => {
  const knowing = [...imports].filter(([, to]) => to.includes("frame")).map(([file]) => file);
  assert.deepEqual(knowing, ["main"]);
});
