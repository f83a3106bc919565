import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";

/** Where to look for the dmir binary. */
export interface BinarySearch {
  /** The `dmir.path` setting: a path, `~` for the home folder, or a name on PATH. Empty means the default. */
  configured: string;
  /** Folder of the installed extension, whose `bin/` may hold a binary. */
  extensionPath: string;
  /** Folder that a relative `dmir.path` is resolved against. */
  workspaceFolder?: string | undefined;
  env?: NodeJS.ProcessEnv;
  platform?: NodeJS.Platform;
}

export type BinaryResult = { found: true; path: string } | { found: false; tried: string };

/** Finds the dmir binary: the configured one, else the bundled one, else the first on PATH. */
export function findBinary(search: BinarySearch): BinaryResult {
  const platform = search.platform ?? process.platform;
  const env = search.env ?? process.env;
  const configured = search.configured.trim();
  if (configured !== "") {
    return isBareName(configured) ? onPath(configured, env, platform) : at(expand(configured, search), platform);
  }
  const bundled = at(path.join(search.extensionPath, "bin", "dmir"), platform);
  return bundled.found ? bundled : onPath("dmir", env, platform);
}

function isBareName(name: string): boolean {
  return !/[\\/]/.test(name) && !name.startsWith("~");
}

function expand(configured: string, search: BinarySearch): string {
  const folder = search.workspaceFolder;
  let full = configured.replace(/^~(?=$|[\\/])/, os.homedir());
  if (folder !== undefined) {
    full = path.resolve(folder, full.replaceAll("${workspaceFolder}", folder));
  }
  return full;
}

function at(file: string, platform: NodeJS.Platform): BinaryResult {
  const candidates = platform === "win32" && path.extname(file) === "" ? [`${file}.exe`] : [file];
  const hit = candidates.find(isExecutable);
  return hit === undefined ? { found: false, tried: file } : { found: true, path: hit };
}

function onPath(name: string, env: NodeJS.ProcessEnv, platform: NodeJS.Platform): BinaryResult {
  const folders = (env["PATH"] ?? env["Path"] ?? "").split(platform === "win32" ? ";" : ":");
  for (const folder of folders) {
    if (folder === "") continue;
    const result = at(path.join(folder, name), platform);
    if (result.found) return result;
  }
  return { found: false, tried: `${name} on PATH` };
}

function isExecutable(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
