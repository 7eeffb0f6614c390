// Verdicts on their way to the desk: sent one after another, kept until they are acknowledged, sent again on failure.
import { desk, DeskError, emit, get, post, setState, troubleOf } from "./api.js";

/** @import { ActionAnswer, Entry, HistoryAnswer, State, TextAnswer, Verdict } from "./messages" */

const AGAIN = [500, 1000, 2000, 4000]; // milliseconds until a failed one is sent again

class Outbox {
  constructor() {
    /** @type {Entry[]} */
    this.waiting = [];
    /** @type {Entry | null} */
    this.sending = null;
    this.place = ""; // the key under which they are kept in this tab, once the project is known
    this.failures = 0;
    this.timer = 0;
    addEventListener("beforeunload", (event) => { if (this.waiting.length) event.preventDefault(); });
  }

  /**
   * What an earlier visit of this tab left unsent, of the same project.
   * @param {string} project
   */
  recall(project) {
    this.place = `strays-unsaved ${project}`;
    /** @type {Entry[]} */
    let left = [];
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.place) ?? "");
      // A duplicate of a tab has a copy of all the tab keeps; what is unsent there, is sent from there.
      if (kept.client === desk.client) left = kept.entries;
    } catch { /* nothing was kept */ }
    this.waiting.unshift(...left);
    this._changed();
    return left;
  }

  /**
   * Unless `too`, texts that are judged by the time it arrives keep their verdicts.
   * @param {number[]} ids
   * @param {Verdict} verdict
   * @param {string} text of the first
   * @param {boolean} [too]
   */
  give(ids, verdict, text, too = true) {
    this.waiting.push({ kind: "verdict", ids, verdict, too, who: desk.who, text: text.slice(0, 200) });
    this._changed();
    this.send();
  }

  /** Take back the last verdict: here where it has not left yet, else at the desk. */
  undo(who = desk.who) {
    const last = this.waiting.at(-1);
    if (last && last.kind === "verdict" && last !== this.sending && !last.uncertain) {
      this.waiting.pop();
      this._changed();
      emit("undone", { ids: last.ids, verdict: last.verdict, text: last.text });
      return;
    }
    this.waiting.push({ kind: "undo", ids: [], who, text: "" });
    this._changed();
    this.send();
  }

  /** @param {Entry} entry */
  drop(entry) {
    this.waiting = this.waiting.filter((other) => other !== entry);
    this._changed();
    if (entry.kind === "verdict") emit("undone", { ids: entry.ids, verdict: entry.verdict, text: entry.text });
  }

  again() {
    for (const entry of this.waiting) {
      entry.uncertain &&= !entry.refused; // a person has looked, and wants it sent
      entry.refused = false;
    }
    this.failures = 0;
    this.send();
  }

  /** @param {number} id */
  holds(id) {
    return this.waiting.some((entry) => entry.ids.includes(id));
  }

  async send() {
    if (this.sending) return;
    clearTimeout(this.timer);
    const entry = this.waiting.find((one) => !one.refused);
    if (!entry) return;
    this.sending = entry;
    let goOn = true; // to the next one
    try {
      const arrived = entry.uncertain && await this._arrived(entry);
      const answer = arrived ? { asked: 0 } : await this._post(entry);
      this.waiting = this.waiting.filter((other) => other !== entry);
      this.failures = 0;
      emit("reach", { gone: false });
      this._changed();
      if (entry.kind === "undo") emit("undone", answer.undone || { ids: [] });
      else emit("saved", without(entry, answer.kept));
      if (answer.state) setState(answer.state, answer.asked);
      if (answer.queue) emit("queue", { queue: answer.queue, asked: answer.asked });
    } catch (thrown) {
      const trouble = troubleOf(thrown);
      entry.trouble = trouble.message;
      if (trouble.gone || trouble.locked) {
        goOn = false;
        this.timer = setTimeout(() => this.send(), AGAIN[Math.min(this.failures, AGAIN.length - 1)]);
        this.failures += 1;
        emit("reach", { gone: true, message: trouble.message, locked: trouble.locked });
      } else {
        entry.refused = true;
        emit("refused", entry);
      }
      this._changed();
    } finally {
      this.sending = null;
    }
    if (goOn) this.send();
  }

  /**
   * @param {Entry} entry
   * @returns {Promise<ActionAnswer & { asked: number }>}
   */
  async _post(entry) {
    const { kind, ids, verdict, too = true, who } = entry;
    // Until an answer comes, nobody knows whether the desk has written it: it is asked before the entry is sent again.
    entry.after = desk.state?.last_event;
    entry.uncertain = true;
    this._keep();
    const sender = { who, client: desk.client };
    const asked = performance.now();
    try {
      const posted = kind === "undo" ? post("/api/undo", sender)
        : post("/api/verdicts", { ids, verdict, too, ...sender });
      return { ...(await posted), asked };
    } catch (thrown) {
      entry.uncertain = troubleOf(thrown).gone;
      throw thrown;
    }
  }

  /**
   * Whether the desk has a verdict whose answer never came. Throws where nobody can say.
   * @param {Entry} entry
   */
  async _arrived({ kind, ids, verdict, too = true, who, after = 0 }) {
    if (kind === "undo") {
      /** @type {State} */
      const state = await get("/api/state");
      if (state.last_event === after) return false;
      throw new DeskError(
        "The desk fell silent during an undo. Look at what is judged; then send it again, or drop it.",
      );
    }
    if (!too) { // any of the texts may have been left out, so none of them alone can tell
      const set = new Set(ids);
      /** @type {HistoryAnswer} */
      const { events } = await get("/api/history?limit=1000");
      return events.some((event) => event.event > after && event.verdict === verdict && !event.undone &&
        (!who || event.who === who) && event.ids.every((id) => set.has(id)));
    }
    /** @type {TextAnswer} */
    const { history } = await get(`/api/texts/${ids[0]}`);
    return history.some((event) => event.event > after && event.verdict === verdict && !event.undone);
  }

  _changed() {
    this._keep();
    emit("outbox", this.waiting);
  }

  _keep() {
    if (!this.place) return; // not before it is known whose they are, and of which project
    const kept = JSON.stringify({ client: desk.client, entries: this.waiting });
    try { sessionStorage.setItem(this.place, kept); } catch { /* keeps nothing, or no room */ }
  }
}

/**
 * An entry as it was written: without the texts that kept the verdicts they had.
 * @param {Entry} entry
 * @param {number[]} [kept]
 */
function without(entry, kept = []) {
  const set = new Set(kept);
  return { ...entry, ids: entry.ids.filter((id) => !set.has(id)), kept };
}

export const outbox = new Outbox();
