// What part of a figure is on the screen: a world of its own coordinates, moved and scaled.

class View {
  constructor() {
    /** The place on the screen, within the margins. */
    this.area = { x: 0, y: 0, w: 1, h: 1 };
    /** World coordinates at the area's left top. */
    this.x = 0;
    this.y = 0;
    /** Pixels per unit of the world. */
    this.kx = 1;
    this.ky = 1;
  }

  /** @param {number} x */
  sx(x) {
    return this.area.x + (x - this.x) * this.kx;
  }

  /** @param {number} y */
  sy(y) {
    return this.area.y + (y - this.y) * this.ky;
  }

  /** @param {number} px */
  wx(px) {
    return this.x + (px - this.area.x) / this.kx;
  }

  /** @param {number} py */
  wy(py) {
    return this.y + (py - this.area.y) / this.ky;
  }

  /**
   * Shows all of a world.
   * @param {Box} world
   * @param {number} most pixels per unit, with the same scale both ways; 0: each way for itself
   */
  fit(world, most) {
    this.kx = this.area.w / Math.max(world.w, 1e-9);
    this.ky = this.area.h / Math.max(world.h, 1e-9);
    if (most > 0) this.kx = this.ky = Math.min(this.kx, this.ky, most);
    this.x = world.x + world.w / 2 - this.area.w / 2 / this.kx;
    this.y = world.y + world.h / 2 - this.area.h / 2 / this.ky;
  }

  /**
   * @param {number} px fixed point on the screen
   * @param {number} py
   * @param {number} factor
   */
  zoom(px, py, factor) {
    const x = this.wx(px);
    const y = this.wy(py);
    this.kx *= factor;
    this.ky *= factor;
    this.x = x - (px - this.area.x) / this.kx;
    this.y = y - (py - this.area.y) / this.ky;
  }

  /**
   * @param {number} dx in pixels
   * @param {number} dy
   */
  pan(dx, dy) {
    this.x -= dx / this.kx;
    this.y -= dy / this.ky;
  }

  /**
   * @param {number} x of the world
   * @param {number} y
   */
  centre(x, y) {
    this.x = x - this.area.w / 2 / this.kx;
    this.y = y - this.area.h / 2 / this.ky;
  }

  /**
   * Whether a box of the world is on the screen, all of it.
   * @param {Box} b
   */
  holds(b) {
    const a = this.area;
    return this.sx(b.x) >= a.x && this.sy(b.y) >= a.y && this.sx(b.x + b.w) <= a.x + a.w && this.sy(b.y + b.h) <= a.y + a.h;
  }

  /**
   * Whether any of a box of the world is on the screen.
   * @param {Box} b
   */
  touches(b) {
    return (
      b.x + b.w >= this.x && b.y + b.h >= this.y && b.x <= this.x + this.area.w / this.kx && b.y <= this.y + this.area.h / this.ky
    );
  }
}
