/** The messages between the extension and `dmir lsp` beyond LSP. */

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

/** A step of a compiled function and its source lines, counted from 1. */
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

/** Without devices their number is that of the program's mesh, the settings or dmir.toml. */
export interface PlanArguments {
  uri: string;
  func: string;
  devices?: number;
}

export interface PlanResult {
  ok: boolean;
  func: string;
  message: string;
  devices: number;
  target: string;
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
  /** Times of the requested file are computed for this machine. */
  current?: boolean;
}

export const panelKinds = ["graph", "roofline", "memory", "mesh", "timeline", "pattern", "plans", "diff", "history"] as const;
export type PanelKind = (typeof panelKinds)[number];

/** Identifies a panel: file, kind and, optionally, function. */
export interface PanelArguments {
  uri: string;
  kind: PanelKind;
  function?: string;
  /** The versions that a comparison shows, as its page names them; by default the saved file and the text. */
  base?: string;
  version?: string;
}

/** A panel as one self-contained page, for clients with `"panels": true` in their options. */
export interface PanelResult extends PanelArguments {
  title: string;
  html: string;
}

/** New data for an open panel; only its page interprets them. */
export interface PanelData {
  version?: number;
  data: unknown;
}

/** Identifies a virtual document: a view of a file's program or, without a view, the document's own URI. */
export interface ViewArguments {
  uri: string;
  view?: string;
  /** The function, for views of one function. */
  func?: string;
  /** A line, counted from 0, whose kernel is selected. */
  line?: number;
}

/** Lines of a document, counted from 0, or of a version of it. */
export interface RevealArguments {
  uri: string;
  first: number;
  last: number;
  version?: string;
  function?: string;
}

/** An entry of the history of a document. */
export interface RevertArguments {
  uri: string;
  id: number;
}

export type HeatScale = "time" | "bytes" | "waste";

export interface HeatArguments {
  textDocument: { uri: string };
  by: HeatScale;
  /** The whole file if absent. */
  range?: HeatSpan["range"];
}

/** The lines of all ranges are answered, and taken to be in view. */
export interface HintsArguments {
  textDocument: { uri: string };
  by: HeatScale;
  ranges: HeatSpan["range"][];
}

/** A range, its share of the function on a scale of 0 to 9, and that share as text. */
export interface HeatSpan {
  range: { start: { line: number; character: number }; end: { line: number; character: number } };
  level: number;
  text: string;
}

/** The cost of a line in a fixed number of characters. */
export interface ColumnHint {
  line: number;
  label: string;
  /** Its heat, 0 to 9; absent if it has none. */
  level?: number;
  /** Measured or counted by a device, rather than predicted. */
  measured: boolean;
  /** Of the text without the error that it has now. */
  stale: boolean;
  /** Markdown. */
  tooltip: string;
}

/** What the figures of a document depend on besides its text. */
export interface Status {
  target: string;
  title: string;
  by: "settings" | "dmir.toml" | "default";
  /** The dmir.toml that applies; empty if there is none. */
  config: string;
  /** Why the figures have the mark ≈; empty if they have none. */
  doubt: string;
}

export interface StatusArguments {
  textDocument: { uri: string };
}

/** Two open documents: a text, and an older version of it. */
export interface ChangesArguments {
  textDocument: { uri: string };
  base: { uri: string };
}

/** How the costs of lines differ, of the text and, where an op is gone, of the older version. */
export interface Changes {
  text: LineChange[];
  base: LineChange[];
}

export interface LineChange {
  line: number;
  label: string;
  /** 1 where the line takes more than before, −1 where it takes less. */
  sign: number;
  why: string;
}

/** What the last lens of a row holds. */
export interface MoreArguments {
  uri: string;
  func: string;
  items: { title: string; command: string; arguments?: unknown[] }[];
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
  more: "dmir.more",
  plan: "dmir.plan",
  applyPlan: "dmir.applyPlan",
  lintWorkspace: "dmir.lintWorkspace",
  reveal: "dmir.reveal",
  revert: "dmir.revert",
} as const;

/** Requests of the server beyond LSP. */
export const request = { panelData: "dmir/panelData", heat: "dmir/heat", hints: "dmir/hints", status: "dmir/status", changes: "dmir/changes" } as const;

export function isPanelKind(kind: unknown): kind is PanelKind {
  return (panelKinds as readonly unknown[]).includes(kind);
}
