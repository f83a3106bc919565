// The minimap: the whole figure, with a frame around the visible part.
import type { Figure } from "./figure";
import { CanvasPen } from "./pen";
import type { State } from "./state";
import { clamp, el } from "./util";
import { View } from "./view";

export class Minimap {
  readonly element = el("canvas", { id: "minimap", "aria-hidden": "true" });
  /** The picture without the frame, and what it is of. */
  private base: HTMLCanvasElement | null = null;
  private key = "";
  private of: Figure | null = null;

  constructor(readonly frame: State) {
    const go = (e: PointerEvent) => {
      if (e.buttons === 0) return;
      const small = minimapView(frame);
      frame.view.centre(small.wx(e.offsetX), small.wy(e.offsetY));
      frame.moved();
    };
    this.element.addEventListener("pointerdown", (e) => {
      this.element.setPointerCapture(e.pointerId);
      go(e);
    });
    this.element.addEventListener("pointermove", go);
  }

  draw() {
    const { frame, element: minimap } = this;
    const { figure, view, theme } = frame;
    if (!figure.minimap || !figure.drawSmall) return;
    const world = figure.world();
    const whole = view.holds(world);
    minimap.hidden = whole;
    if (whole || world.w === 0 || world.h === 0) return;
    const small = minimapView(frame);
    const density = window.devicePixelRatio || 1;
    const [w, h] = [small.area.w + 8, small.area.h + 8];
    minimap.style.width = `${w}px`;
    minimap.style.height = `${h}px`;
    const key = [w, h, density, theme.dark, theme.background, [...frame.look.hidden].join(), figure.stamp?.()].join(" ");
    const context = minimap.getContext("2d");
    if (!context) return;
    // The picture changes only with the layout; panning moves the frame alone.
    if (this.key !== key || this.of !== figure) {
      const base = document.createElement("canvas");
      base.width = w * density;
      base.height = h * density;
      const on = base.getContext("2d");
      if (!on) return;
      on.scale(density, density);
      figure.drawSmall(new CanvasPen(on), small, theme);
      this.key = key;
      this.of = figure;
      this.base = base;
      minimap.width = base.width;
      minimap.height = base.height;
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, minimap.width, minimap.height);
    if (this.base) context.drawImage(this.base, 0, 0);
    context.scale(density, density);
    const a = view.area;
    const x = clamp(small.sx(view.x), 1, w - 1);
    const y = clamp(small.sy(view.y), 1, h - 1);
    const right = clamp(small.sx(view.x + a.w / view.kx), 1, w - 1);
    const bottom = clamp(small.sy(view.y + a.h / view.ky), 1, h - 1);
    new CanvasPen(context).rect(x, y, Math.max(3, right - x), Math.max(3, bottom - y), { stroke: theme.accent, width: 1.5 });
  }
}

function minimapView(frame: State) {
  const world = frame.figure.world();
  const small = new View();
  const k = Math.min(190 / Math.max(world.w, 1), 150 / Math.max(world.h, 1));
  small.area = { x: 4, y: 4, w: Math.max(12, Math.round(world.w * k)), h: Math.max(12, Math.round(world.h * k)) };
  small.fit(world, Infinity);
  return small;
}
