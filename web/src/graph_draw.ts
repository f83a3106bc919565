// Drawing the movement graph, with more detail at larger scales.
import type { GraphNode } from "./data";
import type { Item, Look } from "./figure";
import { isValue } from "./graph_fold";
import { type GraphModel, type Line, nameFont, nodeName, nodeNumbers, nodeTitle, numberFont, type Scene, titleFont } from "./graph_model";
import { drawShape } from "./header";
import type { Path } from "./layout";
import { fitText, type Pen, type Stroke, textWidth } from "./pen";
import { type Mark, markOf } from "./theme";
import { at } from "./util";
import type { Box, View } from "./view";

/** Below textScale (paperScale in print) only titles are drawn, below titleScale no text. */
const textScale = 0.55;
const paperScale = 0.42;
export const titleScale = 0.2;
/** Below the first size there is no text; below the second it is cut rather than made smaller. */
const least = 4.5;
const legible = 6.5;

export interface GraphPicture {
  model: GraphModel;
  scene: Scene;
  open(i: number): boolean;
  /** Mark the path that takes longest. */
  heavy: boolean;
  items: Item[];
}

/** Draws the graph and returns the number of nodes drawn. */
export function drawGraph(pen: Pen, g: GraphPicture, view: View, look: Look): number {
  const k = view.kx;
  const bright = brightness(g, look);
  const shown = (b: Box) => view.touches(b);
  const focus = look.selected >= 0 ? look.selected : look.hover;
  let drawn = 0;
  g.scene.boxes.forEach((box, i) => {
    if (!box || !g.open(i) || !g.model.isGroup(i) || !shown(box)) return;
    drawOpenGroup(pen, g, i, box, view, look, bright(i));
    drawn++;
  });
  for (const line of drawLines(pen, g, view, look, focus, bright)) drawFar(pen, line, view, look);
  g.scene.boxes.forEach((box, i) => {
    if (!box || (g.open(i) && g.model.isGroup(i)) || !shown(box)) return;
    drawNode(pen, g, i, box, view, look, bright(i));
    drawn++;
  });
  if (k >= (look.paper ? paperScale : textScale)) drawLabels(pen, g, view, look, focus, bright);
  return drawn;
}

/** The opacity of each node: nodes that are filtered out or do not match the search are faded. */
function brightness(g: GraphPicture, look: Look): (i: number) => number {
  return (i) => {
    if (look.hidden.has(at(g.items, i).cls)) return 0.13;
    if (look.found && !look.found.has(i) && !hiddenMatch(g, look.found, i)) return 0.28;
    return at(g.model.nodes, i).idle ? 0.6 : 1;
  };
}

/** Reports whether a match of the search is inside a group. */
function hiddenMatch(g: GraphPicture, found: Set<number>, i: number): boolean {
  return at(g.model.members, i).some((m) => found.has(m) || hiddenMatch(g, found, m));
}

/** Draws the lines, and returns the long ones at the selected node, which are to be drawn whole over all others. */
function drawLines(pen: Pen, g: GraphPicture, view: View, look: Look, focus: number, bright: (i: number) => number): Line[] {
  const k = view.kx;
  const dx = view.area.x - view.x * k;
  const dy = view.area.y - view.y * k;
  const rough = k < 0.12 && !look.paper;
  const batches = new Map<string, { style: Stroke; paths: Path[] }>();
  const strong: Line[] = [];
  const far: Line[] = [];
  for (const line of g.scene.lines) {
    const at = line.edge.from === focus || line.edge.to === focus;
    if (line.path === null) {
      if (at) far.push(line);
      else if (k > titleScale && (seen(view, line.from) || seen(view, line.to))) addBatch(batches, stub(line), line, k, look, g.heavy, 0.8 * Math.min(bright(line.edge.from), bright(line.edge.to)));
      continue;
    }
    if (!view.touches(line.bounds)) continue;
    if (at) strong.push(line);
    else addBatch(batches, line.path, line, k, look, g.heavy, Math.min(bright(line.edge.from), bright(line.edge.to)));
  }
  for (const { style, paths } of batches.values()) pen.paths(paths, k, dx, dy, style, rough);
  if (k >= 0.3 || look.paper) {
    for (const line of g.scene.lines) if (seen(view, line.to)) drawArrow(pen, line, view, look.theme.edge, Math.min(bright(line.edge.from), bright(line.edge.to)));
  }
  for (const line of strong) {
    if (line.path) pen.path(line.path, k, dx, dy, { stroke: look.theme.accent, width: Math.max(1.5, line.width * k), dash: line.dash ? [4, 3] : [], opacity: 0.9 });
    drawArrow(pen, line, view, look.theme.accent, 1);
  }
  return far;
}

