// What the parts of a page share: what is shown and selected, and what can be done with it. Parts know this and not each other; the frame
// alone knows all of them and joins them.
import type { Group, PanelData, Place } from "./data";
import type { Figure, Item, Look } from "./figure";
import type { Host } from "./host";
import type { Theme } from "./theme";
import type { View } from "./view";

export interface State {
  readonly data: PanelData;
  readonly figure: Figure;
  readonly theme: Theme;
  readonly view: View;
  readonly look: Look;
  readonly host: Host;
  query: string;
  /** The selection is the page's own and has no card. */
  readonly quiet: boolean;
  readonly canvas: HTMLCanvasElement;
  readonly tip: { show(item: Item, x: number, y: number): void; hide(): void };
  readonly table: { readonly shown: boolean; stale(): void };
  readonly search: { readonly input: HTMLInputElement; readonly groups: Grouping; step(by: number): void; find(query: string, go: boolean): void; clear(): void };
  readonly help: { readonly shown: boolean; open(): void };

  /**
   * Selects an item and scrolls it into view.
   * @param i -1 for none
   * @param centre zoom in if the item would be too small to read
   */
  select(i: number, centre?: boolean): void;
  /** Shows the place of an item in the text. */
  reveal(i: number): void;
  revealPlace(place: Place): void;
  /** Opens or closes a group. */
  toggle(i: number): void;
  toggleAll(open: boolean): void;
  /** Flips the switch of a key; false if there is none. */
  flip(key: string): boolean;
  showTable(shown: boolean): void;
  /** Moves the keyboard focus to the figure or its table. */
  focus(): void;
  fit(): void;
  zoomBy(factor: number, px?: number, py?: number): void;
  /** Follows a change of the view. */
  moved(): void;
  resize(): void;
  draw(): void;
}

/** The lines or the modules by which items are grouped. */
export interface Grouping {
  readonly by: string;
  readonly all: Group[];
  /** The numbers of the groups that a place is in. */
  of(place: Place): number[];
  heading(group: number): string;
  next(): void;
}
