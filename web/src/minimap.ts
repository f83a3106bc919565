// The minimap: the whole figure, with a frame around the visible part.
import type { Frame } from "./frame";
import { CanvasPen } from "./pen";
import { clamp } from "./util";
import { View } from "./view";

export function drawMinimap(frame: Frame) {
  const { figure, minimap, view, theme } = frame;
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
  if (frame.minimapKey !== key || frame.minimapOf !== figure) {
    const base = document.createElement("canvas");
    base.width = w * density;
    base.height = h * density;
    const on = base.getContext("2d");
    if (!on) return;
    on.scale(density, density);
    figure.drawSmall(new CanvasPen(on), small, theme);
    frame.minimapKey = key;
    frame.minimapOf = figure;
    frame.minimapBase = base;
    minimap.width = base.width;
    minimap.height = base.height;
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, minimap.width, minimap.height);
  if (frame.minimapBase) context.drawImage(frame.minimapBase, 0, 0);
  context.scale(density, density);
  const a = view.area;
  const x = clamp(small.sx(view.x), 1, w - 1);
  const y = clamp(small.sy(view.y), 1, h - 1);
  const right = clamp(small.sx(view.x + a.w / view.kx), 1, w - 1);
  const bottom = clamp(small.sy(view.y + a.h / view.ky), 1, h - 1);
  new CanvasPen(context).rect(x, y, Math.max(3, right - x), Math.max(3, bottom - y), { stroke: theme.accent, width: 1.5 });
}

function minimapView(frame: Frame) {
  const world = frame.figure.world();
  const small = new View();
  const k = Math.min(190 / Math.max(world.w, 1), 150 / Math.max(world.h, 1));
  small.area = { x: 4, y: 4, w: Math.max(12, Math.round(world.w * k)), h: Math.max(12, Math.round(world.h * k)) };
  small.fit(world, Infinity);
  return small;
}

export function minimapPointer(frame: Frame) {
  const { minimap } = frame;
  const go = (e: PointerEvent) => {
    if (e.buttons === 0) return;
    const small = minimapView(frame);
    frame.view.centre(small.wx(e.offsetX), small.wy(e.offsetY));
    frame.moved();
  };
  minimap.addEventListener("pointerdown", (e) => {
    minimap.setPointerCapture(e.pointerId);
    go(e);
  });
  minimap.addEventListener("pointermove", go);
}
