import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";

/** A VS Code server with folders of its own, independent of the user's installation. */
export class VSCode {
  private constructor(
    readonly port: number,
    private readonly home: string,
    private readonly server: ChildProcess,
  ) {}

  /** Starts the server, with the packaged extension installed in it when vsix is given, or for a suite in the extension host. */
  static async start(options: { vsix?: string; trustEverything: boolean; env?: NodeJS.ProcessEnv }): Promise<VSCode> {
    const main = need("DMIR_VSCODE_SERVER");
    const node = need("DMIR_VSCODE_NODE");
    const home = fs.mkdtempSync(path.join(os.tmpdir(), "dmir-vscode-"));
    const common = ["--accept-server-license-terms", "--server-data-dir", home, "--extensions-dir", path.join(home, "ext")];
    if (options.vsix !== undefined) {
      execFileSync(node, [main, ...common, "--install-extension", options.vsix], { stdio: "pipe" });
    }
    fs.mkdirSync(path.join(home, "data/User"), { recursive: true });
    fs.writeFileSync(path.join(home, "data/User/settings.json"), JSON.stringify(readable, undefined, 2));
    const port = await freePort();
    const log = fs.openSync(path.join(home, "server.log"), "w");
    const args = [main, ...common, "--host", "127.0.0.1", "--port", String(port), "--without-connection-token"];
    args.push("--telemetry-level", "off", "--user-data-dir", path.join(home, "data"));
    // The API that the extension-host suite needs; the scenes run without it.
    if (options.vsix === undefined) args.push("--enable-smoke-test-driver");
    if (options.trustEverything) args.push("--disable-workspace-trust");
    const server = spawn(node, args, { stdio: ["ignore", log, log], env: { ...process.env, ...options.env } });
    await listening(port, server);
    return new VSCode(port, home, server);
  }

  /** Address of the workbench on a folder; every payload entry is a name and a path or text. */
  address(folder: string, payload: Record<string, string>): string {
    const entries = Object.entries(payload).map(([key, value]) => [
      key,
      value.startsWith("/") ? `vscode-remote://127.0.0.1:${this.port}${value}` : value,
    ]);
    const query = new URLSearchParams({ folder, payload: JSON.stringify(entries) });
    return `http://127.0.0.1:${this.port}/?${query.toString()}`;
  }

  /** The servers that run from the installed package's own binary. */
  bundledServers(): string[] {
    return fs
      .readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          return [fs.readlinkSync(`/proc/${pid}/exe`)];
        } catch {
          return []; // the process has ended
        }
      })
      .filter((exe) => exe.startsWith(path.join(this.home, "ext")) && path.basename(exe) === "dmir");
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.server.once("exit", resolve));
    this.server.kill("SIGTERM");
    const force = setTimeout(() => this.server.kill("SIGKILL"), 5000);
    await ended;
    clearTimeout(force);
    fs.rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** User settings that hide everything but the file, for the pictures. */
const readable = {
  "editor.minimap.enabled": false,
  "window.commandCenter": false,
  "window.title": "${activeEditorShort}",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "chat.disableAIFeatures": true,
  "workbench.startupEditor": "none",
  "files.autoSave": "off",
  "workbench.editor.useModal": "off",
};

/** A copy of the test workspace and of the project's examples, with the settings of one scene. */
export function workspace(settings: Record<string, unknown>): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "dmir-workspace-"));
  fs.cpSync(path.resolve(__dirname, "../../test/workspace"), folder, { recursive: true });
  fs.cpSync(path.resolve(__dirname, "../../../examples"), path.join(folder, "examples"), { recursive: true });
  fs.mkdirSync(path.join(folder, ".vscode"));
  fs.writeFileSync(path.join(folder, ".vscode/settings.json"), JSON.stringify(settings, undefined, 2));
  return folder;
}

export function need(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`${name} is not set; scripts/test-vscode.sh sets it`);
  return value;
}

async function freePort(): Promise<number> {
  const probe = net.createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as net.AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

async function listening(port: number, server: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 1200; attempt++) {
    if (server.exitCode !== null) throw new Error(`the VS Code server ended with ${server.exitCode}`);
    const open = await new Promise<boolean>((resolve) => {
      const socket = net.connect(port, "127.0.0.1");
      socket.once("connect", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => {
        resolve(false);
      });
    });
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the VS Code server does not listen");
}
