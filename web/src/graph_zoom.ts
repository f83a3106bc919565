// Semantic zoom: a closed group opens when it is zoomed into, and closes again when it has become small.
import { at } from "./util";
import type { Box, View } from "./view";

/**
 * The share of the window, in either direction, from which on a group opens, and below which it closes. It also closes where all of
 * the figure is on the screen.
 */
const opensAt = 0.4;
const closesAt = 0.25;
/** The scale at which the names of nodes can be read: the members of a group that opens have it at least. */
const readable = 0.35;

export interface ZoomedFigure {
  world(): Box;
  boxOf(i: number): Box | null;
  isGroup(i: number): boolean;
  isOpen(i: number): boolean;
  /** The item under a point of the screen; -1 for none. */
  under(px: number, py: number, view: View): number;
  /** Opens or closes a group, which then is no longer one that a zoom has opened. */
  setOpen(i: number, open: boolean): void;
}

/**
 * Opens or closes one group for a zoom at a point of the screen, and scales the view so that the group keeps its place and about
 * its area there. Reports whether there was one.
 * @param opened the groups that a zoom has opened
 */
export function zoomGroups(f: ZoomedFigure, opened: Set<number>, view: View, closer: boolean, px: number, py: number) {
  const world = f.world();
  const whole = world.w * view.kx <= view.area.w && world.h * view.ky <= view.area.h;
  const share = (b: Box) => Math.max((b.w * view.kx) / view.area.w, (b.h * view.ky) / view.area.h);
  let i = -1;
  if (closer) {
    const hit = f.under(px, py, view);
    const box = hit < 0 ? null : f.boxOf(hit);
    if (box && f.isGroup(hit) && !f.isOpen(hit) && share(box) > opensAt) i = hit;
  } else {
    for (const group of opened) {
      const box = f.boxOf(group);
      if (box && f.isOpen(group) && (whole || share(box) < closesAt)) i = Math.max(i, group); // the innermost has the largest number
    }
  }
  const before = i < 0 ? null : f.boxOf(i);
  if (!before) return false;
  f.setOpen(i, closer);
  if (closer) opened.add(i);
  const after = f.boxOf(i);
  if (!after) return false;
  // The point of the group that is under the pointer stays there.
  const x = after.x + ((view.wx(px) - before.x) / before.w) * after.w;
  const y = after.y + ((view.wy(py) - before.y) / before.h) * after.h;
  view.kx = Math.max(view.kx * Math.sqrt((before.w * before.h) / (after.w * after.h)), closer ? readable : 0);
  view.ky = view.kx;
  view.x = x - (px - view.area.x) / view.kx;
  view.y = y - (py - view.area.y) / view.ky;
  return true;
}

/** The innermost box around a point: members come after their group. */
export function boxAt(boxes: (Box | null)[], x: number, y: number) {
  for (let i = boxes.length - 1; i >= 0; i--) {
    const b = at(boxes, i);
    if (b && x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h) return i;
  }
  return -1;
}
