import type { Browser } from "playwright-core";
import { playAll } from "./scene";
import { columnScenes } from "./scenes/column";
import { choosingMachine, editingScenes } from "./scenes/editing";
import { findingScenes } from "./scenes/findings";
import { panelScenes } from "./scenes/panels";
import { pictureScenes } from "./scenes/pictures";
import { pythonScenes } from "./scenes/python";
import { recording } from "./scenes/recording";
import { serverScenes } from "./scenes/server";
import { story } from "./scenes/story";
import { untrusted } from "./scenes/untrusted";
import { versionScenes } from "./scenes/versions";

/** Plays the main story alone. */
export async function storyLeg(browser: Browser): Promise<void> {
  complain(await playAll(browser, [story], true));
}

/** Plays every scene, the story first; throws an error with the names of those that failed. */
export async function scenesLeg(browser: Browser): Promise<void> {
  const trusted = [story, ...columnScenes, ...editingScenes, ...panelScenes, ...pictureScenes, ...versionScenes, ...findingScenes, ...pythonScenes, ...serverScenes, choosingMachine, recording];
  complain([...(await playAll(browser, trusted, true)), ...(await playAll(browser, untrusted, false))]);
}

function complain(failed: string[]): void {
  if (failed.length > 0) throw new Error(`these scenes failed: ${failed.join("; ")}`);
}
