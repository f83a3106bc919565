import * as vscode from "vscode";
import { executeWithProgress, isCancelled } from "./progress";
import { command, type LintResult, type RunArguments, type RunResult } from "./protocol";
import { errorText, type Server, ServerUnavailable } from "./server";

/** Runs a function on the server, with a notification that shows progress and can cancel. Undefined when it did not run. */
export async function runFunction(server: Server, args: RunArguments): Promise<RunResult | undefined> {
  if (!vscode.workspace.isTrusted) {
    void offerTrust();
    return undefined;
  }
  const name = `@${args.func.replace(/^@/, "")}`;
  try {
    const result = await executeWithProgress<RunResult>(server, `Running ${name}`, command.run, args);
    // Success is announced by the server itself, for every editor alike.
    if (!result.ok) void vscode.window.showErrorMessage(result.message);
    return result;
  } catch (err) {
    if (isCancelled(err)) vscode.window.setStatusBarMessage(`Run of ${name} cancelled`, 5000);
    else if (!(err instanceof ServerUnavailable)) void vscode.window.showErrorMessage(errorText(err));
    return undefined;
  }
}

/** Looks for errors and wasted movement in all files of the workspace, and says how many there are. */
export async function lintWorkspace(server: Server): Promise<void> {
  try {
    const { message, findings } = await executeWithProgress<LintResult>(server, "Linting the workspace", command.lintWorkspace);
    const problems = "Show Problems";
    const choice = await vscode.window.showInformationMessage(message, ...(findings > 0 ? [problems] : []));
    if (choice === problems) await vscode.commands.executeCommand("workbench.actions.view.problems");
  } catch (err) {
    if (!isCancelled(err)) throw err;
  }
}

async function offerTrust(): Promise<void> {
  const manage = "Manage Workspace Trust";
  const choice = await vscode.window.showWarningMessage("Functions run only in a trusted workspace.", manage);
  if (choice === manage) await vscode.commands.executeCommand("workbench.trust.manage");
}
