// Bundles the extension into dist/ and, with --tests, the test programs into out/test/.
import { build } from "esbuild";

const common = { bundle: true, platform: "node", format: "cjs", target: "node20", logLevel: "warning" };

await build({
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  external: ["vscode"],
  minify: true,
  sourcemap: process.argv.includes("--tests") ? "inline" : false,
  // The client's "main" fields point at UMD builds that esbuild cannot follow.
  mainFields: ["module", "main"],
});

if (process.argv.includes("--tests")) {
  await build({
    ...common,
    entryPoints: { unit: "test/unit/index.ts", host: "test/host/index.ts", workbench: "test/workbench/index.ts" },
    outdir: "out/test",
    external: ["vscode", "mocha", "playwright-core", "vscode-oniguruma", "vscode-textmate"],
    sourcemap: "inline",
  });
}
