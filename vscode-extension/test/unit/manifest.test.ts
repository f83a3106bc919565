import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import manifest from "../../package.json";
import lock from "../../package-lock.json";

const root = path.resolve(__dirname, "..", "..");
const read = (...parts: string[]): string => fs.readFileSync(path.join(root, ...parts), "utf8");
const readme = read("README.md");
const { commands, configuration, menus, walkthroughs, colors, languages, grammars } = manifest.contributes;
const names = new Set(commands.map(({ command }) => command));

/** A pattern of .vscodeignore: the subset that the file uses. */
function glob(pattern: string): RegExp {
  const text = pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*\*|\*/g, (stars) => (stars === "*" ? "[^/]*" : ".*"));
  return new RegExp(`^${text}$`);
}

describe("the manifest", () => {
  it("documents every setting, with its default, in the README", () => {
    for (const [name, setting] of Object.entries(configuration.properties)) {
      const row = readme.split("\n").find((line) => line.startsWith(`| \`${name}\``));
      assert.ok(row, `${name} is missing from the README`);
      const shown = setting.default === "" ? "empty" : `\`${typeof setting.default === "string" ? setting.default : JSON.stringify(setting.default)}\``;
      assert.equal(row.split("|")[2]?.trim(), shown, name);
    }
  });

  it("documents every command in the README", () => {
    for (const { title, category } of commands) {
      assert.ok(readme.includes(`| ${category}: ${title} |`), title);
    }
  });

  it("has no command in the palette when there is no dmir file", () => {
    for (const name of names) {
      const entry = menus.commandPalette.find(({ command }) => command === name);
      assert.match(entry?.when ?? "", /editorLangId == dmir/, name);
    }
  });

  it("registers what its menus and walkthrough name", () => {
    const extension = read("src", "extension.ts");
    for (const name of names) assert.ok(extension.includes(`register("${name.replace("dmir.", "")}"`), name);
    const inMenus = Object.values(menus).flatMap((entries) => entries.flatMap((e) => ("command" in e ? [e.command] : [])));
    const links = walkthroughs.flatMap(({ steps }) => steps.flatMap((s) => [...s.description.matchAll(/\(command:([\w.]+)\)/g)].map((m) => m[1])));
    for (const name of [...inMenus, ...links]) assert.ok(name !== undefined && names.has(name), name);
  });

  it("has a colour of heat for each level, in each kind of theme", () => {
    const tints = colors.filter(({ id }) => id.startsWith("dmir.heat"));
    assert.deepEqual(tints.map(({ id }) => id), Array.from({ length: 10 }, (_, level) => `dmir.heat${level}`));
    for (const { defaults } of colors) assert.equal(Object.keys(defaults).length, 4);
    for (const { defaults } of tints) {
      for (const color of Object.values(defaults)) assert.match(color, /^#[0-9a-f]{8}$/, "tints let the text through");
    }
  });

  it("restricts the setting that names a program to trusted workspaces", () => {
    assert.deepEqual(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations, ["dmir.path"]);
  });

  it("names files that exist and are in the package", () => {
    const [language] = languages;
    const [grammar] = grammars;
    const media = walkthroughs.flatMap(({ steps }) => steps.map((s) => s.media.image));
    const taken = read(".vscodeignore").split("\n").filter((line) => line.startsWith("!")).map((line) => line.slice(1));
    for (const file of [manifest.icon, language?.icon?.light, language?.icon?.dark, language?.configuration, grammar?.path, ...media]) {
      assert.ok(file !== undefined);
      const name = path.posix.normalize(file);
      assert.ok(fs.existsSync(path.join(root, name)), name);
      assert.ok(taken.some((pattern) => glob(pattern).test(name)), `${name} stays out of the package`);
    }
  });

  it("has pictures in the README that exist, and are small", () => {
    const pictures = [...readme.matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)].map((m) => m[1] ?? "");
    assert.ok(pictures.length > 0, "the README shows no picture");
    for (const file of pictures) assert.ok(fs.statSync(path.join(root, file)).size < 150_000, file);
  });

  it("has the version of its changelog", () => {
    assert.match(read("CHANGELOG.md"), new RegExp(`^## ${manifest.version.replaceAll(".", "\\.")}$`, "m"));
  });
});

describe("the lockfile", () => {
  it("has no download addresses", () => {
    const all: Record<string, object> = lock.packages;
    for (const [name, entry] of Object.entries(all)) assert.equal("resolved" in entry, false, name);
  });
});
