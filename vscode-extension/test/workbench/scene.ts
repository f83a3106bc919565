import * as fs from "node:fs";
import * as path from "node:path";
import type { Browser } from "playwright-core";
import { need, VSCode, workspace } from "./vscode";
import { Workbench } from "./workbench";

/** A time and bytes, as the column and inlay hints have them, and a measured time. */
export const cost = /\d(ns|µs|ms|s) *\d/;
export const measured = /\d(ns|µs|ms|s)•/;

export const amount = /\d\s?(B|kB|MB|GB)\b/;

/** One story in the workbench, played on a fresh window. */
export interface Scene {
  name: string;
  settings: () => Record<string, unknown>;
  file: string;
  /** It is played only where DMIR_SCENE asks for it. */
  onDemand?: boolean;
  /** Adds files to the scene's copy of the workspace. */
  prepare?: (folder: string) => void;
  play: (workbench: Workbench, code: VSCode) => Promise<void>;
}

/**
 * Plays the scenes with the packaged extension; returns the names of those that failed. A scene that fails is played once more, in a
 * fresh window, and its first failure stays in the output: the mouse and the keyboard of a loaded machine may miss the workbench.
 */
export async function playAll(browser: Browser, scenes: Scene[], trustEverything: boolean): Promise<string[]> {
  const only = new RegExp(process.env["DMIR_SCENE"] ?? "");
  const all = only.test("") ? scenes.filter((scene) => !scene.onDemand) : scenes.filter((scene) => only.test(scene.name));
  const chosen = only.test("") ? inTurn(all) : all;
  const failed: string[] = [];
  if (chosen.length === 0) return failed;
  const code = await VSCode.start({ vsix: need("DMIR_VSIX"), trustEverything });
  try {
    for (const scene of chosen) {
      if (!(await played(browser, code, scene)) && !(await played(browser, code, scene))) failed.push(scene.name);
    }
  } finally {
    await code.stop();
  }
  return failed;
}

/**
 * The scenes that this run plays: the first one and, since each takes a window of its own, every other one of the rest in turn.
 * DMIR_TURN selects, as in the Go tests: a number, or "all".
 */
function inTurn(scenes: Scene[]): Scene[] {
  const turn = process.env["DMIR_TURN"] ?? String(Math.floor(Math.random() * 65536));
  if (turn === "all") return scenes;
  if (scenes.length > 1) console.log(`  one scene of 2 in turn: DMIR_TURN=${turn} plays the same again, DMIR_TURN=all all of them`);
  return scenes.filter((_, i) => i === 0 || (i + Number(turn)) % 2 === 0);
}

async function played(browser: Browser, code: VSCode, scene: Scene): Promise<boolean> {
  const folder = workspace(scene.settings());
  scene.prepare?.(folder);
  const began = Date.now();
  const workbench = await Workbench.open(browser, code.address(folder, { openFile: path.join(folder, scene.file) }));
  try {
    await scene.play(workbench, code);
    console.log(`  ok   ${scene.name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    return true;
  } catch (err) {
    console.log(`  FAIL ${scene.name}\n${err instanceof Error ? (err.stack ?? err.message) : String(err)}`);
    console.log((await workbench.visible()).replace(/^/gm, "       | "));
    await workbench.screenshot(`failed-${scene.name.replace(/\W+/g, "-")}`);
    return false;
  } finally {
    await workbench.close();
    fs.rmSync(folder, { recursive: true });
  }
}

export async function lensTexts(wb: Workbench): Promise<string> {
  return (await wb.lensText().allInnerTexts()).join(" ");
}

export function after(line: string, mark: string): string {
  return line.slice(line.lastIndexOf(mark));
}
