// The keyboard's focus in a list that is drawn again with new data. Its rows have a data-key, the controls in them a data-part.

/** Draws a list again and gives the control that had the focus, or its row where it is gone, the focus back. */
export function keepFocus(body: HTMLElement, draw: () => void) {
  const had = body.contains(document.activeElement) ? document.activeElement : null;
  const key = had?.closest("[data-key]")?.getAttribute("data-key");
  draw();
  const row = [...body.querySelectorAll<HTMLElement>("[data-key]")].find((r) => r.dataset["key"] === key);
  if (!had || !row) return;
  if (focusPart(row, had.getAttribute("data-part"))) return;
  row.tabIndex = -1;
  row.focus();
}

/** Moves the focus to the next row or the one before, in the same column if it has a control there; false if there is none. */
export function walkRows(body: HTMLElement, by: 1 | -1) {
  const rows = [...body.querySelectorAll<HTMLElement>("tbody tr")].filter((r) => r.checkVisibility());
  const now = document.activeElement;
  const next = rows[rows.findIndex((r) => r.contains(now)) + by];
  return next !== undefined && focusPart(next, now?.getAttribute("data-part") ?? null);
}

/** Focuses the control of a row with that name, else its first one; false if it has none. */
function focusPart(row: HTMLElement, part: string | null) {
  const controls = [...row.querySelectorAll<HTMLElement>("[data-part]")];
  const control = controls.find((c) => c.dataset["part"] === part) ?? controls[0];
  control?.focus();
  return control !== undefined;
}
