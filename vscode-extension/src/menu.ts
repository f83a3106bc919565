import * as vscode from "vscode";
import { Debounced } from "./debounced";
import type { Server } from "./server";
import { heatScale, serverSettings } from "./settings";
import { heatText } from "./toggles";

/** The status-bar item that shows the server's state and opens the menu. */
export class StateStatus implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("dmir.state", vscode.StatusBarAlignment.Right, 99);
  private readonly updating = new Debounced(50, () => {
    this.update();
  });
  private readonly subscriptions: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.item.name = "dmir: language server";
    this.item.command = "dmir.menu";
    const update = (): void => {
      this.updating.schedule();
    };
    this.subscriptions = vscode.Disposable.from(
      this.item,
      this.updating,
      vscode.window.onDidChangeActiveTextEditor(update),
      vscode.workspace.onDidOpenTextDocument(update), // also when a document gets another language
      server.onDidChangeState(update),
    );
    update();
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private update(): void {
    if (vscode.window.activeTextEditor?.document.languageId !== "dmir") {
      this.item.hide();
      return;
    }
    const { state, identity } = this.server;
    const icon = { running: "$(check)", starting: "$(loading~spin)", stopped: "$(warning)" }[state];
    this.item.text = `${icon} dmir`;
    this.item.backgroundColor = state === "stopped" ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.tooltip = [`The dmir server is ${state}.`, identity, "Click for the menu."].filter((t) => t !== "").join("\n");
    this.item.show();
  }
}

interface Entry extends vscode.QuickPickItem {
  command?: string;
}

/** Shows the menu: switches for hints, lint and heat, and commands that open panels and documents. */
export async function showMenu(server: Server): Promise<void> {
  const picked = await vscode.window.showQuickPick(entries(), { placeHolder: `dmir: the server is ${server.state}` });
  if (picked?.command !== undefined) await vscode.commands.executeCommand(picked.command);
}

function entries(): Entry[] {
  const settings = serverSettings();
  const onOff = (on: boolean): string => (on ? "on" : "off");
  const separator = (label: string): Entry => ({ label, kind: vscode.QuickPickItemKind.Separator });
  return [
    separator("switch"),
    { label: "$(symbol-numeric) Cost hints", description: onOff(settings.hints.enabled), command: "dmir.toggleHints" },
    { label: "$(lightbulb) Lint", description: onOff(settings.lint.enabled), command: "dmir.toggleLint" },
    { label: "$(flame) Heat", description: heatText(heatScale()), command: "dmir.cycleHeat" },
    { label: "$(chip) Target machine", command: "dmir.selectTarget" },
    separator("show"),
    { label: "$(type-hierarchy) Movement graph", command: "dmir.showGraph" },
    { label: "$(graph-scatter) Roofline", command: "dmir.showRoofline" },
    { label: "$(layers) Memory plan", command: "dmir.showMemoryPlan" },
    { label: "$(server) Mesh of devices", command: "dmir.showMesh" },
    { label: "$(list-tree) Timeline of a device", command: "dmir.showTimeline" },
    { label: "$(table) Patterns of sparse tensors", command: "dmir.showPatterns" },
    { label: "$(diff) Comparison with the saved file", command: "dmir.compareWithSaved" },
    { label: "$(git-compare) Comparison with HEAD", command: "dmir.compareWithHead" },
    { label: "$(history) History of fixes and refactorings", command: "dmir.showHistory" },
    { label: "$(table) Cost table", command: "dmir.showCost" },
    { label: "$(versions) Program at another level", command: "dmir.showView" },
    separator("compile the function at the cursor"),
    { label: "$(package) Compile", command: "dmir.compileFunction" },
    { label: "$(play) Run", command: "dmir.runFunction" },
    { label: "$(dashboard) Profile", command: "dmir.profileFunction" },
    { label: "$(file-code) CUDA C++", command: "dmir.showCuda" },
    { label: "$(file-binary) PTX", command: "dmir.showPtx" },
    separator("server"),
    { label: "$(debug-restart) Restart", command: "dmir.restartServer" },
    { label: "$(output) Log", command: "dmir.showLog" },
  ];
}
