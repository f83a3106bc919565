import * as vscode from "vscode";
import { isProgram } from "./editors";
import { Debounced } from "./debounced";
import { command, request, type Status, type StatusArguments, type Target, type TargetsArguments } from "./protocol";
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
    const status = await statusOf(this.server, document.uri);
    if (turn !== this.updates) return;
    this.item.text = `$(chip) ${status?.target ?? serverSettings().target}${status?.doubt ? " ≈" : ""}`;
    this.item.tooltip = tooltip(status);
    this.item.backgroundColor = status?.doubt ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
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

/** What the figures of a file depend on; undefined if the server does not know the file. */
async function statusOf(server: Server, uri: vscode.Uri): Promise<Status | undefined> {
  const args: StatusArguments = { textDocument: { uri: uri.toString() } };
  try {
    return (await server.request<Status | null>(request.status, args)) ?? undefined;
  } catch {
    return undefined;
  }
}

function tooltip(status: Status | undefined): string {
  if (status === undefined) return "Times are for an unknown machine. Click to choose another.";
  const by = { settings: ", chosen by the setting dmir.target", "dmir.toml": `, chosen by ${status.config}`, default: ", the default" }[status.by];
  const config = status.config === "" ? "No dmir.toml applies." : `${status.config} applies.`;
  const doubt = status.doubt === "" ? [] : [`≈ Figures are marked: ${status.doubt}.`];
  return [`Times are for ${status.title}${by}.`, config, ...doubt, "Click to choose another machine."].join("\n");
}

function knownTargets(server: Server, uri: vscode.Uri | undefined): Promise<Target[]> {
  const args: TargetsArguments | undefined = uri === undefined ? undefined : { uri: uri.toString() };
  return server.execute<Target[]>(command.targets, args);
}
