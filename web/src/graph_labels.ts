// Placement of the labels with the bytes of each value, and points on paths.
import { type GraphModel, groupInset, type Line, type Scene } from "./graph_model";
import type { Path } from "./layout";
import { textWidth } from "./pen";
import { at } from "./util";
import type { Box } from "./view";

/** Puts the bytes of each value beside its first line where the label covers nothing. */
export function placeLabels(model: GraphModel, scene: Scene) {
  const cell = 240;
  const grid = new Map<string, Box[]>();
  const cells = (b: Box) => {
    const keys = [];
    for (let i = Math.floor(b.x / cell); i <= Math.floor((b.x + b.w) / cell); i++) {
      for (let j = Math.floor(b.y / cell); j <= Math.floor((b.y + b.h) / cell); j++) keys.push(`${i} ${j}`);
    }
    return keys;
  };
  const take = (b: Box) => {
    for (const key of cells(b)) {
      const list = grid.get(key);
      if (list) list.push(b);
      else grid.set(key, [b]);
    }
  };
  const free = (b: Box) =>
    cells(b).every((key) => (grid.get(key) ?? []).every((o) => b.x >= o.x + o.w || o.x >= b.x + b.w || b.y >= o.y + o.h || o.y >= b.y + b.h));
  scene.boxes.forEach((box, i) => {
    if (!box) return;
    const open = model.isGroup(i) && at(model.members, i).some((m) => scene.boxes[m]);
    if (open) {
      take({ ...box, h: groupInset.top - 6 });
      take({ ...box, y: box.y + box.h - 3, h: 6 });
    } else take(box);
  });
  // A label may not cover a line either; in very large graphs only its own line is checked.
  const mind = (line: Line) => {
    for (const [x, y] of samples(line.path ?? [])) take({ x: x - line.width / 2 - 1, y: y - 3, w: line.width + 2, h: 6 });
  };
  const many = scene.lines.length > 2500;
  if (!many) scene.lines.forEach(mind);
  const drawn = new Set<string>();
  // The widest lines first: where space is short, the values that move most bytes get their labels.
  for (const line of [...scene.lines].sort((a, b) => b.width - a.width)) {
    const text = line.edge.back ? "next round" : model.amount(line.edge);
    const key = `${line.edge.from} ${line.edge.value} ${text}`;
    if (!line.path || text === "" || text === "?" || (line.dash && !line.edge.back) || drawn.has(key)) continue;
    const w = Math.min(textWidth(text, { size: 11, fill: "" }), 160) + 8;
    if (many) mind(line);
    for (const t of [0.5, 0.28, 0.72, 0.14, 0.86, 0.05, 0.95]) {
      const [x, y] = pointOn(line.path, t);
      const side = line.width / 2 + 6;
      const box = [x + side, x - side - w].map((left) => ({ x: left, y: y - 8, w, h: 16 })).find(free);
      if (!box) continue;
      take(box);
      drawn.add(key);
      scene.labels.push({ text, x: box.x + 4, y, line });
      break;
    }
  }
}

/** Points on a path, spaced more closely than a letter is wide. */
function samples(path: Path): [number, number][] {
  const points: [number, number][] = [];
  let [px, py] = [0, 0];
  for (const c of path) {
    const [x, y] = c[0] === "C" ? [c[5], c[6]] : [c[1], c[2]];
    const steps = c[0] === "M" ? 0 : Math.min(400, Math.ceil(Math.hypot(x - px, y - py) / 7));
    for (let i = 1; i <= steps; i++) points.push(c[0] === "C" ? curvePoint(px, py, c, i / steps) : [px + ((x - px) * i) / steps, py + ((y - py) * i) / steps]);
    [px, py] = [x, y];
  }
  return points;
}

/** The point at parameter t of a path's first curve, or of its longest line if it has no curve. */
function pointOn(path: Path, t: number): [number, number] {
  let [px, py] = [0, 0];
  let longest: [number, number, number, number] = [0, 0, 0, 0];
  for (const c of path) {
    if (c[0] === "C" && Math.abs(c[6] - py) > 16) return curvePoint(px, py, c, t);
    const [x, y] = c[0] === "C" ? [c[5], c[6]] : [c[1], c[2]];
    if (c[0] === "L" && Math.abs(y - py) > Math.abs(longest[3] - longest[1])) longest = [px, py, x, y];
    [px, py] = [x, y];
  }
  const [ax, ay, bx, by] = longest;
  return [ax + (bx - ax) * t, ay + (by - ay) * t];
}

export function curvePoint(
  px: number,
  py: number,
  c: ["C", number, number, number, number, number, number],
  t: number,
): [number, number] {
  const u = 1 - t;
  const [a, b, d, e] = [u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t];
  return [a * px + b * c[1] + d * c[3] + e * c[5], a * py + b * c[2] + d * c[4] + e * c[6]];
}
