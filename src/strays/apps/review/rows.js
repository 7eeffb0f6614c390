// A list one walks with the arrow keys; one row at a time is in the tab order.
import { make } from "./text.js";

export class Rows {
  /** `draw(entry)` gives a row's children; `open(entry)` is called when a row is clicked or entered. */
  constructor(list, { draw, open }) {
    this.list = list;
    this.draw = draw;
    this.open = open;
    this.entries = [];
    this.key = null; // of the row in the tab order
    this.chosen = false; // whether that row was walked to; a verdict needs one that was
    list.addEventListener("click", (event) => {
      const row = event.target.closest("li[data-key]");
      if (row && !event.target.closest("button")) this.choose(this._index(row.dataset.key));
    });
    list.addEventListener("focusin", (event) => {
      const row = event.target.closest("li[data-key]");
      if (row) this._mark(row.dataset.key);
    });
    list.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !event.target.matches("li[data-key]")) return;
      event.preventDefault();
      this.choose(this._index(event.target.dataset.key));
    });
  }

  /** Entries are [key, value]; rows that are there stay, so that focus and place do. */
  set(entries, ...rest) {
    const focused = this.list.contains(document.activeElement);
    this.entries = entries.map(([key, value]) => [String(key), value]);
    if (!this.entries.some(([key]) => key === this.key)) {
      this.key = this.entries.length ? this.entries[0][0] : null;
      this.chosen = false;
    }
    this.list.replaceChildren(...this.entries.map(([key, value]) => this._row(key, value)), ...rest);
    if (focused && this.key !== null) this._element(this.key).focus({ preventScroll: true });
  }

  /** Draw one row again. */
  update(key, value) {
    const i = this._index(String(key));
    if (i < 0) return;
    const focused = document.activeElement === this._element(String(key));
    this.entries[i][1] = value;
    const row = this._row(String(key), value);
    this._element(String(key)).replaceWith(row);
    if (focused) row.focus({ preventScroll: true });
  }

  get present() {
    const i = this._index(this.key);
    return i < 0 || !this.chosen ? null : this.entries[i][1];
  }

  move(step) {
    const from = this.chosen ? this._index(this.key) + step : 0;
    const i = Math.max(0, Math.min(this.entries.length - 1, from));
    if (this.entries.length) this.choose(i);
  }

  choose(i) {
    const [key, value] = this.entries[i];
    this._mark(key);
    const row = this._element(key);
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
    this.open(value);
  }

  _index(key) { return this.entries.findIndex(([other]) => other === key); }

  _element(key) { return this.list.querySelector(`li[data-key="${CSS.escape(key)}"]`); }

  _row(key, value) {
    const present = key === this.key;
    const look = present && this.chosen ? "present" : "";
    return make("li", { "data-key": key, tabindex: present ? "0" : "-1", class: look }, ...this.draw(value));
  }

  _mark(key) {
    const before = this.key === null ? null : this._element(this.key);
    if (before) {
      before.tabIndex = -1;
      before.classList.remove("present");
    }
    this.key = key;
    this.chosen = true;
    const row = this._element(key);
    row.tabIndex = 0;
    row.classList.add("present");
  }
}
