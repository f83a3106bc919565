// The host of a page: a VS Code web view, the loopback server of the language server, or none (a file).
import type { PanelData } from "./data";

/** VS Code's API for web views. */
declare function acquireVsCodeApi(): {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
};

/** Messages from the page to its host. */
type ToHost =
  /** version names the version of a comparison that the place is in; it is absent for the text itself. */
  | { type: "reveal"; line: number; column: number; endColumn: number; version?: string }
  | { type: "function"; name: string }
  | { type: "compare"; base: string; version: string }
  | { type: "revert"; id: number };

/** Messages from the host to the page. */
type FromHost = { type: "data"; data: PanelData } | { type: "select"; line: number };

export interface Host {
  kind: "vscode" | "loopback" | "file";
  /** @param failed is told why the message was rejected, instead of the connection; only a loopback server tells */
  post(message: ToHost, failed?: (reason: string) => void): void;
  /** The state that was last stored; undefined if there is none. */
  remembered(): unknown;
  remember(state: unknown): void;
}

/** @param connection receives the state of the loopback connection: an error message, or "" */
export function connectHost(receive: (message: FromHost) => void, connection: (trouble: string) => void): Host {
  if (typeof acquireVsCodeApi === "function") {
    const api = acquireVsCodeApi();
    window.addEventListener("message", (event) => {
      const message = asMessage(event.data);
      if (message) receive(message);
    });
    return {
      kind: "vscode",
      post: (message) => {
        api.postMessage(message);
      },
      remembered: () => api.getState(),
      remember: (state) => {
        api.setState(state);
      },
    };
  }
  if (location.protocol === "http:" || location.protocol === "https:") return loopbackHost(receive, connection);
  return { kind: "file", post: () => undefined, remembered: () => undefined, remember: () => undefined };
}

function loopbackHost(receive: (message: FromHost) => void, connection: (trouble: string) => void): Host {
  const gone = "The language server has stopped. This page shows its last state.";
  const events = new EventSource("events");
  events.addEventListener("message", (event) => {
    let value: unknown;
    try {
      value = JSON.parse(String(event.data));
    } catch {
      return;
    }
    const message = asMessage(value);
    if (message) receive(message);
  });
  events.addEventListener("open", () => {
    connection("");
  });
  events.addEventListener("error", () => {
    connection(gone);
  });
  return {
    kind: "loopback",
    post: (message, failed) => {
      const { type, ...rest } = message;
      fetch(type, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(rest) })
        .then(async (answer) => {
          const reason = answer.ok ? "" : (await answer.text()).trim();
          connection(answer.ok || failed ? "" : `The editor rejected the request: ${reason}.`);
          if (!answer.ok) failed?.(reason);
        })
        .catch(() => {
          connection(gone);
          failed?.("the language server does not answer");
        });
    },
    remembered: () => undefined,
    remember: () => undefined,
  };
}

function asMessage(value: unknown): FromHost | undefined {
  if (typeof value !== "object" || value === null || !("type" in value)) return undefined;
  if (value.type === "data" && "data" in value && typeof value.data === "object" && value.data !== null) {
    return { type: "data", data: value.data as PanelData };
  }
  if (value.type === "select" && "line" in value && typeof value.line === "number") return { type: "select", line: value.line };
  return undefined;
}

/** Copies text to the clipboard if the browser allows it. */
export function copyText(text: string, then: (copied: boolean) => void) {
  // Only pages opened from files copy; browsers allow it after a click or a key.
  if (!window.isSecureContext) {
    then(false);
    return;
  }
  navigator.clipboard.writeText(text).then(
    () => {
      then(true);
    },
    () => {
      then(false);
    },
  );
}

/** The data embedded in the page. */
export function pageData(): PanelData {
  const value: unknown = JSON.parse(document.getElementById("data")?.textContent ?? "");
  return value as PanelData;
}
