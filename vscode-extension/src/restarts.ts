/** Limits restarts of a crashed server to a number in a window of time. */
export class RestartBudget {
  private crashes: number[] = [];

  constructor(
    private readonly limit: number,
    private readonly windowMs: number,
    private readonly now: () => number = Date.now,
  ) {}

  /** Records a crash and reports whether to restart. */
  crashed(): boolean {
    const now = this.now();
    this.crashes = this.crashes.filter((t) => now - t < this.windowMs);
    this.crashes.push(now);
    return this.crashes.length <= this.limit;
  }

  /** Clears the record, as when the user restarts the server. */
  reset(): void {
    this.crashes = [];
  }
}
