import * as vscode from "vscode";
import {
  CloseAction,
  CodeLensRequest,
  ErrorAction,
  type ErrorHandler,
  ExecuteCommandRequest,
  InlayHintRefreshRequest,
  InlayHintRequest,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  State,
  TextDocumentContentRequest,
  WorkDoneProgress,
} from "vscode-languageclient/node";
import { findBinary } from "./binary";
import { RestartBudget } from "./restarts";
import { configuredPath, serverSettings } from "./settings";

const maxRestarts = 3;
const restartWindowMs = 3 * 60 * 1000;

/** Text and percentage of a running command. */
export interface Progress {
  message?: string | undefined;
  percentage?: number | undefined;
}

/** A client that only logs errors: Server reports each to the user once. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** The `dmir lsp` process of this window, and its client. */
export class Server implements vscode.Disposable {
  private client: QuietClient | undefined;
  private starting: Promise<boolean> | undefined;
  private binary: string | undefined;
  private started = false;
  private readonly budget = new RestartBudget(maxRestarts, restartWindowMs);
  private readonly stateChange = new vscode.EventEmitter<void>();
  readonly onDidChangeState = this.stateChange.event;
  private readonly refresh = new vscode.EventEmitter<void>();
  /** Fires when the server requests a refresh: settings, dmir.toml or measured times have changed. */
  readonly onDidRefresh = this.refresh.event;

  constructor(
    private readonly extensionPath: string,
    private readonly middleware: Middleware,
    readonly log: vscode.LogOutputChannel,
  ) {}

  get running(): boolean {
    return this.client?.state === State.Running;
  }

  get state(): "running" | "starting" | "stopped" {
    if (this.running) return "running";
    return this.starting === undefined ? "stopped" : "starting";
  }

  /** Version and path of the running server; empty if none was found. */
  get identity(): string {
    const version = this.client?.initializeResult?.serverInfo?.version;
    return [version, this.binary].filter((part) => part !== undefined).join(" · ");
  }

  /** Starts the server if it is not running. If that fails, it shows a message and returns false. */
  async start(): Promise<boolean> {
    if (this.running) return true;
    if (this.starting === undefined) {
      this.starting = this.launch().finally(() => {
        this.starting = undefined;
        this.stateChange.fire();
      });
      this.stateChange.fire();
    }
    return this.starting;
  }

  async stop(): Promise<void> {
    await this.starting?.catch(() => false);
    const client = this.client;
    this.client = undefined;
    if (client?.state === State.Running) {
      await client.dispose().catch((err: unknown) => {
        this.log.warn(`stopping: ${errorText(err)}`);
      });
    }
  }

  /** Restarts the server and clears the record of crashes. */
  async restart(): Promise<boolean> {
    await this.stop();
    this.budget.reset();
    return this.start();
  }

  /** Restarts only if the settings now name another binary. */
  async restartIfMoved(): Promise<boolean> {
    const found = this.find();
    if (found.found && found.path === this.binary && this.running) return false;
    await this.restart();
    return true;
  }

  async notify(method: string, params: object): Promise<void> {
    if (this.running) await this.client?.sendNotification(method, params);
  }

  /**
   * Executes one of the server's commands. Cancelling the token cancels the request.
   * Rejects with the server's error, or when the server cannot be started.
   */
  async execute<R>(
    command: string,
    argument?: object,
    token?: vscode.CancellationToken,
    progress?: (p: Progress) => void,
  ): Promise<R> {
    if (!(await this.start()) || this.client === undefined) throw new ServerUnavailable();
    const client = this.client;
    const params = { command, arguments: argument === undefined ? [] : [argument] };
    if (progress === undefined) return (await client.sendRequest(ExecuteCommandRequest.type, params, token)) as R;

    const workDoneToken = `dmir-${crypto.randomUUID()}`;
    const listener = client.onProgress(WorkDoneProgress.type, workDoneToken, (value) => {
      if (value.kind !== "end") progress({ message: value.message, percentage: value.percentage });
    });
    try {
      return (await client.sendRequest(ExecuteCommandRequest.type, { ...params, workDoneToken }, token)) as R;
    } finally {
      listener.dispose();
    }
  }

  /** Sends a request of any kind. Rejects with the server's error, or when the server cannot be started. */
  async request<R>(method: string, params: object, token?: vscode.CancellationToken): Promise<R> {
    if (!(await this.start()) || this.client === undefined) throw new ServerUnavailable();
    // The client would send an undefined token as a second parameter.
    return token === undefined ? this.client.sendRequest<R>(method, params) : this.client.sendRequest<R>(method, params, token);
  }

