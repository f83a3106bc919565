// The JSON of package report, as analysis/report/data.go describes it.

export interface Place {
  line: number;
  column: number;
  end_column: number;
}

export interface Cost {
  flop: number | null;
  flop_label: string;
  read_bytes: number | null;
  read_label: string;
  written_bytes: number | null;
  written_label: string;
  moved_bytes: number | null;
  moved_label: string;
  time_ns: number | null;
  time_label: string;
  bound: string;
  intensity_flop_per_byte: number | null;
  intensity_label: string;
  why?: string[];
}

export interface Totals extends Cost {
  minimum_bytes: number | null;
  minimum_label: string;
  waste_bytes: number | null;
  waste_label: string;
  peak_bytes: number | null;
  peak_label: string;
  ops: number;
  unknown_ops: number;
}

export interface FunctionEntry extends Place {
  name: string;
  moved_label: string;
  time_label: string;
}

export interface Target {
  name: string;
  title: string;
  bandwidth_bytes_per_s: number;
  bandwidth_label: string;
  memory_bytes: number;
  memory_label: string;
  peaks: { unit: string; elem: string; flop_per_s: number; label: string }[] | null;
}

export interface PanelData {
  kind: string;
  title: string;
  file: string;
  function: string;
  functions: FunctionEntry[] | null;
  target: Target;
  totals: Totals;
  unbound?: string[];
  graph?: GraphData;
  roofline?: RooflineData;
  memory?: MemoryData;
  diff?: DiffData;
}

export interface GraphNode extends Place, Cost {
  id: number;
  parent: number;
  kind: string;
  op: string;
  result: string;
  detail: string;
  type: string;
  class: string;
  region: string;
  idle: boolean;
  rank: number;
  trips: number | null;
  trips_label: string;
  time_share: number;
}

export interface GraphEdge extends Place {
  from: number;
  to: number;
  value: string;
  type: string;
  size_bytes: number | null;
  size_label: string;
  moved_bytes: number | null;
  moved_label: string;
  back: boolean;
}

export interface GraphData {
  nodes: GraphNode[] | null;
  edges: GraphEdge[] | null;
}

export interface Roof {
  unit: string;
  elem: string;
  flop_per_s: number;
  label: string;
  ridge_flop_per_byte: number;
  ridge_label: string;
}

export interface Dot extends Place, Cost {
  op: string;
  result: string;
  detail: string;
  class: string;
  roof: number;
  achieved_flop_per_s: number | null;
  achieved_label: string;
  roof_share: number;
  roof_label: string;
  time_share: number;
  time_share_label: string;
  runs: number;
  reason: string;
}

export interface RooflineData {
  roofs: Roof[] | null;
  dots: Dot[] | null;
  rest: Dot[] | null;
  min_x: number;
  max_x: number;
  min_y: number;
  max_y: number;
}

export interface MemoryBuffer extends Place {
  id: number;
  kind: string;
  name: string;
  values: string[] | null;
  op: string;
  class: string;
  type: string;
  first_step: number;
  last_step: number;
  start_ns: number;
  end_ns: number;
  offset_bytes: number;
  offset_label: string;
  bytes: number;
  bytes_label: string;
  at_peak: boolean;
}

export interface MemoryStep extends Place {
  op: string;
  result: string;
  class: string;
  start_ns: number;
  end_ns: number;
  time_label: string;
  live_bytes: number;
  live_label: string;
}

export interface MemoryData {
  reason: string;
  buffers: MemoryBuffer[] | null;
  steps: MemoryStep[] | null;
  duration_ns: number;
  peak_bytes: number;
  peak_label: string;
  bound_bytes: number;
  bound_label: string;
  over_bytes: number;
  over_label: string;
  over_share_label: string;
  peak_step: number;
  peak_ns: number;
}

export interface Delta {
  old: number | null;
  new: number | null;
  change: number | null;
  old_label: string;
  new_label: string;
  change_label: string;
  percent_label: string;
}

export interface Deltas {
  flop: Delta;
  read_bytes: Delta;
  written_bytes: Delta;
  moved_bytes: Delta;
  time_ns: Delta;
}

export interface OpDiff extends Place, Deltas {
  status: string;
  op: string;
  old_op: string;
  result: string;
  old_result: string;
  class: string;
  depth: number;
  old_place: Place;
}

export interface FunctionDiff extends Place, Deltas {
  name: string;
  status: string;
  old_place: Place;
  minimum_bytes: Delta;
  waste_bytes: Delta;
  peak_bytes: Delta;
  same_ops: number;
  ops: OpDiff[] | null;
}

export interface DiffData {
  old: string;
  new: string;
  same: boolean;
  functions: FunctionDiff[] | null;
}
