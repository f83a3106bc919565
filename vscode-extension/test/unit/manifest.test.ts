import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import manifest from "../../package.json";

const root = path.resolve(__dirname, "..", "..");
const readme = fs.readFileSync(path.join(root, "README.md"), "utf8");
const settings = manifest.contributes.configuration.properties;

describe("the manifest", () => {
  it("documents every setting, with its default, in the README", () => {
    for (const [name, setting] of Object.entries(settings)) {
      const row = readme.split("\n").find((line) => line.startsWith(`| \`${name}\``));
      assert.ok(row, `${name} is missing from the README`);
      const shown = setting.default === "" ? "empty" : `\`${typeof setting.default === "string" ? setting.default : JSON.stringify(setting.default)}\``;
      assert.equal(row.split("|")[2]?.trim(), shown, name);
    }
  });

  it("documents every command in the README", () => {
    for (const { title, category } of manifest.contributes.commands) {
      assert.ok(readme.includes(`| ${category}: ${title} |`), title);
    }
  });

  it("restricts the setting that names a program to trusted workspaces", () => {
    assert.deepEqual(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations, ["dmir.path"]);
  });

  it("names files that exist", () => {
    const [language] = manifest.contributes.languages;
    const [grammar] = manifest.contributes.grammars;
    for (const file of [manifest.icon, language?.configuration, grammar?.path]) {
      assert.ok(file !== undefined && fs.existsSync(path.join(root, file)), file);
    }
  });
});