/** Reports whether a point or its surroundings are on the screen. */
function seen(view: View, point: [number, number]) {
  return view.touches({ x: point[0] - 20, y: point[1] - 20, w: 40, h: 40 });
}

/** Adds a path to the batch of its style: each batch is one drawing operation. */
function addBatch(
  batches: Map<string, { style: Stroke; paths: Path[] }>,
  path: Path,
  line: Line,
  k: number,
  look: Look,
  marked: boolean,
  opacity: number,
) {
  const step = Math.round(line.width * 2) / 2;
  const heavy = marked && line.edge.heavy;
  const key = `${step} ${line.dash} ${opacity} ${heavy}`;
  let batch = batches.get(key);
  if (!batch) {
    const width = Math.max(look.paper ? 0.4 : 0.5, step * k);
    const dash = line.dash && k > titleScale ? [Math.max(2, 4 * k), Math.max(2, 4 * k)] : [];
    batch = { style: { stroke: heavy ? look.theme.warning : look.theme.edge, width: heavy ? Math.max(width, 1.2) : width, dash, opacity: opacity * (k < 0.1 ? 0.55 : 0.85) }, paths: [] };
    batches.set(key, batch);
  }
  batch.paths.push(path);
}

/** The two ends of a line that is too long to be drawn whole. */
function stub(line: Line): Path {
  return [
    ["M", line.from[0], line.from[1]],
    ["L", line.from[0], line.from[1] + 12],
    ["M", line.from[0] - 5, line.from[1] + 12],
    ["L", line.from[0] + 5, line.from[1] + 12],
    ["M", line.to[0] - 5, line.to[1] - 18],
    ["L", line.to[0] + 5, line.to[1] - 18],
    ["M", line.to[0], line.to[1] - 18],
    ["L", line.to[0], line.to[1]],
  ];
}

function drawFar(pen: Pen, line: Line, view: View, look: Look) {
  const k = view.kx;
  const [ax, ay] = line.from;
  const [bx, by] = line.to;
  const bend = Math.min(400, Math.max(60, Math.abs(by - ay) / 3));
  pen.path(
    [["M", ax, ay], ["C", ax, ay + bend, bx, by - bend, bx, by]],
    k,
    view.area.x - view.x * k,
    view.area.y - view.y * k,
    { stroke: look.theme.accent, width: Math.max(1.5, line.width * k), opacity: 0.8, dash: line.edge.back ? [6, 4] : [] },
  );
  drawArrow(pen, line, view, look.theme.accent, 1);
}

function drawArrow(pen: Pen, line: Line, view: View, color: string, opacity: number) {
  const size = (3.2 + line.width * 0.6) * view.kx;
  const x = view.sx(line.to[0]);
  const y = view.sy(line.to[1]);
  pen.polygon([x - size, y - size * 1.5, x + size, y - size * 1.5, x, y], { fill: color, opacity });
}

