// The entry point of every page; the data names the panel.
import "./page.css";
import type { PanelData } from "./data";
import { DiffPage } from "./diff";
import type { Figure } from "./figure";
import { Frame } from "./frame";
import { GraphFigure } from "./graph";
import { pageData } from "./host";
import { MemoryFigure } from "./memory";
import { RooflineFigure } from "./roofline";

const figures: Record<string, (data: PanelData) => Figure> = {
  graph: (data) => new GraphFigure(data),
  roofline: (data) => new RooflineFigure(data),
  memory: (data) => new MemoryFigure(data),
};

const data = pageData();
const figure = figures[data.kind];
if (figure) new Frame(figure, data);
else if (data.kind === "diff") new DiffPage(data);
