// Verdicts on their way to the desk: sent one after another, kept until they are acknowledged, sent again on failure.
import { desk, get, know, post, tell, Trouble } from "./api.js";

const AGAIN = [500, 1000, 2000, 4000]; // milliseconds until a failed one is sent again

class Outbox {
  constructor() {
    this.waiting = []; // {kind, ids, verdict, too, who, text, trouble, refused, uncertain, after}
    this.sending = null;
    this.failures = 0;
    this.timer = 0;
    addEventListener("beforeunload", (event) => { if (this.waiting.length) event.preventDefault(); });
  }

  /** What an earlier visit of this tab left unsent, of the same project. */
  recall() {
    this.place = `strays-unsaved ${desk.state.project}`;
    let left = [];
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.place));
      // A duplicate of a tab has a copy of all the tab keeps; what is unsent there, is sent from there.
      if (kept.client === desk.client) left = kept.entries;
    } catch { /* nothing was kept */ }
    this.waiting.unshift(...left);
    this._changed();
    return left;
  }

  forget() {
    this.waiting = [];
    this._changed();
  }

  /** Unless `too`, texts that are judged by the time it arrives keep their verdicts. */
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
      tell("undone", { ids: last.ids, verdict: last.verdict, text: last.text });
      return;
    }
    this.waiting.push({ kind: "undo", ids: [], who, text: "" });
    this._changed();
    this.send();
  }

  drop(entry) {
    this.waiting = this.waiting.filter((other) => other !== entry);
    this._changed();
    if (entry.kind === "verdict") tell("undone", { ids: entry.ids, verdict: entry.verdict, text: entry.text });
  }

  again() {
    for (const entry of this.waiting) {
      entry.uncertain &&= !entry.refused; // a person has looked, and wants it sent
      entry.refused = false;
    }
    this.failures = 0;
    this.send();
  }

  holds(id) {
    return this.waiting.some((entry) => entry.ids.includes(id));
  }

  async send() {
    if (this.sending) return;
    clearTimeout(this.timer);
    const entry = this.waiting.find((one) => !one.refused);
    if (!entry) return;
    this.sending = entry;
    let on = true; // to the next one
    try {
      const arrived = entry.uncertain && await this._arrived(entry);
      const answer = arrived ? {} : await this._post(entry);
      this.waiting = this.waiting.filter((other) => other !== entry);
      this.failures = 0;
      tell("reach", { gone: false });
      this._changed();
      if (entry.kind === "undo") tell("undone", answer.undone || { ids: [] });
      else tell("saved", without(entry, answer.kept));
      if (answer.state) know(answer.state, answer.asked);
      if (answer.queue) tell("queue", answer);
    } catch (trouble) {
      entry.trouble = trouble.message;
      if (trouble.gone || trouble.locked) {
        on = false;
        this.timer = setTimeout(() => this.send(), AGAIN[Math.min(this.failures, AGAIN.length - 1)]);
        this.failures += 1;
        tell("reach", { gone: true, message: trouble.message, locked: trouble.locked });
      } else {
        entry.refused = true;
        tell("refused", entry);
      }
      this._changed();
    } finally {
      this.sending = null;
    }
    if (on) this.send();
  }

  async _post(entry) {
    const { kind, ids, verdict, too = true, who } = entry;
    // Until an answer comes, nobody knows whether the desk has written it: it is asked before the entry is sent again.
    entry.after = desk.state.last_event;
    entry.uncertain = true;
    this._keep();
    const sender = { who, client: desk.client };
    const asked = performance.now();
    try {
      const [path, body] = kind === "undo" ? ["/api/undo", sender] : ["/api/verdicts", { ids, verdict, too, ...sender }];
      return { ...(await post(path, body)), asked };
    } catch (trouble) {
      entry.uncertain = trouble.gone;
      throw trouble;
    }
  }

  /** Whether the desk has a verdict whose answer never came. Throws where nobody can say. */
  async _arrived({ kind, ids, verdict, too = true, who, after }) {
    if (kind === "undo") {
      if ((await get("/api/state")).last_event === after) return false;
      throw new Trouble("The desk fell silent during an undo. Look at what is judged; then send it again, or drop it.");
    }
    if (!too) { // any of the texts may have been left out, so none of them alone can tell
      const set = new Set(ids);
      const { events } = await get("/api/history?limit=1000");
      return events.some((event) => event.event > after && event.verdict === verdict && !event.undone &&
        (!who || event.who === who) && event.ids.every((id) => set.has(id)));
    }
    const { history } = await get(`/api/texts/${ids[0]}`);
    return history.some((event) => event.event > after && event.verdict === verdict && !event.undone);
  }

  _changed() {
    this._keep();
    tell("outbox", this.waiting);
  }

  _keep() {
    if (!this.place) return; // not before it is known whose they are, and of which project
    const kept = JSON.stringify({ client: desk.client, entries: this.waiting });
    try { sessionStorage.setItem(this.place, kept); } catch { /* keeps nothing, or no room */ }
  }
}

/** An entry as it was written: without the texts that kept the verdicts they had. */
function without(entry, kept = []) {
  const set = new Set(kept);
  return { ...entry, ids: entry.ids.filter((id) => !set.has(id)), kept };
}

export const outbox = new Outbox();
