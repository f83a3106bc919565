// The page's host: a VS Code web view, the loopback server of the language server, or nobody (a file).

/**
 * What the page says to its host.
 * @typedef {{type: "reveal", line: number, column: number, endColumn: number} | {type: "function", name: string}} ToHost
 */

/**
 * What the host says to the page.
 * @typedef {{type: "data", data: PanelData} | {type: "select", line: number}} FromHost
 */

/**
 * @typedef {object} Host
 * @property {"vscode" | "loopback" | "file"} kind
 * @property {(message: ToHost) => void} post
 * @property {() => unknown} remembered what was remembered when the page was last shown; undefined where nothing is kept
 * @property {(state: unknown) => void} remember
 */

/**
 * @param {(message: FromHost) => void} receive
 * @param {(trouble: string) => void} connection is told what is wrong with the loopback server, and "" when it is well
 * @returns {Host}
 */
function connectHost(receive, connection) {
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

/**
 * @param {(message: FromHost) => void} receive
 * @param {(trouble: string) => void} connection
 * @returns {Host}
 */
function loopbackHost(receive, connection) {
  const gone = "The language server has gone; what you see is as it was.";
  const events = new EventSource("events");
  events.addEventListener("message", (event) => {
    /** @type {unknown} */
    let value;
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
    post: (message) => {
      const { type, ...rest } = message;
      fetch(type, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(rest) })
        .then((answer) => {
          connection(answer.ok ? "" : "The editor could not do that.");
        })
        .catch(() => {
          connection(gone);
        });
    },
    remembered: () => undefined,
    remember: () => undefined,
  };
}

/**
 * @param {unknown} value
 * @returns {FromHost | undefined}
 */
function asMessage(value) {
  if (typeof value !== "object" || value === null || !("type" in value)) return undefined;
  if (value.type === "data" && "data" in value && typeof value.data === "object" && value.data !== null) {
    return { type: "data", data: /** @type {PanelData} */ (value.data) };
  }
  if (value.type === "select" && "line" in value && typeof value.line === "number") return { type: "select", line: value.line };
  return undefined;
}

/**
 * Puts text into the clipboard where the browser lets us.
 * @param {string} text
 * @param {(copied: boolean) => void} then
 */
function copyText(text, then) {
  // Only a page of a file comes here, which browsers trust with the clipboard after a click or a key.
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

/**
 * The data that came with the page.
 * @returns {PanelData}
 */
function pageData() {
  /** @type {unknown} */
  const value = JSON.parse(document.getElementById("data")?.textContent ?? "");
  return /** @type {PanelData} */ (value);
}
