import * as vscode from "vscode";
import { LSPErrorCodes, ResponseError } from "vscode-languageclient/node";
import { plain } from "./plain";
import type { Server } from "./server";

/** Executes a command of the server with a notification that shows progress and can cancel it. */
export function executeWithProgress<R>(server: Server, title: string, command: string, args?: object): Thenable<R> {
  const options = { location: vscode.ProgressLocation.Notification, title: plain(title), cancellable: true };
  return vscode.window.withProgress(options, (progress, token) => {
    let done = 0;
    return server.execute<R>(command, args, token, ({ message, percentage }) => {
      const increment = percentage === undefined ? 0 : Math.max(0, percentage - done);
      done += increment;
      progress.report(message === undefined ? { increment } : { message: plain(message), increment });
    });
  });
}

export function isCancelled(err: unknown): boolean {
  if (err instanceof vscode.CancellationError) return true;
  return err instanceof ResponseError && (err.code === LSPErrorCodes.RequestCancelled || err.code === LSPErrorCodes.ServerCancelled);
}
