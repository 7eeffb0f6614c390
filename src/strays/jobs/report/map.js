// A map of many points: pan, zoom, hover, pick, select. Points are on a canvas; rings, the tip and the loop that
// selects lie over it, so that none of them makes a point be drawn again. Needs the other scripts map_*.js.
//
//   const map = new StraysMap(container, {x, y, value, mark, text, onPick, onSelect, wheel})
//
// Colours are custom properties of the container (--map-low, --map-mid, --map-high, --map-normal, --map-anomaly,
// --map-flagged, --map-ring, --map-bg, --map-text), read again when the theme changes.
"use strict";

/**
 * @typedef {object} MapOptions
 * @property {ArrayLike<number>} x places, 0 to 1
 * @property {ArrayLike<number>} y
 * @property {ArrayLike<number>} value 0 to 1, a place on the colour ramp
 * @property {ArrayLike<string>} [mark] "", "normal", "anomaly" or "flagged"
 * @property {(i: number) => string} text asked for when a point is pointed at, and shown as plain text
 * @property {(i: number) => void} [onPick] a point was clicked, tapped or entered
 * @property {(indices: number[]) => void} [onSelect] points were encircled; absent: no selecting
 * @property {string} [label] what a screen reader says of the map
 * @property {"always" | "engaged"} [wheel] "engaged" (for long pages) zooms only once the map was clicked or has the
 *     focus, or with Ctrl held
 */

class StraysMap {
  static REACH = 12; // how far from a point, in CSS pixels, still counts as on it
  static HELP = "Map of the texts. Arrow keys move it, plus and minus zoom, 0 shows all; N and P go to the next " +
    "odder or plainer text, Enter picks it, Escape lets go.";

  /**
   * @param {HTMLElement} container
   * @param {MapOptions} options
   */
  constructor(container, options) {
    this.container = container;
    this.options = options;
    this.points = new MapPoints(options.x, options.y);
    this.view = new MapView();
    this.mode = "pan";
    this.hovered = this.focused = -1;
    /** @type {Uint8Array | null} */
    this.selected = null; // 1 for every selected point; null: no selection
    this.looped = false; // whether a loop is drawn
    this.asked = 0; // the frame that was asked for
    this.stale = true; // whether the points must be drawn again
    /** @type {(() => void)[]} */
    this.undo = []; // what destroy has to do

    if (getComputedStyle(container).position === "static") container.style.position = "relative";
    container.style.contain = "layout style"; // what goes over the edge is cut off, but tips may stand out
    const all = { position: "absolute", inset: "0", width: "100%", height: "100%", borderRadius: "inherit" };
    this.base = this._make("canvas", all);
    this.base.setAttribute("aria-hidden", "true");
    this.rings = [3, 2].map((width) => this._ring(width)); // around the point in focus, and around the one pointed at
    this.over = this._make("canvas", { ...all, outlineOffset: "-3px" });
    this.over.tabIndex = 0;
    this.over.setAttribute("role", "application");
    this.over.setAttribute("aria-label", options.label || StraysMap.HELP);
    this.tip = this._tip();
    this.tools = this._tools();
    this.painter = new MapPainter(container, this.base);
    this.setMode("pan");
    this.setValues(options.value, options.mark);
    this.hands = new MapHands(this);
    this._watch();
    this._resize();
  }

  get zoom() { return this.view.zoom; }

  /**
   * @param {ArrayLike<number>} value
   * @param {ArrayLike<string>} [mark]
   */
  setValues(value, mark) {
    this.points.setValues(value, mark);
    this._ask();
  }

  /** @param {number[]} indices */
  select(indices) {
    this.selected = new Uint8Array(this.points.n);
    for (const i of indices) this.selected[i] = 1;
    this._ask();
  }

  clearSelection() {
    this.selected = null;
    this._ask();
  }

  /**
   * A ring around one point, brought into view where it is not; -1 or nothing takes the ring away.
   * @param {number | null} [i]
   */
  focus(i = -1) {
    this.focused = i === null ? -1 : i;
    if (this.focused >= 0 && !this.view.shows(this._place(this.focused), MapView.MARGIN)) {
      this.view.center = [this.points.x[this.focused], this.points.y[this.focused]];
      this._ask();
    }
    this._placeRings();
  }