function drawLabels(pen: Pen, g: GraphPicture, view: View, look: Look, focus: number, bright: (i: number) => number) {
  for (const label of g.scene.labels) {
    if (!view.touches({ x: label.x, y: label.y - 8, w: 80, h: 16 })) continue;
    const at = label.line.edge.from === focus || label.line.edge.to === focus;
    const style = { size: 11 * view.kx, fill: at ? look.theme.text : look.theme.muted, halo: look.theme.background, bold: at };
    pen.text(fitText(label.text, style, 160 * view.kx), view.sx(label.x), view.sy(label.y), {
      ...style,
      opacity: Math.min(bright(label.line.edge.from), bright(label.line.edge.to)),
    });
  }
}

function drawOpenGroup(pen: Pen, g: GraphPicture, i: number, box: Box, view: View, look: Look, opacity: number) {
  const k = view.kx;
  const n = at(g.model.nodes, i);
  const mark = markOf(look.theme, n.class);
  const [x, y, w, h] = [view.sx(box.x), view.sy(box.y), box.w * k, box.h * k];
  const chosen = i === look.selected;
  pen.rect(x, y, w, h, { fill: mark.fill, opacity: opacity * 0.4, radius: 8 * k });
  pen.rect(x, y, w, h, {
    stroke: chosen ? look.theme.accent : mark.color,
    width: chosen ? 2.5 : Math.max(0.6, 1.3 * k),
    dash: chosen ? [] : [6 * k, 3 * k],
    opacity,
    radius: 8 * k,
  });
  if (k < titleScale && !look.paper) return;
  if (k < (look.paper ? paperScale : textScale)) {
    const size = Math.min(20 * k, (13 * k * (w - 16 * k)) / Math.max(1, textWidth(nodeTitle(n), { ...titleFont, size: 13 * k })));
    pen.text(nodeTitle(n), x + 10 * k, y + 18 * k, { ...titleFont, size, fill: look.theme.text, opacity });
    const time = { ...numberFont, size: size * 0.92, fill: look.theme.text, opacity: opacity * 0.85 };
    if (n.time_ns) pen.text(fitText(n.time_label, time, w - 20 * k), x + 10 * k, y + 18 * k + size * 1.15, time);
    return;
  }
  chip(pen, mark, x + 9 * k, y + 8 * k, 18 * k, k, opacity, "▾");
  const title = { ...titleFont, size: 13 * k, fill: look.theme.text, opacity };
  const left = x + 34 * k;
  pen.text(nodeTitle(n), left, y + 17 * k, title);
  const after = left + textWidth(nodeTitle(n), title) + 8 * k;
  const name = { ...nameFont, size: 12 * k, fill: look.theme.muted, opacity };
  pen.text(fitText([n.result, n.region].filter((s) => s !== "").join("  "), name, x + w - 10 * k - after), after, y + 17 * k, name);
  const numbers = { ...numberFont, size: 11.5 * k, fill: look.theme.muted, opacity };
  pen.text(fitText(nodeNumbers(n, false), numbers, w - 44 * k), left, y + 34 * k, numbers);
}

function drawNode(pen: Pen, g: GraphPicture, i: number, box: Box, view: View, look: Look, opacity: number) {
  const k = view.kx;
  const n = at(g.model.nodes, i);
  const mark = markOf(look.theme, n.class);
  const [x, y, w, h] = [view.sx(box.x), view.sy(box.y), box.w * k, box.h * k];
  const chosen = i === look.selected;
  const found = look.found?.has(i) ?? false;
  const group = g.model.isGroup(i);
  const shape = isValue(n) ? "tag" : group ? "box" : mark.shape;
  const tiny = k < titleScale && !look.paper;
  const heavy = g.heavy && n.heavy;
  const stroke = chosen || found ? look.theme.accent : heavy ? look.theme.warning : mark.color;
  const width = chosen ? 2.5 : found ? 2 : i === look.hover ? 2 : Math.max(heavy ? 1 : 0.5, (heavy ? 2.6 : 1.3) * k);
  const outline = tiny && !chosen && !found ? {} : { stroke, width };
  if (chosen) drawShape(pen, shape, x - 3, y - 3, w + 6, h + 6, { stroke: look.theme.accent, width: 1, opacity: 0.45 });
  if (group && !tiny) {
    for (const off of [6, 3]) drawShape(pen, shape, x + off * k, y + off * k, w, h, { fill: look.theme.background, stroke: mark.color, width: Math.max(0.5, k), opacity });
  }
  // The background first, so that no line shows through a faded node.
  if (!tiny) drawShape(pen, shape, x, y, w, h, { fill: look.theme.background });
  if (k < 0.12 && !look.paper && !chosen && !found) {
    pen.rect(x, y, w, h, { fill: mark.color, opacity });
    return;
  }
  drawShape(pen, shape, x, y, w, h, { fill: tiny ? mark.color : mark.fill, ...outline, dash: n.idle ? [4, 3] : [], opacity });
  if (!tiny) drawNodeText(pen, g, n, x, y, w, h, k, look, mark, opacity, group, shape);
}