  /** Makes VS Code request the text of a virtual document again. */
  refreshDocument(uri: vscode.Uri): void {
    for (const { scheme, onDidChangeEmitter } of this.client?.getFeature(TextDocumentContentRequest.method)?.getProviders() ?? []) {
      if (scheme === uri.scheme) onDidChangeEmitter.fire(uri);
    }
  }

  dispose(): void {
    void this.stop();
    this.stateChange.dispose();
    this.refresh.dispose();
  }

  private find() {
    return findBinary({
      configured: configuredPath(),
      extensionPath: this.extensionPath,
      workspaceFolder: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath,
    });
  }

  private async launch(): Promise<boolean> {
    const binary = this.find();
    if (!binary.found) {
      this.log.error(`no dmir binary: tried ${binary.tried}`);
      this.report(`dmir was not found (tried ${binary.tried}). Install it, or set dmir.path to the binary.`, "Open Settings");
      return false;
    }
    this.binary = binary.path;
    this.started = false;
    this.log.info(`starting ${binary.path} lsp`);
    const client = new QuietClient("dmir", "dmir", { command: binary.path, args: ["lsp"] }, this.options());
    this.client = client;
    client.onDidChangeState((change) => {
      if (change.newState === State.Running) {
        this.started = true;
        void client.start().then(() => {
          this.forwardRefreshes(client);
        });
      }
      this.stateChange.fire();
    });
    try {
      await client.start();
      return true;
    } catch (err) {
      this.log.error(errorText(err));
      this.report(`${binary.path} did not start as a language server. See the log for the reason.`, "Show Log", "Open Settings");
      return false;
    }
  }

  /** Forwards the server's refresh requests to onDidRefresh as well as to the client's own provider of hints. */
  private forwardRefreshes(client: QuietClient): void {
    client.onRequest(InlayHintRefreshRequest.type, () => {
      this.refreshHints();
      this.refresh.fire();
    });
  }

  /** Makes VS Code request lenses again. */
  refreshLenses(): void {
    const lenses = this.client?.getFeature(CodeLensRequest.method);
    const document = vscode.workspace.textDocuments.find((d) => lenses?.getProvider(d) !== undefined);
    if (document !== undefined) lenses?.getProvider(document)?.onDidChangeCodeLensEmitter.fire();
  }

  /** Makes VS Code request inlay hints again. */
  refreshHints(): void {
    const hints = this.client?.getFeature(InlayHintRequest.method);
    const document = vscode.workspace.textDocuments.find((d) => hints?.getProvider(d) !== undefined);
    if (document !== undefined) hints?.getProvider(document)?.onDidChangeInlayHints.fire();
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [
        { language: "dmir", scheme: "file" },
        { language: "dmir", scheme: "untitled" },
        { language: "dmir", scheme: "dmir" }, // virtual documents, which show costs as well
        { language: "dmir", scheme: "git" }, // the older side of a comparison
      ],
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: () => ({ ...serverSettings(), trusted: vscode.workspace.isTrusted, panels: true }),
      initializationFailedHandler: () => false,
      errorHandler: this.errorHandler(),
      middleware: this.middleware,
    };
  }

  private errorHandler(): ErrorHandler {
    return {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        // launch() reports a server that did not start.
        if (!this.started) return { action: CloseAction.DoNotRestart, handled: true };
        if (this.budget.crashed()) {
          this.log.warn("the server ended unexpectedly; restarting it");
          return { action: CloseAction.Restart, handled: true };
        }
        this.report(`The dmir server crashed repeatedly and was stopped. See the log for the reason.`, "Restart", "Show Log");
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  private report(message: string, ...actions: ("Open Settings" | "Show Log" | "Restart")[]): void {
    void vscode.window.showErrorMessage(message, ...actions).then((choice) => {
      if (choice === "Open Settings") void vscode.commands.executeCommand("workbench.action.openSettings", "dmir.path");
      if (choice === "Show Log") this.log.show();
      if (choice === "Restart") void this.restart();
    });
  }
}

/** The server cannot be started; the user has seen a message about it. */
export class ServerUnavailable extends Error {
  constructor() {
    super("the dmir server is not running");
  }
}

export function errorText(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}
