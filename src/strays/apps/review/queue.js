// The texts to judge, the present one among them. No drawing here.

/** @import { Item, QueueAnswer } from "./messages" */

export class Queue {
  constructor() {
    /** @type {Item[]} */
    this.items = [];
    this.at = 0; // where the person looks: 0 unless they look ahead
    /** @type {number | null} */
    this.left = null; // how many nobody has judged, as the desk last said
    /** @type {Map<number, number>} */
    this.settled = new Map(); // id -> when its verdict was acknowledged, Infinity while it is not
  }

  get present() { return this.items[this.at] || null; }

  /** The present text is judged: take it out. The next one is in its place. */
  take() {
    const [item] = this.items.splice(this.at, 1);
    this.settled.set(item.id, Infinity);
    this.at = Math.max(0, Math.min(this.at, this.items.length - 1));
    if (this.left !== null) this.left = Math.max(0, this.left - 1);
    return item;
  }

  /**
   * @param {number[]} ids
   * @param {number} now
   */
  acknowledge(ids, now) {
    for (const id of ids) this.settled.set(id, now);
  }

  /**
   * Judged elsewhere on this page.
   * @param {number[]} ids
   */
  settle(ids) {
    for (const id of ids) this.settled.set(id, Infinity);
    const present = this.present;
    this.items = this.items.filter((item) => !ids.includes(item.id));
    const at = present ? this.items.indexOf(present) : -1;
    this.at = at >= 0 ? at : Math.max(0, Math.min(this.at, this.items.length - 1));
  }

  /**
   * A verdict was taken back: its text is the present one again.
   * @param {Item} item
   */
  restore(item) {
    this.settled.delete(item.id);
    this.items = this.items.filter((other) => other.id !== item.id);
    this.at = Math.max(0, Math.min(this.at, this.items.length));
    this.items.splice(this.at, 0, item);
  }

  /** What the desk would ask now; what is behind the present text is replaced by it.
   *
   * An answer that left before a verdict arrived still holds that text: it is left out.
   * @param {QueueAnswer} answer
   * @param {number} asked when the answer was asked for
   */
  refresh({ items, left }, asked) {
    const fresh = items.filter((item) => (this.settled.get(item.id) ?? -Infinity) <= asked);
    const seen = this.items.slice(0, this.at + 1);
    const known = new Set(seen.map((item) => item.id));
    this.items = [...seen, ...fresh.filter((item) => !known.has(item.id))];
    this.left = left;
  }

  /** @param {number} step */
  move(step) {
    const to = this.at + step;
    if (to < 0 || to >= this.items.length) return false;
    this.at = to;
    return true;
  }
}
