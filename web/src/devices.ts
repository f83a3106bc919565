// The choice between the panel of each device and that of the undivided function.
import type { PanelData } from "./data";
import { at, el } from "./util";

export class Devices {
  /** Of each device and, where that is another panel, of the undivided function. */
  private panels: PanelData[] = [];

  constructor(readonly select: HTMLSelectElement, show: (data: PanelData) => void) {
    select.addEventListener("change", () => {
      show(at(this.panels, select.selectedIndex));
    });
  }

  /** Offers the panels of data; returns the one that was chosen. */
  choose(data: PanelData): PanelData {
    const chosen = this.select.selectedIndex;
    this.panels = data.undivided ? [data, data.undivided] : [data];
    this.select.hidden = this.panels.length < 2;
    this.select.replaceChildren(...this.panels.map((p) => el("option", {}, p.devices?.label ?? "")));
    this.select.selectedIndex = this.panels.length > 1 && chosen > 0 ? chosen : 0;
    return at(this.panels, this.select.selectedIndex);
  }
}
