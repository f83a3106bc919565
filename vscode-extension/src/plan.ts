import * as vscode from "vscode";
import type { Panels } from "./panel/panels";
import { plain } from "./plain";
import { executeWithProgress, isCancelled } from "./progress";
import { command, type PlanArguments, type PlanResult } from "./protocol";
import type { Server } from "./server";

/**
 * Plans a training step, with a notification that shows progress and can cancel. The server shows the program with the best plan
 * beside the text; all plans are in a panel of the same group. Undefined if it was cancelled.
 */
export async function plan(server: Server, panels: Panels, args: PlanArguments): Promise<PlanResult | undefined> {
  const name = `@${args.func.replace(/^@/, "")}`;
  try {
    const result = await executeWithProgress<PlanResult>(server, `Planning ${name}`, command.plan, args);
    if (result.ok) await panels.show({ uri: args.uri, kind: "plans", function: args.func });
    else void vscode.window.showErrorMessage(plain(result.message));
    return result;
  } catch (err) {
    if (!isCancelled(err)) throw err;
    vscode.window.setStatusBarMessage(`Planning of ${name} cancelled`, 5000);
    return undefined;
  }
}

/** Asks for a number of devices; undefined if the user gives none. */
export async function askDevices(): Promise<number | undefined> {
  const text = await vscode.window.showInputBox({
    prompt: "Number of devices to plan for",
    value: "64",
    validateInput: (value) => (/^[1-9]\d{0,6}$/.test(value.trim()) ? undefined : "A number of devices, such as 64"),
  });
  return text === undefined ? undefined : Number(text.trim());
}
