import * as vscode from "vscode";
import type { HeatScale, ToggleArguments } from "./protocol";
import { change, heatScale, serverSettings } from "./settings";

const scales: readonly ("off" | HeatScale)[] = ["off", "time", "bytes", "waste"];

/** Switches hints or lint on or off by changing the setting, which applies to open files and to later sessions. */
export async function toggle(setting: ToggleArguments["setting"]): Promise<void> {
  const on = !serverSettings()[setting].enabled;
  await change(`${setting}.enabled`, on);
  show(`${setting === "hints" ? "Cost hints" : "Lint"} ${on ? "on" : "off"}`);
}

/** Switches to the next scale of heat; off follows the last one. */
export async function cycleHeat(): Promise<void> {
  const next = scales[(scales.indexOf(heatScale()) + 1) % scales.length] ?? "off";
  await change("heat", next);
  show(`Heat ${heatText(next)}`);
}

export function heatText(scale: "off" | HeatScale): string {
  return scale === "off" ? "off" : `by ${scale}`;
}

function show(what: string): void {
  vscode.window.setStatusBarMessage(`dmir: ${what}`, 3000);
}
