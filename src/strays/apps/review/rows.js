// A list one walks with the arrow keys; one row at a time is in the tab order.
import { make } from "./text.js";

/**
 * The row that an event happened in, if any.
 * @param {EventTarget | null} target
 * @returns {HTMLElement | null}
 */
const rowOf = (target) => (target instanceof Element ? target.closest("li[data-key]") : null);

/** @param {HTMLElement} row */
const keyOf = (row) => row.dataset.key ?? "";

/** @template Value */
export class Rows {
  /**
   * `draw(value)` gives a row's children; `open(value)` is called when a row is clicked or entered.
   * @param {HTMLElement} list
   * @param {{ draw: (value: Value) => (Node | string)[], open: (value: Value) => unknown }} does
   */
  constructor(list, { draw, open }) {
    this.list = list;
    this.draw = draw;
    this.open = open;
    /** @type {[string, Value][]} */
    this.entries = [];
    /** @type {string | null} */
    this.key = null; // of the row in the tab order
    this.chosen = false; // whether that row was walked to; a verdict needs one that was
    list.addEventListener("click", (event) => {
      const row = rowOf(event.target);
      const onButton = event.target instanceof Element && event.target.closest("button");
      if (row && !onButton) this.choose(this._index(keyOf(row)));
    });
    list.addEventListener("focusin", (event) => {
      const row = rowOf(event.target);
      if (row) this._mark(keyOf(row));
    });
    list.addEventListener("keydown", (event) => {
      const row = rowOf(event.target);
      if (event.key !== "Enter" || !row || row !== event.target) return;
      event.preventDefault();
      this.choose(this._index(keyOf(row)));
    });
  }

  /**
   * Entries are [key, value]; rows that are there stay, so that focus and place do.
   * @param {[number, Value][]} entries
   * @param {...Node} rest
   */
  set(entries, ...rest) {
    const focused = this.list.contains(document.activeElement);
    this.entries = entries.map(([key, value]) => [String(key), value]);
    if (!this.entries.some(([key]) => key === this.key)) {
      this.key = this.entries.length ? this.entries[0][0] : null;
      this.chosen = false;
    }
    this.list.replaceChildren(...this.entries.map(([key, value]) => this._row(key, value)), ...rest);
    if (focused && this.key !== null) this._element(this.key)?.focus({ preventScroll: true });
  }

  /**
   * Draw one row again.
   * @param {number} key
   * @param {Value} value
   */
  update(key, value) {
    const i = this._index(String(key));
    if (i < 0) return;
    const focused = document.activeElement === this._element(String(key));
    this.entries[i][1] = value;
    const row = this._row(String(key), value);
    this._element(String(key))?.replaceWith(row);
    if (focused) row.focus({ preventScroll: true });
  }

  get present() {
    const i = this._index(this.key);
    return i < 0 || !this.chosen ? null : this.entries[i][1];
  }

  /** @param {number} step */
  move(step) {
    const from = this.chosen ? this._index(this.key) + step : 0;
    const i = Math.max(0, Math.min(this.entries.length - 1, from));
    if (this.entries.length) this.choose(i);
  }

  /** @param {number} i */
  choose(i) {
    const [key, value] = this.entries[i];
    this._mark(key);
    const row = this._element(key);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
    this.open(value);
  }

  /** @param {string | null} key */
  _index(key) { return this.entries.findIndex(([other]) => other === key); }

  /**
   * @param {string} key
   * @returns {HTMLElement | null}
   */
  _element(key) { return this.list.querySelector(`li[data-key="${CSS.escape(key)}"]`); }

  /**
   * @param {string} key
   * @param {Value} value
   */
  _row(key, value) {
    const present = key === this.key;
    const look = present && this.chosen ? "present" : "";
    return make("li", { "data-key": key, tabindex: present ? "0" : "-1", class: look }, ...this.draw(value));
  }

  /** @param {string} key */
  _mark(key) {
    const before = this.key === null ? null : this._element(this.key);
    if (before) {
      before.tabIndex = -1;
      before.classList.remove("present");
    }
    this.key = key;
    this.chosen = true;
    const row = this._element(key);
    if (!row) return;
    row.tabIndex = 0;
    row.classList.add("present");
  }
}
