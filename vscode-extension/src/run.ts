import * as vscode from "vscode";
import { plain } from "./plain";
import { executeWithProgress, isCancelled } from "./progress";
import { command, type CompileResult, type LintResult, type RunArguments, type RunResult, type ViewArguments } from "./protocol";
import { errorText, type Server, ServerUnavailable } from "./server";

/** The commands on a function, with the words that describe each. */
const doing = {
  [command.run]: { title: "Running", noun: "Run" },
  [command.profile]: { title: "Profiling", noun: "Profile" },
  [command.compile]: { title: "Compiling", noun: "Compilation" },
} as const;

export type Deed = keyof typeof doing;

/**
 * Runs, profiles or compiles a function on the server, with a notification that shows progress and can cancel. Undefined if it
 * was cancelled or not started.
 */
export async function work<R extends RunResult | CompileResult>(server: Server, deed: Deed, args: RunArguments): Promise<R | undefined> {
  const name = `@${args.func.replace(/^@/, "")}`;
  return trusted(doing[deed].noun, name, async () => {
    const result = await executeWithProgress<R>(server, `${doing[deed].title} ${name}`, deed, args);
    // The server itself reports success, in every editor.
    if (!result.ok) void vscode.window.showErrorMessage(plain(result.message));
    return result;
  });
}

/** Shows a view of a function, which the server compiles for it. */
export async function showCompiled(server: Server, args: ViewArguments): Promise<void> {
  const name = args.func === undefined ? "the function" : `@${args.func.replace(/^@/, "")}`;
  await trusted("Compilation", name, () => executeWithProgress(server, `Compiling ${name}`, command.view, args));
}

async function trusted<R>(noun: string, name: string, act: () => PromiseLike<R>): Promise<R | undefined> {
  if (!vscode.workspace.isTrusted) {
    void offerTrust();
    return undefined;
  }
  try {
    return await act();
  } catch (err) {
    if (isCancelled(err)) vscode.window.setStatusBarMessage(`${noun} of ${name} cancelled`, 5000);
    else if (!(err instanceof ServerUnavailable)) void vscode.window.showErrorMessage(plain(errorText(err)));
    return undefined;
  }
}

/** Takes back what is reported of files that are not open. */
export async function clearLint(server: Server): Promise<void> {
  await executeWithProgress(server, "Clearing the findings", command.lintWorkspace, { clear: true });
}

/** Lints all files of the workspace and shows the number of findings. */
export async function lintWorkspace(server: Server): Promise<void> {
  try {
    const { message, findings } = await executeWithProgress<LintResult>(server, "Linting the workspace", command.lintWorkspace);
    const problems = "Show Problems";
    const clear = "Clear";
    const choice = await vscode.window.showInformationMessage(plain(message), ...(findings > 0 ? [problems, clear] : []));
    if (choice === problems) await vscode.commands.executeCommand("workbench.actions.view.problems");
    if (choice === clear) await clearLint(server);
  } catch (err) {
    if (!isCancelled(err)) throw err;
  }
}

async function offerTrust(): Promise<void> {
  const manage = "Manage Workspace Trust";
  const choice = await vscode.window.showWarningMessage("Functions are compiled and run only in a trusted workspace.", manage);
  if (choice === manage) await vscode.commands.executeCommand("workbench.trust.manage");
}
