// Paints the points of a map. Every colour and mark is drawn once, as a stamp, and stamped into one buffer for each
// point: several times faster than asking the canvas to draw each.
"use strict";

/** @typedef {number[]} Rgb */
/** @typedef {{ offset: Uint32Array, color: Uint32Array }} Stamp the pixels of one point */

class MapPainter {
  static FAINT = 0.16; // how much is left of points that are not among the selected
  /** @type {Record<string, string>} */
  static COLORS = { // unless custom properties of the container say otherwise
    low: "#c9d6e8", mid: "#6f8fc4", high: "#16264f", normal: "#1b7f5c", anomaly: "#b3261e", flagged: "#d9730d",
    ring: "#111111", bg: "#ffffff", text: "#111111",
  };

  /**
   * @param {HTMLElement} container
   * @param {HTMLCanvasElement} canvas
   */
  constructor(container, canvas) {
    this.container = container;
    this.canvas = canvas;
    /** @type {Record<string, Rgb> | null} */
    this._colors = null;
    /** @type {{ list: Stamp[], size: number, radius: number, row: number, across: number } | null} */
    this._stamps = null;
    /** @type {ImageData | null} */
    this._buffer = null;
  }

  /** Read the colours again: the theme has changed. */
  forgetColors() {
    this._colors = null;
    this._stamps = null;
  }

