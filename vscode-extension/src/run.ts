import * as vscode from "vscode";
import { LSPErrorCodes, ResponseError } from "vscode-languageclient/node";
import { command, type RunArguments, type RunResult } from "./protocol";
import { errorText, type Server, ServerUnavailable } from "./server";

/** Runs a function on the server, with a notification that shows progress and can cancel. Undefined when it did not run. */
export async function runFunction(server: Server, args: RunArguments): Promise<RunResult | undefined> {
  if (!vscode.workspace.isTrusted) {
    void offerTrust();
    return undefined;
  }
  const name = `@${args.func.replace(/^@/, "")}`;
  const options = { location: vscode.ProgressLocation.Notification, title: `Running ${name}`, cancellable: true };
  try {
    const result = await vscode.window.withProgress(options, (progress, token) => {
      let done = 0;
      return server.execute<RunResult>(command.run, args, token, ({ message, percentage }) => {
        const increment = percentage === undefined ? 0 : Math.max(0, percentage - done);
        done += increment;
        progress.report(message === undefined ? { increment } : { message, increment });
      });
    });
    // Success is announced by the server itself, for every editor alike.
    if (!result.ok) void vscode.window.showErrorMessage(result.message);
    return result;
  } catch (err) {
    if (isCancelled(err)) vscode.window.setStatusBarMessage(`Run of ${name} cancelled`, 5000);
    else if (!(err instanceof ServerUnavailable)) void vscode.window.showErrorMessage(errorText(err));
    return undefined;
  }
}

function isCancelled(err: unknown): boolean {
  if (err instanceof vscode.CancellationError) return true;
  return err instanceof ResponseError && (err.code === LSPErrorCodes.RequestCancelled || err.code === LSPErrorCodes.ServerCancelled);
}

async function offerTrust(): Promise<void> {
  const manage = "Manage Workspace Trust";
  const choice = await vscode.window.showWarningMessage("Functions run only in a trusted workspace.", manage);
  if (choice === manage) await vscode.commands.executeCommand("workbench.trust.manage");
}
