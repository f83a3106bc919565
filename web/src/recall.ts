// What a web view that was hidden shows again.
import type { State } from "./state";

/** Restores what remember of the frame has stored, of the same panel and function. */
export function recall(frame: State) {
  const state = frame.host.remembered();
  if (typeof state !== "object" || state === null || !("kind" in state) || !("function" in state)) return;
  if (state.kind !== frame.data.kind || state.function !== frame.data.function) return;
  if ("figure" in state) frame.figure.recall?.(state.figure);
  const key = "selected" in state ? state.selected : undefined;
  const i = frame.figure.items.findIndex((item) => item.key === key);
  if (i >= 0) frame.look.selected = frame.figure.show(i, false);
}
