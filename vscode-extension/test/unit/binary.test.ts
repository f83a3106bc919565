import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { findBinary } from "../../src/binary";

describe("finding the binary", () => {
  let root: string;
  const program = (...parts: string[]): string => {
    const file = path.join(root, ...parts);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, "#!/bin/sh\n", { mode: 0o755 });
    return file;
  };
  const search = (configured: string) =>
    findBinary({
      configured,
      extensionPath: path.join(root, "extension"),
      workspaceFolder: path.join(root, "project"),
      env: { PATH: [path.join(root, "empty"), path.join(root, "usr")].join(":") },
      platform: "linux",
    });

  beforeEach(() => {
    root = fs.mkdtempSync(path.join(os.tmpdir(), "dmir-binary-"));
  });
  afterEach(() => {
    fs.rmSync(root, { recursive: true });
  });

  it("names what it tried if there is none", () => {
    assert.deepEqual(search(""), { found: false, tried: "dmir on PATH" });
    assert.deepEqual(search("/nowhere/dmir"), { found: false, tried: "/nowhere/dmir" });
  });

  it("prefers the bundled binary to the one on PATH", () => {
    const onPath = program("usr", "dmir");
    assert.deepEqual(search(""), { found: true, path: onPath });
    const bundled = program("extension", "bin", "dmir");
    assert.deepEqual(search(""), { found: true, path: bundled });
  });

  it("accepts a configured path that is absolute, relative to the workspace, or a name", () => {
    program("extension", "bin", "dmir");
    const inProject = program("project", "build", "dmir");
    const named = program("usr", "dmir-next");
    assert.deepEqual(search(inProject), { found: true, path: inProject });
    assert.deepEqual(search("build/dmir"), { found: true, path: inProject });
    assert.deepEqual(search("${workspaceFolder}/build/dmir"), { found: true, path: inProject });
    assert.deepEqual(search(" dmir-next "), { found: true, path: named });
  });

  it("does not fall back when the configured path is wrong", () => {
    program("usr", "dmir");
    assert.equal(search("build/dmir").found, false);
  });

  it("rejects folders and files that are not executable", () => {
    fs.mkdirSync(path.join(root, "usr", "dmir"), { recursive: true });
    assert.equal(search("").found, false);
    const plain = path.join(root, "plain");
    fs.writeFileSync(plain, "", { mode: 0o644 });
    assert.equal(search(plain).found, false);
  });

  it("adds .exe on Windows", () => {
    const exe = program("extension", "bin", "dmir.exe");
    const found = findBinary({ configured: "", extensionPath: path.join(root, "extension"), env: {}, platform: "win32" });
    assert.deepEqual(found, { found: true, path: exe });
  });
});
