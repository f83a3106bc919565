import * as vscode from "vscode";
import { command, type Target } from "./protocol";
import { errorText, type Server, ServerUnavailable } from "./server";
import { serverSettings, setTarget } from "./settings";

/** The status-bar item that names the machine times are computed for. */
export class TargetStatus implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("dmir.target", vscode.StatusBarAlignment.Right, 100);
  private readonly subscriptions: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.item.name = "dmir: target machine";
    const update = (): void => {
      this.update();
    };
    this.subscriptions = vscode.Disposable.from(
      this.item,
      vscode.window.onDidChangeActiveTextEditor(update),
      vscode.workspace.onDidChangeConfiguration(update),
      server.onDidChangeState(update),
    );
    this.update();
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private update(): void {
    if (vscode.window.activeTextEditor?.document.languageId !== "dmir") {
      this.item.hide();
      return;
    }
    const { target } = serverSettings();
    if (this.server.running) {
      this.item.text = `$(chip) ${target}`;
      this.item.tooltip = `Costs are for ${target}. Click to choose another machine.`;
      this.item.command = "dmir.selectTarget";
    } else {
      this.item.text = `$(warning) ${target}`;
      this.item.tooltip = "The dmir server is not running. Click to start it.";
      this.item.command = "dmir.restartServer";
    }
    this.item.show();
  }
}

/** Lets the person pick among the machines the server knows, and writes the setting. */
export async function selectTarget(server: Server): Promise<void> {
  let targets: Target[];
  try {
    targets = await server.execute<Target[]>(command.targets);
  } catch (err) {
    if (!(err instanceof ServerUnavailable)) void vscode.window.showErrorMessage(errorText(err));
    return;
  }
  const current = serverSettings().target;
  const items = targets.map((t) => ({
    label: t.name,
    description: t.title,
    ...(t.name === current ? { detail: "current" } : {}),
  }));
  const picked = await vscode.window.showQuickPick(items, {
    placeHolder: "Machine that times are computed for",
    matchOnDescription: true,
  });
  if (picked !== undefined) await setTarget(picked.label);
}
