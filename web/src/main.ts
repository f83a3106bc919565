// The entry point of every page; the data names the panel.
import "./page.css";
import { DiffPage } from "./diff";
import { Frame } from "./frame";
import { GraphFigure } from "./graph";
import { HistoryPage } from "./history";
import { pageData } from "./host";
import { MemoryFigure } from "./memory";
import { MeshFigure } from "./mesh";
import { PatternFigure } from "./pattern";
import { PlansPage } from "./plans";
import { RooflineFigure } from "./roofline";
import { TimelineFigure } from "./timeline";

const data = pageData();
switch (data.kind) {
  case "graph":
    new Frame((d) => new GraphFigure(d), data);
    break;
  case "roofline":
    new Frame((d) => new RooflineFigure(d), data);
    break;
  case "memory":
    new Frame((d) => new MemoryFigure(d), data);
    break;
  case "mesh":
    new Frame((d) => new MeshFigure(d), data);
    break;
  case "timeline":
    new Frame((d) => new TimelineFigure(d), data);
    break;
  case "pattern":
    new Frame((d) => new PatternFigure(d), data);
    break;
  case "diff":
    new DiffPage(data);
    break;
  case "history":
    new HistoryPage(data);
    break;
  case "plans":
    new PlansPage(data);
    break;
}
