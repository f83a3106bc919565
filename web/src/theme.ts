// Colours: those of VS Code in a web view, else light or dark as the system prefers. Classes of ops have the colours of Okabe
// and Ito, which colour-blind readers can tell apart, and a shape and a letter each, as have the parts of a plan.

export interface Theme {
  dark: boolean;
  background: string;
  /** Background of cards and labels. */
  surface: string;
  text: string;
  muted: string;
  line: string;
  edge: string;
  /** Colour of the selection. */
  accent: string;
  warning: string;
  /** Mark of each class, and of each part of a plan. */
  marks: Record<string, Mark>;
}

/** The appearance of a class of ops. */
export interface Mark {
  name: string;
  letter: string;
  shape: string;
  color: string;
  /** Colour of the letter, on the class's colour. */
  ink: string;
  /** Fill colour of nodes. */
  fill: string;
}

export const markTable: [string, string, string, string, string, string, string, string][] = [
  // class, name, letter, shape, colour and fill on light, on dark
  ["contraction", "contraction", "C", "box", "#0072b2", "#dcecf7", "#56a8e0", "#17344a"],
  ["normalization", "normalization", "N", "hexagon", "#b0568c", "#f7e6f0", "#dd8fbd", "#46293b"],
  ["elementwise", "element-wise", "E", "pill", "#b87503", "#fcefd6", "#e9a93a", "#453312"],
  ["movement", "movement", "M", "slant", "#00805e", "#d9f1e9", "#2fbf97", "#123d32"],
  ["communication", "communication", "↔", "pill", "#b04a00", "#fbe6d9", "#f08a4b", "#4a2a14"],
  ["compute", "compute", "C", "box", "#0072b2", "#dcecf7", "#56a8e0", "#17344a"],
  ["forward", "forward", "F", "box", "#0072b2", "#dcecf7", "#56a8e0", "#17344a"],
  ["backward", "backward", "B", "box", "#b04a00", "#fbe6d9", "#f08a4b", "#4a2a14"],
  ["weight", "gradient of weights", "W", "box", "#00805e", "#d9f1e9", "#2fbf97", "#123d32"],
  ["once", "once in a step", "1", "box", "#b0568c", "#f7e6f0", "#dd8fbd", "#46293b"],
  ["idle", "bubble", "–", "box", "#5d6672", "#eef1f4", "#9aa5b4", "#2b323b"],
  ["unknown", "unknown", "?", "box", "#6b6b6b", "#ececec", "#a3a3a3", "#383838"],
  ["", "arguments and results", "·", "tag", "#5d6672", "#eef1f4", "#9aa5b4", "#2b323b"],
];

function marksOf(dark: boolean): Record<string, Mark> {
  const marks: Record<string, Mark> = {};
  for (const [key, name, letter, shape, light, lightFill, color, fill] of markTable) {
    marks[key] = dark
      ? { name, letter, shape, color, ink: "#10151b", fill }
      : { name, letter, shape, color: light, ink: "#ffffff", fill: lightFill };
  }
  return marks;
}

export function markOf(theme: Theme, cls: string): Mark {
  return theme.marks[cls] ?? (theme.marks["unknown"] as Mark);
}

export const paperTheme: Theme = {
  dark: false,
  background: "#ffffff",
  surface: "#ffffff",
  text: "#15191e",
  muted: "#566070",
  line: "#d5dae0",
  edge: "#8693a3",
  accent: "#15191e",
  warning: "#b3261e",
  marks: marksOf(false),
};

/** Marks the document as light or dark and returns the resulting colours. */
export function readTheme(): Theme {
  const body = document.body.classList;
  const light = body.contains("vscode-light") || body.contains("vscode-high-contrast-light");
  const dark =
    !light &&
    (body.contains("vscode-dark") || body.contains("vscode-high-contrast") || matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(name).trim();
  const marks = marksOf(dark);
  for (const [key, mark] of Object.entries(marks)) {
    document.documentElement.style.setProperty(`--class-${key || "value"}`, mark.color);
    document.documentElement.style.setProperty(`--class-ink-${key || "value"}`, mark.ink);
  }
  return {
    dark,
    background: value("--background"),
    surface: value("--surface"),
    text: value("--text"),
    muted: value("--muted"),
    line: value("--line"),
    edge: value("--edge"),
    accent: value("--accent"),
    warning: value("--warning"),
    marks,
  };
}

export function watchTheme(changed: () => void) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  // VS Code changes the body's classes with every theme. It also changes variables in the root's style, but readTheme writes
  // there as well, so only the body is observed.
  new MutationObserver(changed).observe(document.body, { attributes: true, attributeFilter: ["class", "data-vscode-theme-id"] });
}
