// What part of a map is in view: its size on the screen, its zoom and its centre.
"use strict";

class MapView {
  static MARGIN = 22; // between the outermost points and the edge, in CSS pixels
  static MOST_ZOOM = 80;

  constructor() {
    this.width = this.height = 1; // CSS pixels
    this.ratio = 1; // device pixels for a CSS pixel
    this.zoom = 1;
    /** @type {Place} */
    this.center = [0.5, 0.5]; // in the map's coordinates
  }

  /**
   * Pixels of the screen for one unit of the map, across and down.
   * @returns {Place}
   */
  get scale() {
    const across = (/** @type {number} */ size) => Math.max(1, size - 2 * MapView.MARGIN) * this.zoom;
    return [across(this.width), across(this.height)];
  }

  /**
   * Where a place of the map is on the screen.
   * @param {number} x
   * @param {number} y
   * @returns {Place}
   */
  onScreen(x, y) {
    const [sx, sy] = this.scale;
    return [this.width / 2 + (x - this.center[0]) * sx, this.height / 2 + (y - this.center[1]) * sy];
  }

  /**
   * What place of the map is at a place of the screen.
   * @param {number} px
   * @param {number} py
   * @returns {Place}
   */
  onMap(px, py) {
    const [sx, sy] = this.scale;
    return [this.center[0] + (px - this.width / 2) / sx, this.center[1] + (py - this.height / 2) / sy];
  }

  /**
   * Whether a place of the screen is in view, and not closer to the edge than this.
   * @param {Place} place
   * @param {number} [margin]
   */
  shows([px, py], margin = 0) {
    return px >= margin && py >= margin && px <= this.width - margin && py <= this.height - margin;
  }

  reset() {
    this.zoom = 1;
    this.center = [0.5, 0.5];
  }

  /**
   * @param {number} factor
   * @param {number} px the place of the screen that stays where it is
   * @param {number} py
   */
  zoomBy(factor, px, py) {
    const [wx, wy] = this.onMap(px, py);
    this.zoom = Math.min(MapView.MOST_ZOOM, Math.max(0.5, this.zoom * factor));
    const [sx, sy] = this.scale;
    this._setCenter(wx - (px - this.width / 2) / sx, wy - (py - this.height / 2) / sy);
  }

  /**
   * @param {number} dx
   * @param {number} dy
   */
  panBy(dx, dy) {
    const [sx, sy] = this.scale;
    this._setCenter(this.center[0] - dx / sx, this.center[1] - dy / sy);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  _setCenter(x, y) {
    this.center = [Math.min(1, Math.max(0, x)), Math.min(1, Math.max(0, y))];
  }
}
