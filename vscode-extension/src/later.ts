/** Does something once, when it has not been asked for again for a while. */
export class Later {
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly ms: number,
    private readonly act: () => void,
  ) {}

  ask(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.act();
    }, this.ms);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
