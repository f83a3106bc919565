import * as vscode from "vscode";
import { type Middleware, vsdiag } from "vscode-languageclient/node";
import { Changes } from "./changes";
import { Column } from "./column";
import { CostView } from "./costView";
import { applySafeFixes, dmirEditor, foldTypes, openExample } from "./editors";
import { chooseFunction, functionAt, functionsOf } from "./functions";
import { Heat } from "./heat";
import { kernelLinks } from "./kernels";
import { narrow } from "./lenses";
import { showMenu, StateStatus } from "./menu";
import { Panels } from "./panel/panels";
import {
  command,
  type CompileResult,
  type CostArguments,
  type MoreArguments,
  type PanelArguments,
  type PanelKind,
  type PlanArguments,
  type PlanResult,
  type RunArguments,
  type RunResult,
  type ToggleArguments,
  type ViewArguments,
} from "./protocol";
import { plain } from "./plain";
import { askDevices, plan } from "./plan";
import { clearLint, type Deed, lintWorkspace, work } from "./run";
import { errorText, Server, ServerUnavailable } from "./server";
import { hintsOnTheLeft } from "./settings";
import { followStableHLO } from "./stablehlo";
import { selectTarget, TargetStatus } from "./target";
import { cycleHeat, toggle } from "./toggles";
import { Totals } from "./totals";
import { chooseView, isCompiled, showDocument, showView } from "./views";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("dmir", { log: true });
  // The client registers the server's commands; lenses call them through here.
  const middleware: Middleware = {
    executeCommand: async (name, args: unknown[], next): Promise<unknown> => {
      const [first] = args;
      if (name === command.run || name === command.profile || name === command.compile) return work(theServer, name, first as RunArguments);
      if (name === command.view) return showView(theServer, first as ViewArguments);
      if (name === command.cost) return costView.show(first as CostArguments);
      if (name === command.panel) return panels.show(first as PanelArguments);
      if (name === command.plan) return plan(theServer, panels, first as PlanArguments);
      if (name === command.lintWorkspace && first === undefined) return lintWorkspace(theServer);
      if (name === command.more) return chooseMore(first as MoreArguments);
      if (name === command.toggle) return toggle((first as ToggleArguments).setting);
      return (await next(name, args)) as unknown;
    },
    provideCodeLenses: async (document, token, next) => {
      const lenses = await next(document, token);
      return vscode.window.tabGroups.all.length > 1 ? narrow(lenses ?? []) : lenses;
    },
    // Problems are those of the text, not of the versions before it.
    provideDiagnostics: (document, previous, token, next) =>
      ("uri" in document ? document.uri : document).scheme === "git" ? { kind: vsdiag.DocumentDiagnosticReportKind.full, items: [] } : next(document, previous, token),
    provideInlayHints: (document, range, token, next) => (hintsOnTheLeft(document) ? [] : next(document, range, token)),
    window: { showDocument: (params, token, next) => showDocument(theServer)(params, token, next) },
  };
  const theServer = new Server(context.extensionPath, middleware, log);
  const costView = new CostView(theServer);
  const icon = (theme: string): vscode.Uri => vscode.Uri.joinPath(context.extensionUri, "images", `panel-${theme}.svg`);
  const panels = new Panels(theServer, { light: icon("light"), dark: icon("dark") });
  server = theServer;

  const register = (name: string, act: (args?: unknown) => unknown): vscode.Disposable =>
    vscode.commands.registerCommand(`dmir.${name}`, (args?: unknown) => reported(() => act(args)));
  context.subscriptions.push(
    log,
    theServer,
    costView,
    panels,
    new Heat(theServer),
    new Changes(theServer),
    vscode.window.tabGroups.onDidChangeTabGroups(({ opened, closed }) => {
      if (opened.length + closed.length > 0) theServer.refreshLenses(); // their rows have more room, or less
    }),
    new Column(theServer),
    new Totals(theServer),
    new TargetStatus(theServer),
    new StateStatus(theServer),
    kernelLinks(theServer),
    followStableHLO(),
    register("runFunction", (args) => workCommand(theServer, command.run, args)),
    register("profileFunction", (args) => workCommand(theServer, command.profile, args)),
    register("compileFunction", (args) => workCommand(theServer, command.compile, args)),
    register("planFunction", (args) => planCommand(theServer, panels, args)),
    register("showCuda", () => viewCommand(theServer, "cuda")),
    register("showPtx", () => viewCommand(theServer, "ptx")),
    register("showCost", (args) => costCommand(costView, args)),
    register("showGraph", () => panelCommand(theServer, panels, "graph")),
    register("showRoofline", () => panelCommand(theServer, panels, "roofline")),
    register("showMemoryPlan", () => panelCommand(theServer, panels, "memory")),
    register("showMesh", () => panelCommand(theServer, panels, "mesh")),
    register("showTimeline", () => panelCommand(theServer, panels, "timeline")),
    register("showPatterns", () => panelCommand(theServer, panels, "pattern")),
    register("compareWithSaved", () => panelCommand(theServer, panels, "diff")),
    register("compareWithHead", () => panelCommand(theServer, panels, "diff", "git:HEAD")),
    register("showHistory", () => panelCommand(theServer, panels, "history")),
    register("showView", (view) => viewCommand(theServer, view)),
    register("applySafeFixes", () => fixCommand()),
    register("foldTypes", () => foldCommand(theServer)),
    register("lintAll", () => lintWorkspace(theServer)),
    register("clearLint", () => clearLint(theServer)),
    register("toggleHints", () => toggle("hints")),
    register("toggleLint", () => toggle("lint")),
    register("cycleHeat", () => cycleHeat()),
    register("menu", () => showMenu(theServer)),
    register("openExample", () => openExample(context.extensionUri)),
    register("selectTarget", () => selectTarget(theServer)),
    register("restartServer", () => theServer.restart()),
    register("showLog", () => {
      log.show();
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      // The server registers for changes of the other settings.
      if (event.affectsConfiguration("dmir.path")) await theServer.restartIfMoved();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(async () => {
      // Trust may activate a dmir.path of the workspace. A new server receives the trust when it starts.
      if (!(await theServer.restartIfMoved())) await theServer.notify("dmir/trust", { trusted: true });
    }),
  );
  await theServer.start();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

/** Runs a command and shows its error, unless the server has reported that it is unavailable. */
async function reported(act: () => unknown): Promise<unknown> {
  try {
    return await act();
  } catch (err) {
    if (!(err instanceof ServerUnavailable)) void vscode.window.showErrorMessage(plain(errorText(err)));
    return undefined;
  }
}

async function workCommand(server: Server, deed: Deed, args: unknown): Promise<RunResult | CompileResult | undefined> {
  const chosen = isArguments<RunArguments>(args, "func") ? args : await chooseInEditor(server);
  return chosen === undefined ? undefined : work(server, deed, chosen);
}

/** Plans a step for the devices that the arguments or the user name. */
async function planCommand(server: Server, panels: Panels, args: unknown): Promise<PlanResult | undefined> {
  if (isArguments<PlanArguments>(args, "func")) return plan(server, panels, args);
  const chosen = await chooseInEditor(server);
  const devices = chosen === undefined ? undefined : await askDevices();
  return chosen === undefined || devices === undefined ? undefined : plan(server, panels, { uri: chosen.uri, func: chosen.func, devices });
}

async function chooseInEditor(server: Server): Promise<RunArguments | undefined> {
  const editor = dmirEditor();
  return editor !== undefined && (await server.start()) ? chooseFunction(server, editor) : undefined;
}

async function costCommand(view: CostView, args: unknown): Promise<void> {
  const editor = isArguments<CostArguments>(args, "uri") ? undefined : dmirEditor();
  if (editor !== undefined) await view.show({ uri: editor.document.uri.toString() });
  else if (isArguments<CostArguments>(args, "uri")) await view.show(args);
}

/** Opens a panel of the function at the cursor; elsewhere in the file the server chooses the function. */
async function panelCommand(server: Server, panels: Panels, kind: PanelKind, base?: string): Promise<void> {
  const editor = dmirEditor();
  if (editor === undefined || !(await server.start())) return;
  const { uri } = editor.document;
  const here = kind === "diff" || kind === "history" ? undefined : functionAt(await functionsOf(server, uri), editor.selection.active);
  await panels.show({ uri: uri.toString(), kind, ...(here === undefined ? {} : { function: here.name }), ...(base === undefined ? {} : { base }) });
}

/** Shows what the last lens of a row holds, and does what is picked. */
async function chooseMore({ func, items }: MoreArguments): Promise<void> {
  const picked = await vscode.window.showQuickPick(
    items.map((item) => ({ label: item.title, item })),
    { placeHolder: `@${func}` },
  );
  if (picked !== undefined) await vscode.commands.executeCommand(picked.item.command, ...(picked.item.arguments ?? []));
}

async function viewCommand(server: Server, name: unknown): Promise<void> {
  const editor = dmirEditor();
  const view = editor === undefined || typeof name === "string" ? name : await chooseView();
  if (editor === undefined || typeof view !== "string") return;
  const uri = editor.document.uri.toString();
  if (!isCompiled(view)) {
    await showView(server, { uri, view });
    return;
  }
  const chosen = await chooseInEditor(server);
  if (chosen !== undefined) await showView(server, { uri, view, func: chosen.func, line: editor.selection.active.line });
}

async function fixCommand(): Promise<void> {
  const editor = dmirEditor();
  if (editor !== undefined) await applySafeFixes(editor.document);
}

async function foldCommand(server: Server): Promise<void> {
  const editor = dmirEditor();
  if (editor !== undefined) await foldTypes(server, editor);
}

function isArguments<T extends CostArguments>(args: unknown, key: keyof T & string): args is T {
  return typeof args === "object" && args !== null && "uri" in args && typeof args.uri === "string" && key in args;
}
