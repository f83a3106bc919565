/** Allows a crashed server a few restarts in a window of time, so that one that always dies is not restarted for ever. */
export class RestartBudget {
  private crashes: number[] = [];

  constructor(
    private readonly limit: number,
    private readonly windowMs: number,
    private readonly now: () => number = Date.now,
  ) {}

  /** Records a crash and says whether to restart. */
  crashed(): boolean {
    const now = this.now();
    this.crashes = this.crashes.filter((t) => now - t < this.windowMs);
    this.crashes.push(now);
    return this.crashes.length <= this.limit;
  }

  /** Forgets past crashes, as when a person restarts the server. */
  reset(): void {
    this.crashes = [];
  }
}