  /** @param {string} mode "pan" or "select" */
  setMode(mode) {
    this.mode = mode === "select" && this.options.onSelect ? "select" : "pan";
    this.over.style.cursor = this.mode === "select" ? "crosshair" : "grab";
    // One finger scrolls the page, two move the map; but while selecting, every finger draws.
    this.over.style.touchAction = this.mode === "select" ? "none" : "pan-x pan-y";
  }

  reset() {
    this.view.reset();
    this._ask();
  }

  /**
   * @param {number} factor
   * @param {number} [px] the place that stays where it is
   * @param {number} [py]
   */
  zoomBy(factor, px = this.view.width / 2, py = this.view.height / 2) {
    this.view.zoomBy(factor, px, py);
    this._ask();
  }

  /**
   * @param {number} dx
   * @param {number} dy
   */
  panBy(dx, dy) {
    this.view.panBy(dx, dy);
    this._ask();
  }

  destroy() {
    cancelAnimationFrame(this.asked);
    this.hands.letGo();
    for (const off of this.undo) off();
    for (const made of [this.base, ...this.rings, this.over, this.tip, this.tools]) made.remove();
  }

  // ---- what it is made of ------------------------------------------------------------------------------------------

  /**
   * @template {keyof HTMLElementTagNameMap} Tag
   * @param {Tag} tag
   * @param {Partial<CSSStyleDeclaration>} style
   * @param {HTMLElement} [parent]
   */
  _make(tag, style, parent = this.container) {
    const made = parent.appendChild(document.createElement(tag));
    Object.assign(made.style, style);
    return made;
  }

  /** @param {number} width of its line */
  _ring(width) {
    return this._make("div", {
      position: "absolute", left: "0", top: "0", display: "none", borderRadius: "50%", boxSizing: "border-box",
      border: `${width}px solid var(--map-ring, #111)`, boxShadow: "0 0 0 1.5px var(--map-bg, #fff)",
      pointerEvents: "none", willChange: "transform",
    });
  }

  _tip() {
    const tip = this._make("div", {
      position: "absolute", left: "0", top: "0", display: "none", pointerEvents: "none", maxWidth: "min(24rem, 80%)",
      padding: "0.5rem 0.7rem", borderRadius: "8px", font: "inherit", fontSize: "0.8125rem", lineHeight: "1.4",
      background: "var(--map-bg, #fff)", color: "var(--map-text, #111)", overflowWrap: "anywhere",
      whiteSpace: "pre-line", boxShadow: "0 0 0 1px rgb(128 128 128 / 35%), 0 2px 8px rgb(0 0 0 / 18%)",
      unicodeBidi: "plaintext", zIndex: "2", willChange: "transform", contain: "content", maxHeight: "60%",
      overflow: "hidden",
    });
    tip.setAttribute("role", "status");
    return tip;
  }

  _tools() {
    const tools = this._make("div", { position: "absolute", right: "10px", top: "10px", display: "flex", gap: "4px" });
    /**
     * @param {string} name
     * @param {string} sign
     * @param {() => void} does
     */
    const button = (name, sign, does) => {
      const made = this._make("button", {
        width: "32px", height: "32px", border: "1px solid rgb(128 128 128 / 40%)", borderRadius: "8px", padding: "0",
        background: "var(--map-bg, #fff)", color: "var(--map-text, #111)", font: "inherit", cursor: "pointer",
      }, tools);
      made.type = "button";
      made.textContent = sign;
      made.title = name;
      made.setAttribute("aria-label", name);
      made.addEventListener("click", does);
    };
    button("Zoom in", "+", () => this.zoomBy(1.6));
    button("Zoom out", "\u2212", () => this.zoomBy(1 / 1.6));
    button("Show all", "\u2922", () => this.reset());
    return tools;
  }

