import type { PanelArguments, PanelKind } from "../protocol";

/** The placeholder for the nonce in the server's pages. */
const placeholder = "dmir-nonce-placeholder";

/**
 * Adapts a self-contained page to a webview. It loads nothing, and only the page's own scripts run, since they alone have the
 * nonce; this policy replaces the page's own, which admits its scripts by their hashes. The arguments of the panel are stored
 * beside the page's state, so that the panel can be restored when the window is reloaded.
 */
export function embed(html: string, nonce: string, panel: PanelArguments): string {
  const signed = html.replace(/<meta http-equiv="Content-Security-Policy"[^>]*>\n?/i, "").replaceAll(placeholder, nonce);
  const policy = [
    "default-src 'none'",
    "img-src data:",
    `style-src 'nonce-${nonce}'`,
    `script-src 'nonce-${nonce}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const head = [
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    `<script nonce="${nonce}">(${String(prepare)})(${literal(panel)});</script>`,
  ].join("\n");
  const opening = /<head(\s[^>]*)?>/i.exec(signed);
  if (opening === null) return `${head}\n${signed}`;
  const end = opening.index + opening[0].length;
  return `${signed.slice(0, end)}\n${head}${signed.slice(end)}`;
}

/** The panel that a stored state belongs to; undefined if no panel stored it. */
export function panelOf(state: unknown, isKind: (kind: unknown) => kind is PanelArguments["kind"]): PanelArguments | undefined {
  const panel = field(state, "panel");
  const uri = field(panel, "uri");
  const kind = field(panel, "kind");
  const func = field(panel, "function");
  if (typeof uri !== "string" || !isKind(kind)) return undefined;
  const args: PanelArguments = { uri, kind };
  if (typeof func === "string" && func !== "") args.function = func;
  for (const side of ["base", "version"] as const) {
    const chosen = field(panel, side);
    if (typeof chosen === "string" && chosen !== "") args[side] = chosen;
  }
  return args;
}

/** A page with the reason why there is no panel. */
export function errorPage(reason: string): string {
  const text = reason.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);
  return `<!DOCTYPE html><html lang="en"><head><title>dmir</title></head><body><p>${text}</p></body></html>`;
}

const kindNames: Record<PanelKind, string> = { graph: "Graph", roofline: "Roofline", memory: "Memory plan", mesh: "Mesh", timeline: "Timeline", pattern: "Patterns", plans: "Plans", diff: "Changes", history: "History" };

/** The title of a panel's tab. */
export function titleOf({ uri, kind, function: func }: PanelArguments): string {
  return `${kindNames[kind]} ${func === undefined ? decodeURIComponent(uri).replace(/^.*[\\/]/, "") : `@${func.replace(/^@/, "")}`}`;
}

export function field(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}

/** JSON that is safe inside a script element. */
function literal(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}

/** VS Code's API for webviews, which a page can acquire once. */
interface Host {
  getState(): { page?: unknown } | undefined;
  setState(state: unknown): void;
  postMessage(message: unknown): void;
}
declare const globalThis: { acquireVsCodeApi: () => Host };

/** Runs in the page before its own scripts. It is inserted as text, so it may refer to nothing outside itself. */
function prepare(panel: { function?: unknown; base?: unknown; version?: unknown }): void {
  const host = globalThis.acquireVsCodeApi();
  const keep = (page: unknown): void => {
    host.setState({ panel, page });
  };
  const kept = (): unknown => host.getState()?.page;
  keep(kept());
  const api = {
    getState: kept,
    setState: keep,
    postMessage: (message: { type?: unknown; name?: unknown; base?: unknown; version?: unknown }) => {
      if (message.type === "function") {
        panel.function = message.name;
        keep(kept());
      }
      if (message.type === "compare") {
        panel.base = message.base;
        panel.version = message.version;
        keep(kept());
      }
      host.postMessage(message);
    },
  };
  globalThis.acquireVsCodeApi = () => api as Host;
}
