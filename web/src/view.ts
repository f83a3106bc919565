// The view: which part of a figure's world coordinates is on the screen, and at which scale.

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

export class View {
  /** The area of the screen inside the margins. */
  area = { x: 0, y: 0, w: 1, h: 1 };
  /** World coordinates of the area's top left corner. */
  x = 0;
  y = 0;
  /** Pixels per unit of the world. */
  kx = 1;
  ky = 1;
  /** Zooming and panning move the horizontal axis alone. */
  level = false;

  sx(x: number) {
    return this.area.x + (x - this.x) * this.kx;
  }

  sy(y: number) {
    return this.area.y + (y - this.y) * this.ky;
  }

  wx(px: number) {
    return this.x + (px - this.area.x) / this.kx;
  }

  wy(py: number) {
    return this.y + (py - this.area.y) / this.ky;
  }

  /**
   * Fits a world into the area.
   * @param most largest scale, the same for both axes; 0 scales each axis for itself
   */
  fit(world: Box, most: number) {
    this.kx = this.area.w / Math.max(world.w, 1e-9);
    this.ky = this.area.h / Math.max(world.h, 1e-9);
    if (most > 0) this.kx = this.ky = Math.min(this.kx, this.ky, most);
    this.x = world.x + world.w / 2 - this.area.w / 2 / this.kx;
    this.y = world.y + world.h / 2 - this.area.h / 2 / this.ky;
  }

  /** Zooms by a factor around a fixed point of the screen. */
  zoom(px: number, py: number, factor: number) {
    const x = this.wx(px);
    const y = this.wy(py);
    this.kx *= factor;
    this.x = x - (px - this.area.x) / this.kx;
    if (this.level) return;
    this.ky *= factor;
    this.y = y - (py - this.area.y) / this.ky;
  }

  /** Pans by a distance in pixels. */
  pan(dx: number, dy: number) {
    this.x -= dx / this.kx;
    if (!this.level) this.y -= dy / this.ky;
  }

  /** Centres a point of the world. */
  centre(x: number, y: number) {
    this.x = x - this.area.w / 2 / this.kx;
    if (!this.level) this.y = y - this.area.h / 2 / this.ky;
  }

  /** Reports whether a box of the world is completely on the screen. */
  holds(b: Box) {
    const a = this.area;
    const slack = 0.5; // a view that was fitted holds all, however its numbers are rounded
    return this.sx(b.x) >= a.x - slack && this.sy(b.y) >= a.y - slack && this.sx(b.x + b.w) <= a.x + a.w + slack && this.sy(b.y + b.h) <= a.y + a.h + slack;
  }

  /** Reports whether any part of a box of the world is on the screen. */
  touches(b: Box) {
    return (
      b.x + b.w >= this.x && b.y + b.h >= this.y && b.x <= this.x + this.area.w / this.kx && b.y <= this.y + this.area.h / this.ky
    );
  }
}
