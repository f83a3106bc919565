import * as vscode from "vscode";
import { isProgram } from "./editors";
import { Debounced } from "./debounced";
import { command, type Target, type TargetsArguments } from "./protocol";
import type { Server } from "./server";
import { change, serverSettings } from "./settings";

const settleMs = 100;

/** The status-bar item with the machine that times are computed for. */
export class TargetStatus implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("dmir.target", vscode.StatusBarAlignment.Right, 100);
  private readonly subscriptions: vscode.Disposable;
  private readonly updating = new Debounced(settleMs, () => void this.update());
  private updates = 0;

  constructor(private readonly server: Server) {
    this.item.name = "dmir: target machine";
    const update = (): void => {
      this.updating.schedule();
    };
    this.subscriptions = vscode.Disposable.from(
      this.item,
      this.updating,
      vscode.window.onDidChangeActiveTextEditor(update),
      vscode.workspace.onDidOpenTextDocument(update), // also when a document gets another language
      server.onDidRefresh(update),
      server.onDidChangeState(update),
    );
    update();
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  private async update(): Promise<void> {
    const turn = ++this.updates;
    const document = vscode.window.activeTextEditor?.document;
    if (document === undefined || !isProgram(document) || !this.server.running) {
      this.item.hide();
      return;
    }
    const target = await currentTarget(this.server, document.uri);
    if (turn !== this.updates) return;
    this.item.text = `$(chip) ${target?.name ?? serverSettings().target}`;
    this.item.tooltip = `Times are for ${target?.title ?? "an unknown machine"}. Click to choose another.`;
    this.item.command = "dmir.selectTarget";
    this.item.show();
  }
}

/** Lets the user pick a machine that the server knows, and writes the setting. */
export async function selectTarget(server: Server): Promise<void> {
  const targets = await knownTargets(server, vscode.window.activeTextEditor?.document.uri);
  const items = targets.map((t) => ({
    label: t.name,
    description: t.current === true ? `${t.title} · current` : t.title,
  }));
  const picked = await vscode.window.showQuickPick(items, {
    placeHolder: "Machine that times are computed for",
    matchOnDescription: true,
  });
  if (picked !== undefined) await change("target", picked.label);
}

/** The machine that the times of a file are computed for. */
async function currentTarget(server: Server, uri: vscode.Uri): Promise<Target | undefined> {
  try {
    return (await knownTargets(server, uri)).find((t) => t.current === true);
  } catch {
    return undefined;
  }
}

function knownTargets(server: Server, uri: vscode.Uri | undefined): Promise<Target[]> {
  const args: TargetsArguments | undefined = uri === undefined ? undefined : { uri: uri.toString() };
  return server.execute<Target[]>(command.targets, args);
}
