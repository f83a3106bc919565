// Properties of the layered layout: nothing overlaps, edges lead down, and the layout is deterministic.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

const { buildSync } = createRequire(new URL("../../vscode-extension/package.json", import.meta.url))("esbuild");
const module = buildSync({ absWorkingDir: import.meta.dirname, entryPoints: ["../src/layout.ts"], bundle: true, write: false, format: "esm" }).outputFiles[0].text;
const { layoutGraph } = await import(`data:text/javascript,${encodeURIComponent(module)}`);

const layout = (g) => layoutGraph(g, { leave() {}, enter() {} });

function random(seed) {
  let s = seed;
  return () => (s = (s * 1103515245 + 12345) % 2147483648) / 2147483648;
}

/** A graph like that of a program: most values are used soon, some late, some often. */
function program(n, seed) {
  const next = random(seed);
  const g = { width: [], height: [], from: [], to: [], first: [], last: [], aspect: seed % 2 === 0 ? 1.5 : 0 };
  for (let v = 0; v < n; v++) {
    g.width.push(60 + Math.floor(next() * 180));
    g.height.push(30 + Math.floor(next() * 60));
    for (let k = Math.floor(next() * 3); k > 0 && v > 0; k--) {
      const back = next() < 0.1 ? Math.floor(next() * v) : Math.floor(next() * Math.min(v, 6));
      g.from.push(v - 1 - back < 0 ? 0 : v - 1 - back);
      g.to.push(v);
    }
  }
  return g;
}

for (const [n, seeds] of [[1, 3], [2, 5], [12, 40], [120, 12], [1500, 2]]) {
  test(`${n} nodes`, () => {
    for (let seed = 1; seed <= seeds; seed++) {
      const g = program(n, seed);
      const l = layout(g);
      for (let v = 0; v < n; v++) {
        assert.ok(Number.isFinite(l.x[v]) && Number.isFinite(l.y[v]), `node ${v} has no place`);
        assert.ok(l.x[v] >= -0.01 && l.x[v] + g.width[v] <= l.width + 0.01 && l.y[v] >= -0.01 && l.y[v] + g.height[v] <= l.height + 0.01, `seed ${seed}: node ${v} is outside`);
      }
      const order = [...l.y.keys()].sort((a, b) => l.y[a] - l.y[b]);
      for (let i = 0; i < n; i++) {
        const a = order[i];
        for (let j = i + 1; j < n && l.y[order[j]] < l.y[a] + g.height[a]; j++) {
          const b = order[j];
          assert.ok(l.x[a] + g.width[a] <= l.x[b] + 0.01 || l.x[b] + g.width[b] <= l.x[a] + 0.01, `seed ${seed}: ${a} and ${b} overlap`);
        }
      }
      l.paths.forEach((path, e) => {
        if (!path) return;
        const last = path.at(-1);
        assert.ok(Math.abs(path[0][2] - (l.y[g.from[e]] + g.height[g.from[e]])) < 0.01, `seed ${seed}: line ${e} does not begin at its node`);
        assert.ok(Math.abs(last.at(-1) - l.y[g.to[e]]) < 0.01, `seed ${seed}: line ${e} does not end at its node`);
      });
      assert.deepEqual(JSON.stringify(layout(g).paths), JSON.stringify(l.paths), "another layout of the same graph");
    }
  });
}

test("nothing", () => {
  const l = layout({ width: [], height: [], from: [], to: [], first: [], last: [], aspect: 1.5 });
  assert.equal(l.width, 0);
});

test("a chain is straight", () => {
  const g = { width: [100, 40, 180, 60], height: [40, 40, 40, 40], from: [0, 1, 2], to: [1, 2, 3], first: [], last: [], aspect: 0 };
  const l = layout(g);
  const centres = [...l.x].map((x, v) => x + g.width[v] / 2);
  for (const c of centres) assert.ok(Math.abs(c - centres[0]) < 0.01);
});

test("a tree has no crossings", () => {
  // Node v has the children 2v+1 and 2v+2.
  const n = 63;
  const g = { width: Array(n).fill(50), height: Array(n).fill(30), from: [], to: [], first: [], last: [], aspect: 0 };
  for (let v = 1; v < n; v++) {
    g.from.push((v - 1) >> 1);
    g.to.push(v);
  }
  const l = layout(g);
  for (let a = 0; a < g.from.length; a++) {
    for (let b = 0; b < a; b++) {
      if (l.y[g.from[a]] !== l.y[g.from[b]] || g.from[a] === g.from[b]) continue;
      assert.equal(l.x[g.from[a]] < l.x[g.from[b]], l.x[g.to[a]] < l.x[g.to[b]], `lines ${a} and ${b} cross`);
    }
  }
});
