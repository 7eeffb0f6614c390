// The points of a map: where they are, how odd, how marked, and which of them are near a place or inside a loop.
"use strict";

/** @typedef {[number, number]} Place a pair of coordinates: of the map (0 to 1) or of the screen (CSS pixels) */

class MapPoints {
  static STEPS = 24; // colours on the ramp
  static MARKS = ["", "normal", "flagged", "anomaly"]; // later ones are drawn on top

  /**
   * @param {ArrayLike<number>} x
   * @param {ArrayLike<number>} y
   */
  constructor(x, y) {
    this.x = Float32Array.from(x);
    this.y = Float32Array.from(y);
    this.n = this.x.length;
    this.value = new Float32Array(this.n); // 0 to 1
    this.kind = new Uint8Array(this.n); // an index into MARKS
    this.step = new Uint8Array(this.n); // a step of the ramp
    this.rank = new Uint32Array(this.n); // all points, the oddest last
    this.order = new Uint32Array(this.n); // all points as they are drawn
    // A grid over the points: those of one cell after those of another, and where each cell starts.
    this.side = Math.max(1, Math.min(256, Math.round(Math.sqrt(this.n / 2))));
    this.starts = new Uint32Array(this.side * this.side + 1);
    this.cells = new Uint32Array(this.n);
    this._fillGrid();
  }

  _fillGrid() {
    const cell = Uint32Array.from(this.x, (_, i) => this._cell(this.y[i]) * this.side + this._cell(this.x[i]));
    for (const c of cell) this.starts[c + 1] += 1;
    for (let c = 0; c < this.side * this.side; c += 1) this.starts[c + 1] += this.starts[c];
    const next = this.starts.slice();
    cell.forEach((c, i) => { this.cells[next[c]++] = i; });
  }

  /**
   * The row or column of the grid that a coordinate is in.
   * @param {number} v
   */
  _cell(v) { return Math.min(this.side - 1, Math.max(0, Math.floor(v * this.side))); }

  /**
   * @param {ArrayLike<number>} value
   * @param {ArrayLike<string>} [mark]
   */
  setValues(value, mark) {
    const { STEPS, MARKS } = MapPoints;
    this.value = Float32Array.from(value, (v) => (v >= 0 ? Math.min(1, v) : 0)); // what is no number is low
    this.kind = Uint8Array.from({ length: this.n }, (_, i) => Math.max(0, MARKS.indexOf((mark && mark[i]) || "")));
    this.step = Uint8Array.from(this.value, (v) => Math.min(STEPS - 1, Math.floor(v * STEPS)));
    const byOddness = (/** @type {number} */ i, /** @type {number} */ j) => this.value[i] - this.value[j];
    this.rank = Uint32Array.from(this.value, (_, i) => i).sort(byOddness);
    this.order = this.rank.slice().sort((i, j) => this.kind[i] - this.kind[j] || byOddness(i, j));
  }

  /**
   * The point nearest to a place of the map, or -1 where none is within reach.
   * @param {Place} place
   * @param {Place} scale pixels of the screen for one unit of the map, across and down
   * @param {number} reach in pixels
   */
  nearest([wx, wy], [sx, sy], reach) {
    let [found, nearest] = [-1, reach * reach];
    for (let row = this._cell(wy - reach / sy); row <= this._cell(wy + reach / sy); row += 1) {
      const from = this.starts[row * this.side + this._cell(wx - reach / sx)];
      const to = this.starts[row * this.side + this._cell(wx + reach / sx) + 1];
      for (let k = from; k < to; k += 1) {
        const i = this.cells[k];
        const far = ((this.x[i] - wx) * sx) ** 2 + ((this.y[i] - wy) * sy) ** 2;
        if (far < nearest || (far === nearest && found >= 0 && this.value[i] > this.value[found])) {
          [found, nearest] = [i, far];
        }
      }
    }
    return found;
  }

  /**
   * The points inside a closed loop of places of the map (an odd number of its edges lies to their left).
   * @param {Place[]} loop
   */
  inside(loop) {
    const found = [];
    for (let i = 0; i < this.n; i += 1) {
      const [px, py] = [this.x[i], this.y[i]];
      let odd = false;
      for (let k = 0, j = loop.length - 1; k < loop.length; j = k, k += 1) {
        const [[ax, ay], [bx, by]] = [loop[k], loop[j]];
        if (ay > py !== by > py && px < ax + ((bx - ax) * (py - ay)) / (by - ay)) odd = !odd;
      }
      if (odd) found.push(i);
    }
    return found;
  }

  /**
   * The point `way` places further in the ranking by oddness: 1 is the next odder one, -1 the next plainer one.
   * @param {number} from a point, or -1 to start at the oddest
   * @param {number} way
   */
  next(from, way) {
    const at = from < 0 ? this.n - (way > 0 ? 1 : 2) : this.rank.indexOf(from) + way;
    return this.rank[Math.min(this.n - 1, Math.max(0, at))];
  }
}
