import * as vscode from "vscode";
import type { HeatScale } from "./protocol";

/** The settings that the server reads; package.json has their units and defaults. */
export interface ServerSettings {
  /** Empty leaves the choice to dmir.toml. */
  target: string;
  bind: Record<string, number>;
  hints: { enabled: boolean };
  lint: { enabled: boolean; hints: boolean; workspace: boolean };
  run: { device: string; seed: number };
}

const section = "dmir";

export function serverSettings(): ServerSettings {
  const config = vscode.workspace.getConfiguration(section);
  return {
    target: config.get("target", ""),
    bind: config.get<Record<string, number>>("bind", {}),
    hints: { enabled: config.get("hints.enabled", true) },
    lint: {
      enabled: config.get("lint.enabled", true),
      hints: config.get("lint.hints", true),
      workspace: config.get("lint.workspace", false),
    },
    run: { device: config.get("run.device", "auto"), seed: config.get("run.seed", 0) },
  };
}

export function configuredPath(): string {
  return vscode.workspace.getConfiguration(section).get("path", "");
}

export function heatScale(scope?: vscode.Uri): "off" | HeatScale {
  return vscode.workspace.getConfiguration(section, scope).get("heat", "off");
}

/** Reports whether a document is one that lines of costs are asked for: a program, or a Python file, which may have a trace. */
export function mayHaveHints({ languageId, uri: { scheme } }: vscode.TextDocument): boolean {
  return (languageId === "dmir" && ["file", "untitled", "dmir", "git"].includes(scheme)) || (languageId === "python" && scheme === "file");
}

/** Reports whether the costs of a document are a column at the left: where they are on and VS Code shows inlay hints. */
export function hintsOnTheLeft(document: vscode.TextDocument): boolean {
  if (!mayHaveHints(document)) return false;
  const config = vscode.workspace.getConfiguration(section, document);
  const shown = vscode.workspace.getConfiguration("editor.inlayHints", document).get("enabled", "on");
  return config.get<boolean>("hints.enabled", true) && config.get<string>("hints.position", "left") === "left" && shown.startsWith("on");
}

/** Writes a setting in the scope where it is set already, else in the user's settings. */
export async function change(name: string, value: unknown): Promise<void> {
  const config = vscode.workspace.getConfiguration(section);
  const where =
    config.inspect(name)?.workspaceValue === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
  await config.update(name, value, where);
}
