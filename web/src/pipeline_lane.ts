// What a device of a pipeline does in a step, decoded from the columns of the data.
import type { PipelineLane, PlanRow } from "./data";
import { at, clamp } from "./util";

/** The classes of the kinds of tasks, in the order of the legend. */
export const taskClasses = ["forward", "backward", "weight"];

const kindOf = new Map([["F", 0], ["B", 1], ["W", 2]]);

export class Lane {
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly stages: number[];

  /** @param total the time of the step in nanoseconds */
  constructor(readonly data: PipelineLane, readonly total: number) {
    const gap = data.gap_ns ?? [];
    const run = data.run_ns ?? [];
    this.stages = data.stages ?? [];
    this.start = new Float64Array(gap.length);
    this.end = new Float64Array(gap.length);
    let now = 0;
    for (let i = 0; i < gap.length; i++) {
      this.start[i] = now + at(gap, i);
      now = this.end[i] = at(this.start, i) + (run[i] ?? 0);
    }
  }

  get count() {
    return this.start.length;
  }

  /** The kind of a task: 0 forward, 1 backward, 2 the gradient of weights. */
  kind(i: number) {
    return kindOf.get(this.data.kinds[i] ?? "F") ?? 0;
  }

  micro(i: number) {
    return this.data.microbatch?.[i] ?? 0;
  }

  stage(i: number) {
    return this.data.stage?.[i] ?? this.stages[0] ?? 0;
  }

  /** The first task that ends after a time; count if there is none. */
  after(t: number) {
    let lo = 0;
    let hi = this.count;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (at(this.end, mid) > t) hi = mid;
      else lo = mid + 1;
    }
    return lo;
  }

  /** The task that runs at a time; -1 if the device is idle. */
  when(t: number) {
    const i = this.after(t);
    return i < this.count && at(this.start, i) <= t ? i : -1;
  }

  /** The share that each kind has of the time from one point to another. */
  shares(from: number, to: number): [number, number, number] {
    const sums: [number, number, number] = [0, 0, 0];
    if (to <= from) return sums;
    const parts = this.data.shares;
    if (parts) {
      const lists = [parts.forward_percent ?? [], parts.backward_percent ?? [], parts.weight_percent ?? []];
      const n = at(lists, 0).length;
      const long = this.total / n;
      for (let i = clamp(Math.floor(from / long), 0, n); i < n && i * long < to; i++) {
        const both = Math.min(to, (i + 1) * long) - Math.max(from, i * long);
        lists.forEach((list, kind) => { sums[kind] = (sums[kind] ?? 0) + ((list[i] ?? 0) / 100) * Math.max(0, both); });
      }
    } else {
      for (let i = this.after(from); i < this.count && at(this.start, i) < to; i++) {
        const kind = this.kind(i);
        sums[kind] = (sums[kind] ?? 0) + Math.min(to, at(this.end, i)) - Math.max(from, at(this.start, i));
      }
    }
    return [sums[0] / (to - from), sums[1] / (to - from), sums[2] / (to - from)];
  }
}

/** A plan with its rows. A plan without a pipeline has none: its devices all do the same. */
export interface Block {
  plan: PlanRow;
  lanes: Lane[];
  total: number;
}

/** A place in the picture: a task of a device, a device at a time, or a part of a plan without a pipeline. */
export interface Spot {
  block: number;
  lane: number;
  /** -1 where the device is idle or its tasks are not known one by one. */
  task: number;
  time: number;
}

/** Above the rows of each plan. */
export const titleHeight = 24;

/** The plans that are drawn, one below the other, and their measures. */
export interface Pipelines {
  readonly blocks: Block[];
  readonly length: number;
  readonly rowHeight: number;
  blockHeight(b: Block): number;
  /** The top of the rows of each plan. */
  tops(): number[];
}
