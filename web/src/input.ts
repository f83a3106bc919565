// Pointer and keyboard input.
import type { Direction, Hit } from "./figure";
import type { State } from "./state";
import { clamp } from "./util";

export class Pointer {
  down = new Map<number, { x: number; y: number }>();
  travel = 0;

  constructor(readonly frame: State) {
    const canvas = frame.canvas;
    canvas.addEventListener("pointerdown", (e) => { this.press(e); });
    canvas.addEventListener("pointermove", (e) => { this.move(e); });
    canvas.addEventListener("pointerup", (e) => { this.release(e); });
    canvas.addEventListener("pointercancel", (e) => { this.down.delete(e.pointerId); });
    canvas.addEventListener("pointerleave", () => { this.hover(null, 0, 0); });
    canvas.addEventListener("dblclick", (e) => {
      const hit = frame.figure.hit(e.offsetX, e.offsetY, frame.view);
      if (hit && hit.index >= 0 && !hit.handle) frame.toggle(hit.index);
    });
    canvas.addEventListener("wheel", (e) => { this.wheel(e); }, { passive: false });
  }

  press(e: PointerEvent) {
    if (e.button !== 0) return;
    this.frame.canvas.setPointerCapture(e.pointerId);
    this.down.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
    this.travel = 0;
  }

  move(e: PointerEvent) {
    const was = this.down.get(e.pointerId);
    const { frame } = this;
    if (!was) {
      this.hover(frame.figure.hit(e.offsetX, e.offsetY, frame.view), e.clientX, e.clientY);
      return;
    }
    const now = { x: e.offsetX, y: e.offsetY };
    const [first, second] = [...this.down.values()];
    if (first && second) {
      const before = Math.hypot(first.x - second.x, first.y - second.y);
      Object.assign(was, now);
      const after = Math.hypot(first.x - second.x, first.y - second.y);
      frame.zoomBy(after / Math.max(1, before), (first.x + second.x) / 2, (first.y + second.y) / 2);
      this.travel = Infinity;
      return;
    }
    this.travel += Math.hypot(now.x - was.x, now.y - was.y);
    if (this.travel > 3) {
      frame.canvas.classList.add("moving");
      frame.view.pan(now.x - was.x, now.y - was.y);
      frame.moved();
      Object.assign(was, now);
    }
  }

  release(e: PointerEvent) {
    if (!this.down.delete(e.pointerId)) return;
    const { frame } = this;
    frame.canvas.classList.remove("moving");
    if (this.travel > 3) return;
    const hit = frame.figure.hit(e.offsetX, e.offsetY, frame.view);
    if (!hit || hit.index < 0) {
      if (hit?.other) frame.revealPlace(hit.other.place);
      else frame.select(-1);
    } else if (hit.handle) frame.toggle(hit.index);
    else {
      frame.look.selected = hit.index; // select does not scroll to an item that is selected already
      frame.select(hit.index);
      frame.reveal(hit.index);
    }
  }

  hover(hit: Hit | null, x: number, y: number) {
    const { frame } = this;
    const item = hit ? (hit.other ?? frame.figure.items[hit.index]) : undefined;
    frame.canvas.classList.toggle("over", item !== undefined);
    if (item) frame.tip.show(item, x, y);
    else frame.tip.hide();
    const index = hit?.index ?? -1;
    if (index === frame.look.hover) return;
    frame.look.hover = index;
    frame.draw();
  }

  wheel(e: WheelEvent) {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
    if (!e.ctrlKey && this.frame.figure.scroll?.(e.offsetX, e.offsetY, e.deltaY * unit, this.frame.view)) {
      this.hover(null, 0, 0);
      this.frame.draw();
      return;
    }
    // Browsers report a pinch on a touchpad as a wheel event with Control. With Shift, or sideways, the wheel pans.
    if (e.shiftKey || (e.deltaX !== 0 && !e.ctrlKey)) {
      this.frame.view.pan(-(e.deltaX || e.deltaY) * unit, e.shiftKey ? 0 : -e.deltaY * unit);
      this.frame.moved();
      return;
    }
    this.frame.zoomBy(Math.exp(-clamp(e.deltaY * unit, -240, 240) * (e.ctrlKey ? 0.01 : 0.0016)), e.offsetX, e.offsetY);
  }
}

const walks: Record<string, Direction> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right", Home: "first", End: "last" };

export class Keys {
  constructor(readonly frame: State) {
    document.addEventListener("keydown", (e) => {
      if (e.defaultPrevented || e.altKey || e.metaKey || e.ctrlKey || frame.help.shown) return;
      const typing = e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement;
      if (typing || !(this.onFigure(e) || this.anywhere(e))) return;
      e.preventDefault();
    });
  }

  /** Handles the keys that need the focus on the figure. */
  onFigure(e: KeyboardEvent) {
    const { frame } = this;
    if (e.target !== frame.canvas) return false;
    const to = walks[e.key];
    const chosen = frame.look.selected;
    if (to && e.shiftKey) {
      const [dx, dy] = { up: [0, 60], down: [0, -60], left: [60, 0], right: [-60, 0], first: [0, 0], last: [0, 0] }[to];
      frame.view.pan(dx ?? 0, dy ?? 0);
      frame.moved();
    } else if (to) frame.select(frame.figure.walk(chosen, to), true);
    else if (e.key === "Enter") frame.reveal(chosen);
    else if (e.key === " ") frame.toggle(chosen);
    else return false;
    return true;
  }

  anywhere(e: KeyboardEvent) {
    const { frame } = this;
    switch (e.key) {
      case "/":
        frame.search.input.focus();
        frame.search.input.select();
        return true;
      case "n":
        frame.search.step(1);
        return true;
      case "N":
        frame.search.step(-1);
        return true;
      case "+":
      case "=":
        frame.zoomBy(1.3);
        return true;
      case "-":
        frame.zoomBy(1 / 1.3);
        return true;
      case "0":
        frame.fit();
        return true;
      case "e":
      case "c":
        frame.toggleAll(e.key === "e");
        return true;
      case "g":
        frame.search.groups.next();
        return true;
      case "t":
        frame.showTable(!frame.table.shown);
        return true;
      case "?":
        frame.help.open();
        return true;
      case "Escape":
        if (frame.look.found) frame.search.clear();
        else frame.select(-1);
        return true;
      default:
        return frame.flip(e.key);
    }
  }
}