  /** Draw again when the theme or the size changes. */
  _watch() {
    const again = () => { this.painter.forgetColors(); this._ask(); };
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", again);
    const themes = new MutationObserver(again);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class", "style"] });
    const sizes = new ResizeObserver(() => this._resize());
    sizes.observe(this.container);
    this.undo.push(
      () => dark.removeEventListener("change", again), () => themes.disconnect(), () => sizes.disconnect(),
    );
  }

  _resize() {
    const { view } = this;
    view.width = this.container.clientWidth || 1;
    view.height = this.container.clientHeight || 1;
    view.ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(view.width * view.ratio);
      canvas.height = Math.round(view.height * view.ratio);
    }
    this._draw(); // at once: a canvas that was resized is blank
  }

  // ---- drawing -----------------------------------------------------------------------------------------------------

  /**
   * Where a point is on the screen.
   * @param {number} i
   */
  _place(i) { return this.view.onScreen(this.points.x[i], this.points.y[i]); }

  /** Draw before the next frame, once, however often it is asked for. */
  _ask() {
    this.stale = true;
    this.wake();
  }

  /** Look at the pointer, and draw what is stale, before the next frame. */
  wake() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      if (this.stale) this._draw();
      const { pointed, loop } = this.hands;
      if (pointed) this.hover(this.hit(...pointed));
      this.hands.pointed = null;
      this._drawLoop(loop);
    });
  }

  _draw() {
    this.stale = false;
    this.painter.paint(this.points, this.selected, this.view);
    this._placeRings();
  }

  _placeRings() {
    const size = Math.round(3 * MapPainter.radius(this.points.n, this.view.zoom) + 9);
    [this.focused, this.hovered].forEach((i, k) => {
      const place = i < 0 ? null : this._place(i);
      const ring = this.rings[k].style;
      const inside = place !== null && this.view.shows(place);
      ring.display = inside ? "block" : "none";
      if (!inside) return;
      ring.width = ring.height = `${size}px`;
      ring.transform = `translate(${place[0] - size / 2}px, ${place[1] - size / 2}px)`;
    });
  }

  /**
   * The loop that is being drawn around points; nothing where there is none and was none.
   * @param {Place[]} loop
   */
  _drawLoop(loop) {
    if (!loop.length && !this.looped) return;
    this.looped = loop.length > 0;
    const pen = MapPainter.pen(this.over, false);
    const { ring } = this.painter.colors;
    const { width, height, ratio } = this.view;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.beginPath();
    for (const [px, py] of loop) pen.lineTo(px, py);
    pen.closePath();
    pen.fillStyle = MapPainter.css(ring, 0.1);
    pen.fill();
    pen.lineWidth = 1.5;
    pen.strokeStyle = MapPainter.css(ring);
    pen.stroke();
  }

  // ---- what map_hands.js asks for ----------------------------------------------------------------------------------

  /**
   * The point nearest to a place on the screen, or -1 where none is near.
   * @param {number} px
   * @param {number} py
   */
  hit(px, py) { return this.points.nearest(this.view.onMap(px, py), this.view.scale, StraysMap.REACH); }

  /**
   * To the next odder point (1) or the next plainer one (-1); first of all to the oddest.
   * @param {number} way
   */
  walk(way) {
    if (!this.points.n) return;
    this.focus(this.points.next(this.focused, way));
    this.hover(this.focused);
  }

  /**
   * Point at a point: its ring and its tip. -1 points at none.
   * @param {number} i
   */
  hover(i) {
    if (i === this.hovered) return;
    this.hovered = i;
    this.over.style.cursor = this.mode === "select" ? "crosshair" : i >= 0 ? "pointer" : "grab";
    this.tip.style.display = i < 0 ? "none" : "block";
    if (i >= 0) {
      this.tip.textContent = this.options.text(i);
      const [px, py] = this._place(i);
      const [w, h] = [this.tip.offsetWidth, this.tip.offsetHeight];
      const left = Math.max(6, Math.min(this.view.width - w - 6, px - w / 2));
      const top = py > h + 22 ? py - h - 16 : Math.min(this.view.height - h - 6, py + 16);
      this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    }
    this._placeRings();
  }
}
