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

export const command = { run: "dmir.run", cost: "dmir.cost", targets: "dmir.targets" } as const;
