import * as vscode from "vscode";
import type { HeatScale, ToggleArguments } from "./protocol";
import { change, heatScale, serverSettings } from "./settings";

const scales: readonly ("off" | HeatScale)[] = ["off", "time", "bytes", "waste"];

/** Switches hints or lint on or off, by the setting: it holds for the files that are open and for the next session. */
export async function toggle(setting: ToggleArguments["setting"]): Promise<void> {
  const on = !serverSettings()[setting].enabled;
  await change(`${setting}.enabled`, on);
  say(`${setting === "hints" ? "Cost hints" : "Lint"} ${on ? "on" : "off"}`);
}

/** Goes on to the next scale of heat, and after the last one to none. */
export async function cycleHeat(): Promise<void> {
  const next = scales[(scales.indexOf(heatScale()) + 1) % scales.length] ?? "off";
  await change("heat", next);
  say(`Heat ${heatText(next)}`);
}

export function heatText(scale: "off" | HeatScale): string {
  return scale === "off" ? "off" : `by ${scale}`;
}

function say(what: string): void {
  vscode.window.setStatusBarMessage(`dmir: ${what}`, 3000);
}