function drawNodeText(
  pen: Pen,
  g: GraphPicture,
  n: GraphNode,
  x: number,
  y: number,
  w: number,
  h: number,
  k: number,
  look: Look,
  mark: Mark,
  opacity: number,
  group: boolean,
  shape: string,
) {
  const value = isValue(n);
  const all = k >= (look.paper ? paperScale : textScale);
  const title = { ...titleFont, size: 13 * k, fill: look.theme.text, opacity };
  if (!all) {
    // At small scales only the title, as large as the node allows.
    const text = nodeTitle(n);
    const timed = !value && n.time_label !== "" && n.time_ns !== 0 && n.time_ns !== null && h >= 22;
    const room = w * (shape === "box" ? 0.9 : 0.8);
    const high = Math.min(13 * k * 1.7, h * (timed ? 0.42 : 0.6));
    if (high < least && !look.paper) return;
    const size = Math.min(high, Math.max(Math.min(high, legible), (title.size * room) / Math.max(1, textWidth(text, title))));
    const cut = { ...title, size };
    pen.text(fitText(text, cut, room), x + w / 2, y + h / 2 - (timed ? size * 0.56 : 0), { ...cut, align: "middle" });
    if (timed) pen.text(n.time_label, x + w / 2, y + h / 2 + size * 0.62, { ...numberFont, size: size * 0.92, fill: look.theme.text, opacity: opacity * 0.85, align: "middle" });
    return;
  }
  if (!value) chip(pen, mark, x + 15 * k, y + h / 2 - 9 * k, 18 * k, k, opacity, group ? "▸" : mark.letter);
  const left = value ? x + 12 * k : x + 40 * k;
  const room = x + w - (value ? 12 : 14) * k - left;
  pen.text(fitText(nodeTitle(n), title, room), left, y + h / 2 - 8.5 * k, title);
  const used = textWidth(nodeTitle(n), title) + 8 * k;
  const name = { ...nameFont, size: 12 * k, fill: look.theme.muted, opacity };
  if (room - used > 12 * k) pen.text(fitText(nodeName(n), name, room - used), left + used, y + h / 2 - 8.5 * k, name);
  const numbers = { ...numberFont, size: 11.5 * k, fill: look.theme.text, opacity: opacity * 0.85 };
  const folded = g.model.foldedAt(n.id);
  const tail = folded ? textWidth(folded, numbers) : 0;
  pen.text(fitText(nodeNumbers(n, g.model.inKernel(n.id)), numbers, room - (tail && tail + 8 * k)), left, y + h / 2 + 9 * k, numbers);
  if (folded) pen.text(folded, left + room - tail, y + h / 2 + 9 * k, { ...numbers, fill: look.theme.muted });
}

/** Draws the letter of a class on the class's colour. */
function chip(pen: Pen, mark: Mark, x: number, y: number, size: number, k: number, opacity: number, letter: string) {
  pen.rect(x, y, size, size, { fill: mark.color, radius: 4 * k, opacity });
  pen.text(letter, x + size / 2, y + size / 2 + 0.5 * k, { size: 11.5 * k, fill: mark.ink, align: "middle", bold: true, opacity });
}
