/** What the extension and `dmir lsp` say to each other beyond LSP. */

export interface RunArguments {
  uri: string;
  func: string;
  device?: string;
  seed?: number;
}

export interface RunResult {
  ok: boolean;
  func: string;
  device: string;
  elapsed_ns: number;
  message: string;
  results: { name: string; type: string; summary: string }[];
  kernels?: Kernel[];
}

/** A step of a compiled function and the lines, counted from 1, that it came from. */
export interface Kernel {
  name: string;
  lines: number[];
  predicted_ns: number;
  measured_ns?: number;
  counted_bytes?: number;
}

export interface CompileResult {
  ok: boolean;
  func: string;
  message: string;
  arch?: string;
  kernels: Kernel[];
}

export interface LintResult {
  files: number;
  findings: number;
  errors: number;
  message: string;
}

export interface CostArguments {
  uri: string;
  func?: string;
}

export interface CostResult {
  title: string;
  text: string;
  json: unknown;
}

export interface TargetsArguments {
  uri: string;
}

export interface Target {
  name: string;
  title: string;
  /** Whether times are computed for this one now, in the file that was asked about. */
  current?: boolean;
}

export const panelKinds = ["graph", "roofline", "memory", "diff"] as const;
export type PanelKind = (typeof panelKinds)[number];

/** Names a panel: of which file, of what kind, and of which function where one is named. */
export interface PanelArguments {
  uri: string;
  kind: PanelKind;
  function?: string;
}

/** A panel as one self-contained page, for a client that said `"panels": true`. */
export interface PanelResult extends PanelArguments {
  title: string;
  html: string;
}

/** What a panel that is open shows now. The data are for its page alone. */
export interface PanelData {
  version?: number;
  data: unknown;
}

/** Names a virtual document: the program of a file at another level, or, without a view, one by its own address. */
export interface ViewArguments {
  uri: string;
  view?: string;
  /** Of views that are of one function. */
  func?: string;
  /** A line, counted from 0: the kernel that it became is selected. */
  line?: number;
}

export type HeatScale = "time" | "bytes" | "waste";

export interface HeatArguments {
  textDocument: { uri: string };
  by: HeatScale;
  /** The whole file where it is absent. */
  range?: HeatSpan["range"];
}

/** A stretch of text, how much of its function it takes on a scale of 0 to 9, and that in words. */
export interface HeatSpan {
  range: { start: { line: number; character: number }; end: { line: number; character: number } };
  level: number;
  text: string;
}

export interface ToggleArguments {
  setting: "hints" | "lint";
}

/** Commands of the server. */
export const command = {
  run: "dmir.run",
  profile: "dmir.profile",
  compile: "dmir.compile",
  cost: "dmir.cost",
  targets: "dmir.targets",
  panel: "dmir.panel",
  view: "dmir.view",
  toggle: "dmir.toggle",
  lintWorkspace: "dmir.lintWorkspace",
} as const;

/** Requests of the server that LSP does not have. */
export const request = { panelData: "dmir/panelData", heat: "dmir/heat" } as const;

export function isPanelKind(kind: unknown): kind is PanelKind {
  return (panelKinds as readonly unknown[]).includes(kind);
}
