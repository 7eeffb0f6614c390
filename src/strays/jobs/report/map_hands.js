// What pointers, the wheel and keys do on a map: pan, zoom, point at, pick, encircle.
"use strict";

class MapHands {
  static A_CLICK = 5; // a pointer that moved less, in CSS pixels, did not drag

  /** @param {StraysMap} map */
  constructor(map) {
    this.map = map;
    /** @type {Map<number, Place>} */
    this.pointers = new Map(); // those that are down
    /** @type {Place | null} */
    this.pointed = null; // where the pointer is, until the map has looked
    this.moved = 0; // how far a pointer moved since it went down
    /** @type {Place[]} */
    this.loop = []; // what is being encircled, in CSS pixels
    this.engaged = false; // whether the wheel zooms
    /** @type {(() => void)[]} */
    this.undo = [];
    /**
     * @template {keyof HTMLElementEventMap} Name
     * @param {Name} name
     * @param {(event: HTMLElementEventMap[Name]) => void} does
     * @param {AddEventListenerOptions} [how]
     */
    const on = (name, does, how) => {
      map.over.addEventListener(name, does, how);
      this.undo.push(() => map.over.removeEventListener(name, does, how));
    };
    on("pointerdown", (event) => this._down(event));
    on("pointermove", (event) => this._move(event));
    on("pointerup", (event) => this._up(event));
    on("pointercancel", (event) => this._up(event, true));
    on("pointerleave", () => this._leave());
    on("wheel", (event) => this._wheel(event), { passive: false });
    on("dblclick", (event) => map.zoomBy(2, event.offsetX, event.offsetY));
    on("keydown", (event) => this._key(event));
    on("blur", () => { this.engaged = false; map.hover(-1); });
  }

  /** Listen no longer. */
  letGo() {
    for (const off of this.undo) off();
  }

  /** @param {PointerEvent} event */
  _down(event) {
    if (event.button) return;
    this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    this.map.over.setPointerCapture(event.pointerId);
    this.engaged = true;
    this.moved = this.pointers.size > 1 ? MapHands.A_CLICK : 0;
    const selecting = this.map.options.onSelect && (this.map.mode === "select" || event.shiftKey);
    this.loop = selecting && this.pointers.size === 1 ? [[event.offsetX, event.offsetY]] : [];
  }

  /** @param {PointerEvent} event */
  _move(event) {
    /** @type {Place} */
    const now = [event.offsetX, event.offsetY];
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.pointed = now;
      this.map.wake();
      return;
    }
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    this.moved += Math.hypot(dx, dy);
    if (this.loop.length) {
      this.loop.push(now);
      this.map.wake();
    } else if (this.pointers.size === 2) {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const apart = (/** @type {Place} */ p) => Math.max(1, Math.hypot(p[0] - other[0], p[1] - other[1]));
      this.map.zoomBy(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      this.map.panBy(dx / 2, dy / 2);
    } else if (this.moved >= MapHands.A_CLICK) {
      this.map.hover(-1);
      this.map.panBy(dx, dy);
    }
    this.pointers.set(event.pointerId, now);
  }

  /**
   * @param {PointerEvent} event
   * @param {boolean} [cancelled]
   */
  _up(event, cancelled = false) {
    if (!this.pointers.delete(event.pointerId)) return;
    const loop = this.loop;
    this.loop = [];
    if (!cancelled && this.moved < MapHands.A_CLICK) {
      const i = this.map.hit(event.offsetX, event.offsetY);
      this.map.hover(i);
      if (i >= 0) this.map.options.onPick?.(i);
    } else if (!cancelled && loop.length > 2) {
      const indices = this.map.points.inside(loop.map((place) => this.map.view.onMap(...place)));
      this.map.select(indices);
      this.map.options.onSelect?.(indices);
    }
    this.map.wake();
  }

  _leave() {
    this.pointed = null;
    if (!this.pointers.size) this.map.hover(-1);
    if (document.activeElement !== this.map.over) this.engaged = false;
  }

  /** @param {WheelEvent} event */
  _wheel(event) {
    if (this.map.options.wheel === "engaged" && !this.engaged && !event.ctrlKey) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp(Math.max(-0.5, Math.min(0.5, -event.deltaY * lines * 0.0018)));
    this.map.zoomBy(factor, event.offsetX, event.offsetY);
    this.map.hover(-1);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 0.15 * Math.min(this.map.view.width, this.map.view.height);
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.map.panBy(step, 0), ArrowRight: () => this.map.panBy(-step, 0),
      ArrowUp: () => this.map.panBy(0, step), ArrowDown: () => this.map.panBy(0, -step),
      "+": () => this.map.zoomBy(1.4), "=": () => this.map.zoomBy(1.4), "-": () => this.map.zoomBy(1 / 1.4),
      0: () => this.map.reset(), n: () => this.map.walk(1), p: () => this.map.walk(-1),
      Enter: () => { if (this.map.focused >= 0) this.map.options.onPick?.(this.map.focused); },
      Escape: () => { this.map.hover(-1); this.map.focus(-1); this.engaged = false; },
    };
    const does = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }
}
