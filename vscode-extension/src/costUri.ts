import type { CostArguments } from "./protocol";

/** Scheme of the read-only documents that show costs. */
export const costScheme = "dmir-cost";

/** Path and query of the URI of a cost document: the title of its tab, and the arguments. */
export interface CostAddress {
  path: string;
  query: string;
}

export function costAddress(args: CostArguments): CostAddress {
  const file = decodeURIComponent(args.uri).replace(/^.*[\\/]/, "");
  const func = args.func === undefined ? "" : ` @${args.func.replace(/^@/, "")}`;
  return { path: `/Cost of ${file}${func}`, query: JSON.stringify(args) };
}

export function costArguments(query: string): CostArguments | undefined {
  try {
    const args = JSON.parse(query) as Partial<CostArguments>;
    if (typeof args.uri !== "string") return undefined;
    return typeof args.func === "string" ? { uri: args.uri, func: args.func } : { uri: args.uri };
  } catch {
    return undefined;
  }
}
