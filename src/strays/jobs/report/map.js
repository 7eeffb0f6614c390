// A map of many points: pan, zoom, hover, pick, select. Points are on a canvas; rings, the tip and the loop that selects
// lie over it, so that none of them makes a point be drawn again.
//
//   const map = new StraysMap(container, {x, y, value, mark, text, onPick, onSelect, wheel})
//
// x, y: places, 0 to 1. value: 0 to 1, a place on the colour ramp. mark: "", "normal", "anomaly" or "flagged".
// text(i) is asked for when a point is pointed at, and shown as plain text. onPick(i): a point was clicked, tapped or
// entered. onSelect(indices): points were encircled (absent: no selecting). wheel: "always" zooms, "engaged" (for long
// pages) zooms only once the map was clicked or has the focus, or with Ctrl held.
// Colours are custom properties of the container (--map-low, --map-mid, --map-high, --map-normal, --map-anomaly,
// --map-flagged, --map-ring, --map-bg, --map-text), read again when the theme changes.
(() => {
  "use strict";

  const STEPS = 24; // colours on the ramp
  const REACH = 12; // how far from a point, in CSS pixels, still counts as on it
  const MARGIN = 22; // between the outermost points and the edge
  const MOST_ZOOM = 80;
  const A_CLICK = 5; // a pointer that moved less did not drag
  const FAINT = 0.16; // how much is left of points that are not among the selected
  const MARKS = ["", "normal", "flagged", "anomaly"]; // later ones are drawn on top
  const COLORS = {
    low: "#c9d6e8", mid: "#6f8fc4", high: "#16264f", normal: "#1b7f5c", anomaly: "#b3261e", flagged: "#d9730d",
    ring: "#111111", bg: "#ffffff", text: "#111111",
  };
  const HELP = "Map of the texts. Arrow keys move it, plus and minus zoom, 0 shows all; N and P go to the next odder " +
    "or plainer text, Enter picks it, Escape lets go.";

  class StraysMap {
    constructor(container, options) {
      this.container = container;
      this.options = options;
      this.x = Float32Array.from(options.x);
      this.y = Float32Array.from(options.y);
      this.n = this.x.length;
      this.mode = "pan";
      this.hovered = this.focused = -1;
      this.selected = null; // or a Uint8Array with 1 for every selected point
      this.loop = []; // what is being encircled, in CSS pixels
      this.pointers = new Map();
      this.undo = [];
      this._build();
      this._index();
      this.setValues(options.value, options.mark);
      this._listen();
      this.reset();
      this._resize();
    }

    setValues(value, mark) {
      this.value = Float32Array.from(value, (v) => (v >= 0 ? Math.min(1, v) : 0)); // what is no number is low
      this.kind = Uint8Array.from({ length: this.n }, (_, i) => Math.max(0, MARKS.indexOf((mark && mark[i]) || "")));
      this.step = Uint8Array.from(this.value, (v) => Math.min(STEPS - 1, Math.floor(v * STEPS)));
      const byOddness = (i, j) => this.value[i] - this.value[j];
      this.rank = Uint32Array.from(this.value, (_, i) => i).sort(byOddness);
      this.order = this.rank.slice().sort((i, j) => this.kind[i] - this.kind[j] || byOddness(i, j));
      this._ask();
    }

    select(indices) {
      this.selected = new Uint8Array(this.n);
      for (const i of indices) this.selected[i] = 1;
      this._ask();
    }

    clearSelection() {
      this.selected = null;
      this._ask();
    }

    /** A ring around one point, brought into view where it is not; -1 or nothing takes the ring away. */
    focus(i = -1) {
      this.focused = i === null ? -1 : i;
      if (this.focused >= 0) {
        const [px, py] = this._place(this.focused);
        if (px < MARGIN || py < MARGIN || px > this.width - MARGIN || py > this.height - MARGIN) {
          this.center = [this.x[this.focused], this.y[this.focused]];
          this._ask();
        }
      }
      this._placeRings();
    }

    setMode(mode) {
      this.mode = mode === "select" && this.options.onSelect ? "select" : "pan";
      this.over.style.cursor = this.mode === "select" ? "crosshair" : "grab";
      // One finger scrolls the page, two move the map; but while selecting, every finger draws.
      this.over.style.touchAction = this.mode === "select" ? "none" : "pan-x pan-y";
    }

    reset() {
      this.zoom = 1;
      this.center = [0.5, 0.5];
      this._ask();
    }

    zoomBy(factor, px = this.width / 2, py = this.height / 2) {
      const [wx, wy] = this._world(px, py);
      this.zoom = Math.min(MOST_ZOOM, Math.max(0.5, this.zoom * factor));
      this.center = [wx - (px - this.width / 2) / this._sx(), wy - (py - this.height / 2) / this._sy()];
      this._clamp();
    }

    panBy(dx, dy) {
      this.center = [this.center[0] - dx / this._sx(), this.center[1] - dy / this._sy()];
      this._clamp();
    }

    destroy() {
      cancelAnimationFrame(this.asked);
      for (const off of this.undo) off();
      for (const made of [this.base, ...this.rings, this.over, this.tip, this.tools]) made.remove();
    }

    // ---- what it is made of ----------------------------------------------------------------------------------------

    _build() {
      const make = (tag, style, parent = this.container) => {
        const made = parent.appendChild(document.createElement(tag));
        Object.assign(made.style, style);
        return made;
      };
      if (getComputedStyle(this.container).position === "static") this.container.style.position = "relative";
      const all = { position: "absolute", inset: "0", width: "100%", height: "100%", borderRadius: "inherit" };
      this.base = make("canvas", all);
      this.base.setAttribute("aria-hidden", "true");
      this.rings = [3, 2].map((width) => make("div", { // around the point in focus, and around the one pointed at
        position: "absolute", left: "0", top: "0", display: "none", borderRadius: "50%", boxSizing: "border-box",
        border: `${width}px solid var(--map-ring, #111)`, boxShadow: "0 0 0 1.5px var(--map-bg, #fff)",
        pointerEvents: "none", willChange: "transform",
      }));
      // What goes over the edge is cut off, but tips may stand out.
      this.container.style.contain = "layout style";
      this.over = make("canvas", { ...all, outlineOffset: "-3px" });
      this.over.tabIndex = 0;
      this.over.setAttribute("role", "application");
      this.over.setAttribute("aria-label", this.options.label || HELP);
      this.tip = make("div", {
        position: "absolute", left: "0", top: "0", display: "none", pointerEvents: "none", maxWidth: "min(24rem, 80%)",
        padding: "0.5rem 0.7rem", borderRadius: "8px", font: "inherit", fontSize: "0.8125rem", lineHeight: "1.4",
        background: "var(--map-bg, #fff)", color: "var(--map-text, #111)", overflowWrap: "anywhere",
        whiteSpace: "pre-line", boxShadow: "0 0 0 1px rgb(128 128 128 / 35%), 0 2px 8px rgb(0 0 0 / 18%)",
        unicodeBidi: "plaintext", zIndex: "2", willChange: "transform", contain: "content", maxHeight: "60%", overflow: "hidden",
      });
      this.tip.setAttribute("role", "status");
      this.tools = make("div", { position: "absolute", right: "10px", top: "10px", display: "flex", gap: "4px" });
      const button = (name, sign, does) => {
        const made = make("button", {
          width: "32px", height: "32px", border: "1px solid rgb(128 128 128 / 40%)", borderRadius: "8px", padding: "0",
          background: "var(--map-bg, #fff)", color: "var(--map-text, #111)", font: "inherit", cursor: "pointer",
        }, this.tools);
        made.type = "button";
        made.textContent = sign;
        made.title = name;
        made.setAttribute("aria-label", name);
        made.addEventListener("click", does);
      };
      button("Zoom in", "+", () => this.zoomBy(1.6));
      button("Zoom out", "\u2212", () => this.zoomBy(1 / 1.6));
      button("Show all", "\u2922", () => this.reset());
      this.setMode("pan");
    }

    _listen() {
      const on = (target, name, does, how) => {
        target.addEventListener(name, does, how);
        this.undo.push(() => target.removeEventListener(name, does, how));
      };
      on(this.over, "pointerdown", (event) => this._down(event));
      on(this.over, "pointermove", (event) => this._move(event));
      on(this.over, "pointerup", (event) => this._up(event));
      on(this.over, "pointercancel", (event) => this._up(event, true));
      on(this.over, "pointerleave", () => this._leave());
      on(this.over, "wheel", (event) => this._wheel(event), { passive: false });
      on(this.over, "dblclick", (event) => this.zoomBy(2, event.offsetX, event.offsetY));
      on(this.over, "keydown", (event) => this._key(event));
      on(this.over, "blur", () => { this.engaged = false; this._hover(-1); });
      const again = () => { this.colors = null; this._ask(); };
      on(matchMedia("(prefers-color-scheme: dark)"), "change", again);
      const themes = new MutationObserver(again);
      themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class", "style"] });
      const sizes = new ResizeObserver(() => this._resize());
      sizes.observe(this.container);
      this.undo.push(() => themes.disconnect(), () => sizes.disconnect());
    }

    _resize() {
      this.width = this.container.clientWidth || 1;
      this.height = this.container.clientHeight || 1;
      this.ratio = window.devicePixelRatio || 1;
      for (const canvas of [this.base, this.over]) {
        canvas.width = Math.round(this.width * this.ratio);
        canvas.height = Math.round(this.height * this.ratio);
      }
      this._draw(); // at once: a canvas that was resized is blank
    }

    // ---- places ----------------------------------------------------------------------------------------------------

    _sx() { return Math.max(1, this.width - 2 * MARGIN) * this.zoom; }

    _sy() { return Math.max(1, this.height - 2 * MARGIN) * this.zoom; }

    _place(i) {
      return [
        this.width / 2 + (this.x[i] - this.center[0]) * this._sx(),
        this.height / 2 + (this.y[i] - this.center[1]) * this._sy(),
      ];
    }

    _world(px, py) {
      return [
        this.center[0] + (px - this.width / 2) / this._sx(),
        this.center[1] + (py - this.height / 2) / this._sy(),
      ];
    }

    _clamp() {
      this.center = this.center.map((c) => Math.min(1, Math.max(0, c)));
      this._ask();
    }

    /** A grid over the points: which points lie in which cell, one after another. */
    _index() {
      this.side = Math.max(1, Math.min(256, Math.round(Math.sqrt(this.n / 2))));
      const at = (v) => Math.min(this.side - 1, Math.max(0, Math.floor(v * this.side)));
      const cell = Uint32Array.from(this.x, (_, i) => at(this.y[i]) * this.side + at(this.x[i]));
      this.starts = new Uint32Array(this.side * this.side + 1);
      for (const c of cell) this.starts[c + 1] += 1;
      for (let c = 0; c < this.side * this.side; c += 1) this.starts[c + 1] += this.starts[c];
      this.cells = new Uint32Array(this.n);
      const next = this.starts.slice();
      cell.forEach((c, i) => { this.cells[next[c]++] = i; });
    }

    /** The point nearest to a place on the screen, or -1 where none is near. */
    hit(px, py) {
      const [wx, wy] = this._world(px, py);
      const [sx, sy] = [this._sx(), this._sy()];
      const at = (v) => Math.min(this.side - 1, Math.max(0, Math.floor(v * this.side)));
      let [found, nearest] = [-1, REACH * REACH];
      for (let row = at(wy - REACH / sy); row <= at(wy + REACH / sy); row += 1) {
        const from = this.starts[row * this.side + at(wx - REACH / sx)];
        const to = this.starts[row * this.side + at(wx + REACH / sx) + 1];
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

    // ---- drawing ---------------------------------------------------------------------------------------------------

    /** Draw before the next frame, once, however often it is asked for. */
    _ask() {
      this.stale = true;
      this._next();
    }

    _next() {
      if (this.asked) return;
      this.asked = requestAnimationFrame(() => {
        this.asked = 0;
        if (this.stale) this._draw();
        if (this.pointed) this._hover(this.hit(...this.pointed));
        this.pointed = null;
        this._drawLoop();
      });
    }

    _palette() {
      if (this.colors) return this.colors;
      const style = getComputedStyle(this.container);
      const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
        .getContext("2d", { willReadFrequently: true });
      const rgb = (name) => {
        pen.fillStyle = COLORS[name];
        pen.fillStyle = style.getPropertyValue(`--map-${name}`).trim() || COLORS[name];
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
      };
      this.colors = Object.fromEntries(Object.keys(COLORS).map((name) => [name, rgb(name)]));
      this.stamps = null;
      return this.colors;
    }

    _ramp(step) {
      const { low, mid, high } = this._palette();
      const t = (2 * step) / (STEPS - 1);
      const [from, to, part] = t < 1 ? [low, mid, t] : [mid, high, t - 1];
      return css(from.map((c, k) => c + part * (to[k] - c)));
    }

    _radius() {
      const small = this.n > 8000 ? 2.3 : this.n > 2000 ? 3 : this.n > 300 ? 3.8 : 5;
      return Math.min(9, small * Math.max(1, this.zoom) ** 0.33);
    }

    /** Every colour and mark as the pixels it covers: where, which colour, how opaque. */
    _stamps() {
      const colors = this._palette();
      const radius = Math.round(this._radius() * this.ratio * 4) / 4;
      const across = this.base.width;
      if (this.stamps && this.stamps.radius === radius && this.stamps.across === across) return this.stamps;
      const marked = Math.max(radius, 3.1 * this.ratio); // few among many must still be seen
      const size = 2 * Math.ceil(marked * 1.8 + this.ratio) + 1;
      const row = across + 2 * size; // the buffer is wider than the canvas by a point on each side, so nothing is cut
      const pen = Object.assign(document.createElement("canvas"), { width: size * STEPS, height: size * MARKS.length })
        .getContext("2d", { willReadFrequently: true });
      const list = [];
      for (let kind = 0; kind < MARKS.length; kind += 1) {
        for (let step = 0; step < STEPS; step += 1) {
          const [cx, cy] = [(step + 0.5) * size, (kind + 0.5) * size];
          pen.beginPath();
          if (MARKS[kind] === "anomaly") shape(pen, cx, cy, marked * 1.5, 4, 0); // a diamond
          else if (MARKS[kind] === "normal") shape(pen, cx, cy, marked * 1.15, 4, Math.PI / 4); // a square
          else pen.arc(cx, cy, kind ? marked : radius, 0, 2 * Math.PI);
          pen.fillStyle = this._ramp(step);
          pen.fill();
          pen.lineWidth = kind ? 0.48 * marked : 0.2 * radius;
          pen.strokeStyle = css(kind ? colors[MARKS[kind]] : colors.bg);
          if (kind || radius >= 3 * this.ratio) pen.stroke(); // an edge would leave nothing of a small dot
          list.push(pixels(pen.getImageData(step * size, kind * size, size, size), row));
        }
      }
      this.stamps = { list, size, radius, row, across };
      return this.stamps;
    }

    /** All points, stamped into one buffer: several times faster than asking the canvas to draw each. */
    _draw() {
      this.stale = false;
      const { list, size, row } = this._stamps();
      const { x, y, step, kind, selected } = this;
      const [W, H] = [this.base.width, this.base.height];
      if (!this.buffer || this.buffer.width !== row || this.buffer.height !== H + 2 * size) {
        this.buffer = new ImageData(row, H + 2 * size);
      }
      const out = new Uint32Array(this.buffer.data.buffer);
      const [r, g, b] = this._palette().bg;
      out.fill(0xff000000 | (b << 16) | (g << 8) | r);
      const [ax, ay] = [this._sx() * this.ratio, this._sy() * this.ratio];
      const bx = W / 2 - this.center[0] * ax + size / 2; // where the stamp's corner falls in the wider buffer
      const by = H / 2 - this.center[1] * ay + size / 2;
      for (const chosen of selected ? [0, 1] : [null]) { // the selected on top of the faint
        for (const i of this.order) {
          if (chosen !== null && selected[i] !== chosen) continue;
          const px = Math.round(ax * x[i] + bx);
          const py = Math.round(ay * y[i] + by);
          if (px < 0 || py < 0 || px > W + size || py > H + size) continue;
          stamp(out, py * row + px, list[kind[i] * STEPS + step[i]], chosen === 0 ? FAINT : 1);
        }
      }
      this.base.getContext("2d", { willReadFrequently: true }).putImageData(this.buffer, -size, -size);
      this._placeRings();
    }

    _placeRings() {
      const size = Math.round(3 * this._radius() + 9);
      [this.focused, this.hovered].forEach((i, k) => {
        const [px, py] = i < 0 ? [0, 0] : this._place(i);
        const inside = i >= 0 && px >= 0 && py >= 0 && px <= this.width && py <= this.height;
        const ring = this.rings[k].style;
        ring.display = inside ? "block" : "none";
        if (!inside) return;
        ring.width = ring.height = `${size}px`;
        ring.transform = `translate(${px - size / 2}px, ${py - size / 2}px)`;
      });
    }

    /** The loop that is being drawn around points; nothing where there is none and was none. */
    _drawLoop() {
      if (!this.loop.length && !this.looped) return;
      this.looped = this.loop.length > 0;
      const pen = this.over.getContext("2d");
      const { ring } = this._palette();
      pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      pen.clearRect(0, 0, this.width, this.height);
      pen.beginPath();
      for (const [px, py] of this.loop) pen.lineTo(px, py);
      pen.closePath();
      pen.fillStyle = css(ring, 0.1);
      pen.fill();
      pen.lineWidth = 1.5;
      pen.strokeStyle = css(ring);
      pen.stroke();
    }

    // ---- hands -----------------------------------------------------------------------------------------------------

    _down(event) {
      if (event.button) return;
      this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      this.over.setPointerCapture(event.pointerId);
      this.engaged = true;
      this.moved = this.pointers.size > 1 ? A_CLICK : 0;
      const selecting = this.options.onSelect && (this.mode === "select" || event.shiftKey);
      this.loop = selecting && this.pointers.size === 1 ? [[event.offsetX, event.offsetY]] : [];
    }

    _move(event) {
      const now = [event.offsetX, event.offsetY];
      const before = this.pointers.get(event.pointerId);
      if (!before) {
        this.pointed = now;
        this._next();
        return;
      }
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      this.moved += Math.hypot(dx, dy);
      if (this.loop.length) {
        this.loop.push(now);
        this._next();
      } else if (this.pointers.size === 2) {
        const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
        const apart = (p) => Math.max(1, Math.hypot(p[0] - other[0], p[1] - other[1]));
        this.zoomBy(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
        this.panBy(dx / 2, dy / 2);
      } else if (this.moved >= A_CLICK) {
        this._hover(-1);
        this.panBy(dx, dy);
      }
      this.pointers.set(event.pointerId, now);
    }

    _up(event, cancelled = false) {
      if (!this.pointers.delete(event.pointerId)) return;
      const loop = this.loop;
      this.loop = [];
      if (!cancelled && this.moved < A_CLICK) {
        const i = this.hit(event.offsetX, event.offsetY);
        this._hover(i);
        if (i >= 0) this._pick(i);
      } else if (!cancelled && loop.length > 2) {
        const indices = this._inside(loop);
        this.select(indices);
        this.options.onSelect(indices);
      }
      this._next();
    }

    _leave() {
      this.pointed = null;
      if (!this.pointers.size) this._hover(-1);
      if (document.activeElement !== this.over) this.engaged = false;
    }

    _wheel(event) {
      if (this.options.wheel === "engaged" && !this.engaged && !event.ctrlKey) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      this.zoomBy(Math.exp(Math.max(-0.5, Math.min(0.5, -event.deltaY * lines * 0.0018))), event.offsetX, event.offsetY);
      this._hover(-1);
    }

    _key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = 0.15 * Math.min(this.width, this.height);
      const does = {
        ArrowLeft: () => this.panBy(step, 0), ArrowRight: () => this.panBy(-step, 0),
        ArrowUp: () => this.panBy(0, step), ArrowDown: () => this.panBy(0, -step),
        "+": () => this.zoomBy(1.4), "=": () => this.zoomBy(1.4), "-": () => this.zoomBy(1 / 1.4),
        0: () => this.reset(), n: () => this._walk(1), p: () => this._walk(-1),
        Enter: () => { if (this.focused >= 0) this._pick(this.focused); },
        Escape: () => { this._hover(-1); this.focus(-1); this.engaged = false; },
      }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!does) return;
      event.preventDefault();
      does();
    }

    /** To the next odder point (1) or the next plainer one (-1); first of all to the oddest. */
    _walk(way) {
      if (!this.n) return;
      const at = this.focused < 0 ? this.n - (way > 0 ? 1 : 2) : this.rank.indexOf(this.focused) + way;
      this.focus(this.rank[Math.min(this.n - 1, Math.max(0, at))]);
      this._hover(this.focused);
    }

    _pick(i) {
      if (this.options.onPick) this.options.onPick(i);
    }

    _hover(i) {
      if (i === this.hovered) return;
      this.hovered = i;
      this.over.style.cursor = this.mode === "select" ? "crosshair" : i >= 0 ? "pointer" : "grab";
      this.tip.style.display = i < 0 ? "none" : "block";
      if (i >= 0) {
        this.tip.textContent = this.options.text(i);
        const [px, py] = this._place(i);
        const [w, h] = [this.tip.offsetWidth, this.tip.offsetHeight];
        const left = Math.max(6, Math.min(this.width - w - 6, px - w / 2));
        const top = py > h + 22 ? py - h - 16 : Math.min(this.height - h - 6, py + 16);
        this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
      }
      this._placeRings();
    }

    /** The points inside a closed loop on the screen (an odd number of its edges lies to their left). */
    _inside(loop) {
      const found = [];
      for (let i = 0; i < this.n; i += 1) {
        const [px, py] = this._place(i);
        let odd = false;
        for (let k = 0, j = loop.length - 1; k < loop.length; j = k, k += 1) {
          const [[ax, ay], [bx, by]] = [loop[k], loop[j]];
          if (ay > py !== by > py && px < ax + ((bx - ax) * (py - ay)) / (by - ay)) odd = !odd;
        }
        if (odd) found.push(i);
      }
      return found;
    }
  }

  function css(rgb, alpha = 1) {
    return `rgb(${rgb.map(Math.round).join(" ")} / ${alpha})`;
  }

  function shape(pen, cx, cy, radius, corners, turn) {
    for (let k = 0; k < corners; k += 1) {
      const angle = turn + (2 * Math.PI * k) / corners;
      pen.lineTo(cx + radius * Math.cos(angle), cy + radius * Math.sin(angle));
    }
    pen.closePath();
  }

  /** The pixels of a picture that are not clear, as offsets into a buffer with rows of a given length. */
  function pixels(picture, row) {
    const colors = new Uint32Array(picture.data.buffer);
    const seen = [...colors.keys()].filter((k) => colors[k] >>> 24);
    return {
      offset: Uint32Array.from(seen, (k) => Math.floor(k / picture.width) * row + (k % picture.width)),
      color: Uint32Array.from(seen, (k) => colors[k]),
    };
  }

  function stamp(out, at, { offset, color }, opacity) {
    for (let k = 0; k < offset.length; k += 1) {
      const [over, place] = [color[k], at + offset[k]];
      const alpha = (over >>> 24) * opacity;
      if (alpha === 255) {
        out[place] = over;
        continue;
      }
      const [under, t] = [out[place], alpha / 255];
      const mix = (shift) => {
        const from = (under >>> shift) & 255;
        return (from + t * (((over >>> shift) & 255) - from)) << shift;
      };
      out[place] = 0xff000000 | (mix(16) & 0xff0000) | (mix(8) & 0xff00) | (mix(0) & 0xff);
    }
  }

  window.StraysMap = StraysMap;
})();
