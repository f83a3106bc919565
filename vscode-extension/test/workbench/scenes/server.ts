import * as assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import type { Scene } from "../scene";
import { need } from "../vscode";

/** A proxy of the server that exits one second after a document is opened. */
function crashing(server: string): string {
  return `#!/usr/bin/env node
const server = require("node:child_process").spawn(${JSON.stringify(server)}, process.argv.slice(2), { stdio: ["pipe", "inherit", "inherit"] });
let told = "";
process.stdin.on("data", (part) => {
  server.stdin.write(part);
  if (told === undefined || !(told += part).includes('"textDocument/didOpen"')) return;
  told = undefined;
  setTimeout(() => {
    server.kill("SIGKILL");
    process.kill(process.pid, "SIGKILL");
  }, 1000);
});
process.stdin.on("end", () => server.stdin.end());
server.on("exit", (status) => process.exit(status ?? 1));
`;
}

/** The messages when the server is not available. */
export const serverScenes: Scene[] = [
  {
    name: "without a binary: one message with what to do",
    settings: () => ({ "dmir.path": "/nowhere/dmir" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.notifications(/dmir was not found \(tried \/nowhere\/dmir\)/).waitFor();
      await wb.screenshot("no-binary");
      await wb.page.waitForTimeout(2000);
      assert.equal(await wb.notifications().count(), 1);
    },
  },
  {
    name: "with a program that is no server: one message, and a way on",
    settings: () => ({ "dmir.path": "/bin/false" }),
    file: "ffn.dmir",
    play: async (wb) => {
      await wb.notifications(/\/bin\/false did not start as a language server/).waitFor();
      await wb.page.waitForTimeout(2000);
      assert.equal(await wb.notifications().count(), 1);
      await wb.screenshot("no-server");
    },
  },
  {
    name: "with a server that keeps crashing: one message, after a few tries",
    settings: () => ({ "dmir.path": "${workspaceFolder}/crashing" }),
    file: "ffn.dmir",
    prepare: (folder) => {
      fs.writeFileSync(path.join(folder, "crashing"), crashing(need("DMIR_BINARY")), { mode: 0o755 });
    },
    play: async (wb) => {
      await wb.notifications(/crashed repeatedly/).waitFor();
      await wb.page.waitForTimeout(2000);
      assert.equal(await wb.notifications().count(), 1);
      assert.equal(await wb.page.getByRole("button", { name: "Restart", exact: true }).count(), 1);
      await wb.screenshot("crashing");
    },
  },
];
