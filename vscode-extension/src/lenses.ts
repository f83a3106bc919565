import { command, type MoreArguments } from "./protocol";

/** A lens as far as its row needs it; a vscode.CodeLens is one. */
export interface Lens {
  readonly range: { readonly start: { readonly line: number } };
  command?: { title: string; command: string; arguments?: unknown[] };
}

/**
 * The lenses for an editor beside another: a row has no room for all of them, and VS Code cuts it. Of each function its totals
 * stay, More… with everything else, and what finishes something that was begun beside it.
 */
export function narrow<L extends Lens>(lenses: readonly L[]): L[] {
  const out: L[] = [];
  const more = new Map<number, MoreArguments & { lens: L }>();
  for (const lens of lenses) {
    const [first] = (lens.command?.arguments ?? []) as { uri?: string; func?: string; function?: string; items?: MoreArguments["items"] }[];
    if (lens.command === undefined || ["", command.applyPlan as string].includes(lens.command.command) || first?.uri === undefined) {
      out.push(lens);
      continue;
    }
    const { line } = lens.range.start;
    const row = more.get(line);
    const items = lens.command.command === command.more ? (first.items ?? []) : [lens.command];
    if (row !== undefined) {
      row.items.push(...items);
      continue;
    }
    more.set(line, { lens, uri: first.uri, func: first.func ?? first.function ?? "", items: [...items] });
    out.push(lens);
  }
  for (const { lens, ...args } of more.values()) lens.command = { title: "More…", command: command.more, arguments: [args] };
  return out;
}