  /** The colours by name. */
  get colors() {
    if (this._colors) return this._colors;
    const style = getComputedStyle(this.container);
    const pen = MapPainter.pen(Object.assign(document.createElement("canvas"), { width: 1, height: 1 }));
    /** @param {string} name */
    const rgb = (name) => {
      pen.fillStyle = MapPainter.COLORS[name];
      pen.fillStyle = style.getPropertyValue(`--map-${name}`).trim() || MapPainter.COLORS[name];
      pen.fillRect(0, 0, 1, 1);
      return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    this._colors = Object.fromEntries(Object.keys(MapPainter.COLORS).map((name) => [name, rgb(name)]));
    return this._colors;
  }

  /**
   * How large a point is, in CSS pixels.
   * @param {number} n how many points there are
   * @param {number} zoom
   */
  static radius(n, zoom) {
    const small = n > 8000 ? 2.3 : n > 2000 ? 3 : n > 300 ? 3.8 : 5;
    return Math.min(9, small * Math.max(1, zoom) ** 0.33);
  }

  /**
   * @param {MapPoints} points
   * @param {Uint8Array | null} selected 1 for every selected point; null: no selection
   * @param {MapView} view
   */
  paint(points, selected, view) {
    const { list, size, row } = this._stampsFor(MapPainter.radius(points.n, view.zoom), view.ratio);
    const { x, y, step, kind } = points;
    const [W, H] = [this.canvas.width, this.canvas.height];
    if (!this._buffer || this._buffer.width !== row || this._buffer.height !== H + 2 * size) {
      this._buffer = new ImageData(row, H + 2 * size);
    }
    const out = new Uint32Array(this._buffer.data.buffer);
    const [r, g, b] = this.colors.bg;
    out.fill(0xff000000 | (b << 16) | (g << 8) | r);
    const [ax, ay] = view.scale.map((one) => one * view.ratio);
    const bx = W / 2 - view.center[0] * ax + size / 2; // where the stamp's corner falls in the wider buffer
    const by = H / 2 - view.center[1] * ay + size / 2;
    for (const chosen of selected ? [0, 1] : [null]) { // the selected on top of the faint
      for (const i of points.order) {
        if (selected && selected[i] !== chosen) continue;
        const px = Math.round(ax * x[i] + bx);
        const py = Math.round(ay * y[i] + by);
        if (px < 0 || py < 0 || px > W + size || py > H + size) continue;
        const opacity = chosen === 0 ? MapPainter.FAINT : 1;
        MapPainter._stamp(out, py * row + px, list[kind[i] * MapPoints.STEPS + step[i]], opacity);
      }
    }
    MapPainter.pen(this.canvas).putImageData(this._buffer, -size, -size);
  }

  /**
   * Every colour and mark as the pixels it covers: where, which colour, how opaque.
   * @param {number} points their radius in CSS pixels
   * @param {number} ratio
   */
  _stampsFor(points, ratio) {
    const { STEPS, MARKS } = MapPoints;
    const radius = Math.round(points * ratio * 4) / 4;
    const across = this.canvas.width;
    if (this._stamps && this._stamps.radius === radius && this._stamps.across === across) return this._stamps;
    const colors = this.colors;
    const marked = Math.max(radius, 3.1 * ratio); // few among many must still be seen
    const size = 2 * Math.ceil(marked * 1.8 + ratio) + 1;
    const row = across + 2 * size; // the buffer is wider than the canvas by a point on each side, so nothing is cut
    const sheet = { width: size * STEPS, height: size * MARKS.length };
    const pen = MapPainter.pen(Object.assign(document.createElement("canvas"), sheet));
    const list = [];
    for (let kind = 0; kind < MARKS.length; kind += 1) {
      for (let step = 0; step < STEPS; step += 1) {
        const [cx, cy] = [(step + 0.5) * size, (kind + 0.5) * size];
        pen.beginPath();
        if (MARKS[kind] === "anomaly") MapPainter._square(pen, cx, cy, marked * 1.5, 0); // a diamond
        else if (MARKS[kind] === "normal") MapPainter._square(pen, cx, cy, marked * 1.15, Math.PI / 4);
        else pen.arc(cx, cy, kind ? marked : radius, 0, 2 * Math.PI);
        pen.fillStyle = this._ramp(step);
        pen.fill();
        pen.lineWidth = kind ? 0.48 * marked : 0.2 * radius;
        pen.strokeStyle = MapPainter.css(kind ? colors[MARKS[kind]] : colors.bg);
        if (kind || radius >= 3 * ratio) pen.stroke(); // an edge would leave nothing of a small dot
        list.push(MapPainter._pixels(pen.getImageData(step * size, kind * size, size, size), row));
      }
    }
    this._stamps = { list, size, radius, row, across };
    return this._stamps;
  }

  /**
   * A colour of the ramp.
   * @param {number} step
   */
  _ramp(step) {
    const { low, mid, high } = this.colors;
    const t = (2 * step) / (MapPoints.STEPS - 1);
    const [from, to, part] = t < 1 ? [low, mid, t] : [mid, high, t - 1];
    return MapPainter.css(from.map((c, k) => c + part * (to[k] - c)));
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {boolean} [pixels] whether pixels are read or put, rather than shapes drawn
   */
  static pen(canvas, pixels = true) {
    const pen = canvas.getContext("2d", pixels ? { willReadFrequently: true } : undefined);
    if (!pen) throw new Error("this browser has no canvas");
    return pen;
  }

  /**
   * @param {Rgb} rgb
   * @param {number} [alpha]
   */
  static css(rgb, alpha = 1) {
    return `rgb(${rgb.map(Math.round).join(" ")} / ${alpha})`;
  }

  /**
   * Outline a square.
   * @param {CanvasRenderingContext2D} pen
   * @param {number} cx
   * @param {number} cy
   * @param {number} radius from its centre to a corner
   * @param {number} turn the angle of its first corner
   */
  static _square(pen, cx, cy, radius, turn) {
    for (let k = 0; k < 4; k += 1) {
      const angle = turn + (Math.PI * k) / 2;
      pen.lineTo(cx + radius * Math.cos(angle), cy + radius * Math.sin(angle));
    }
    pen.closePath();
  }

  /**
   * The pixels of a picture that are not clear, as offsets into a buffer with rows of a given length.
   * @param {ImageData} picture
   * @param {number} row
   * @returns {Stamp}
   */
  static _pixels(picture, row) {
    const colors = new Uint32Array(picture.data.buffer);
    const seen = [...colors.keys()].filter((k) => colors[k] >>> 24);
    return {
      offset: Uint32Array.from(seen, (k) => Math.floor(k / picture.width) * row + (k % picture.width)),
      color: Uint32Array.from(seen, (k) => colors[k]),
    };
  }

  /**
   * Put a point's pixels into a buffer.
   * @param {Uint32Array} out
   * @param {number} at where its corner is
   * @param {Stamp} stamp
   * @param {number} opacity
   */
  static _stamp(out, at, { offset, color }, opacity) {
    for (let k = 0; k < offset.length; k += 1) {
      const [over, place] = [color[k], at + offset[k]];
      const alpha = (over >>> 24) * opacity;
      if (alpha === 255) {
        out[place] = over;
        continue;
      }
      const [under, t] = [out[place], alpha / 255];
      const mix = (/** @type {number} */ shift) => {
        const from = (under >>> shift) & 255;
        return (from + t * (((over >>> shift) & 255) - from)) << shift;
      };
      out[place] = 0xff000000 | (mix(16) & 0xff0000) | (mix(8) & 0xff00) | (mix(0) & 0xff);
    }
  }
}
