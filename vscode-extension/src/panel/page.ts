import type { PanelArguments, PanelKind } from "../protocol";

/** What the server's pages have in the place of a nonce, for hosts that put their own there. */
const placeholder = "dmir-nonce-placeholder";

/**
 * Fits a self-contained page into a webview: nothing is loaded from anywhere, and only the page's own scripts run, for they
 * alone bear the nonce: the page's own policy, which knows its scripts by their hashes, gives way to that. The page keeps its state through VS Code's API as if it were alone; what names the panel is kept
 * beside it, so that the panel can be drawn again when the window is reloaded.
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

/** The panel that a page's kept state names; undefined for what no panel kept. */
export function panelOf(state: unknown, isKind: (kind: unknown) => kind is PanelArguments["kind"]): PanelArguments | undefined {
  const panel = field(state, "panel");
  const uri = field(panel, "uri");
  const kind = field(panel, "kind");
  const func = field(panel, "function");
  if (typeof uri !== "string" || !isKind(kind)) return undefined;
  return typeof func === "string" && func !== "" ? { uri, kind, function: func } : { uri, kind };
}

/** A page that says why there is no panel. */
export function sorry(reason: string): string {
  const text = reason.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);
  return `<!DOCTYPE html><html lang="en"><head><title>dmir</title></head><body><p>${text}</p></body></html>`;
}

const kindNames: Record<PanelKind, string> = { graph: "Graph", roofline: "Roofline", memory: "Memory plan", diff: "Changes" };

/** What stands on a panel's tab. */
export function titleOf({ uri, kind, function: func }: PanelArguments): string {
  return `${kindNames[kind]} ${func === undefined ? decodeURIComponent(uri).replace(/^.*[\\/]/, "") : `@${func.replace(/^@/, "")}`}`;
}

export function field(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}

/** JSON that may stand in a script of a page. */
function literal(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}

/** What VS Code gives to the page of a webview, once. */
interface Host {
  getState(): { page?: unknown } | undefined;
  setState(state: unknown): void;
  postMessage(message: unknown): void;
}
declare const globalThis: { acquireVsCodeApi: () => Host };

/** Runs in the page, before its own scripts; it is sent there as text, so it may name nothing outside itself. */
function prepare(panel: { function?: unknown }): void {
  const host = globalThis.acquireVsCodeApi();
  const keep = (page: unknown): void => {
    host.setState({ panel, page });
  };
  const kept = (): unknown => host.getState()?.page;
  keep(kept());
  const api = {
    getState: kept,
    setState: keep,
    postMessage: (message: { type?: unknown; name?: unknown }) => {
      if (message.type === "function") {
        panel.function = message.name;
        keep(kept());
      }
      host.postMessage(message);
    },
  };
  globalThis.acquireVsCodeApi = () => api as Host;
}
