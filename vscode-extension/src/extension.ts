import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { CostView } from "./costView";
import { chooseFunction } from "./functions";
import { command, type CostArguments, type RunArguments, type RunResult } from "./protocol";
import { runFunction } from "./run";
import { Server } from "./server";
import { selectTarget, TargetStatus } from "./target";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("dmir", { log: true });
  // A click on a lens arrives here: the server's commands are registered by the client.
  const middleware: Middleware = {
    executeCommand: async (name, args: unknown[], next): Promise<unknown> => {
      if (name === command.run) return runFunction(theServer, args[0] as RunArguments);
      if (name === command.cost) return costView.show(args[0] as CostArguments);
      return (await next(name, args)) as unknown;
    },
  };
  const theServer = new Server(context.extensionPath, middleware, log);
  const costView = new CostView(theServer);
  server = theServer;

  context.subscriptions.push(
    log,
    theServer,
    costView,
    new TargetStatus(theServer),
    vscode.commands.registerCommand("dmir.runFunction", (args?: unknown) => runCommand(theServer, args)),
    vscode.commands.registerCommand("dmir.showCost", (args?: unknown) => costCommand(costView, args)),
    vscode.commands.registerCommand("dmir.selectTarget", () => selectTarget(theServer)),
    vscode.commands.registerCommand("dmir.restartServer", () => theServer.restart()),
    vscode.commands.registerCommand("dmir.showLog", () => {
      log.show();
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      // Of the other settings the server hears by itself: it registers for them.
      if (event.affectsConfiguration("dmir.path")) await theServer.restartIfMoved();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(async () => {
      // Trust may bring a dmir.path of the workspace into force; a server started afresh knows of the trust already.
      if (!(await theServer.restartIfMoved())) await theServer.notify("dmir/trust", { trusted: true });
    }),
  );
  await theServer.start();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

async function runCommand(server: Server, args: unknown): Promise<RunResult | undefined> {
  const chosen = isArguments<RunArguments>(args, "func") ? args : await chooseInEditor(server);
  return chosen === undefined ? undefined : runFunction(server, chosen);
}

async function chooseInEditor(server: Server): Promise<RunArguments | undefined> {
  const editor = dmirEditor();
  return editor !== undefined && (await server.start()) ? chooseFunction(editor) : undefined;
}

async function costCommand(view: CostView, args: unknown): Promise<void> {
  const editor = isArguments<CostArguments>(args, "uri") ? undefined : dmirEditor();
  if (editor !== undefined) await view.show({ uri: editor.document.uri.toString() });
  else if (isArguments<CostArguments>(args, "uri")) await view.show(args);
}

/** The active dmir editor; undefined, having said so, when another file is in front. */
function dmirEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId === "dmir") return editor;
  void vscode.window.showInformationMessage("Open a .dmir file first.");
  return undefined;
}

function isArguments<T extends CostArguments>(args: unknown, key: keyof T & string): args is T {
  return typeof args === "object" && args !== null && "uri" in args && typeof args.uri === "string" && key in args;
}
