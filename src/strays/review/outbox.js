// Verdicts on their way to the desk: sent one after another, kept until they are acknowledged, sent again on failure.
import { desk, know, post, tell } from "./api.js";

const AGAIN = [500, 1000, 2000, 4000]; // milliseconds until a failed one is sent again

class Outbox {
  constructor() {
    this.waiting = []; // {kind, ids, verdict, who, text, key, trouble, refused}
    this.sending = null;
    this.failures = 0;
    this.timer = 0;
    addEventListener("beforeunload", (event) => { if (this.waiting.length) event.preventDefault(); });
  }

  /** What an earlier visit of this tab left unsent, of the same project. */
  recall() {
    this.place = `strays-unsaved ${desk.state.project}`;
    try {
      const left = JSON.parse(sessionStorage.getItem(this.place)) || [];
      this.waiting.unshift(...left);
      return left;
    } catch {
      return [];
    }
  }

  forget() {
    this.waiting = [];
    this._changed();
  }

  give(ids, verdict, text) {
    const key = `${desk.client}-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
    this.waiting.push({ kind: "verdict", ids, verdict, who: desk.who, text: text.slice(0, 200), key });
    this._changed();
    this.send();
  }

  /** Take back the last verdict: here where it has not left yet, else at the desk. */
  undo() {
    const last = this.waiting.at(-1);
    if (last && last.kind === "verdict" && last !== this.sending && !last.uncertain) {
      this.waiting.pop();
      this._changed();
      tell("undone", { ids: last.ids, verdict: last.verdict, text: last.text });
      return;
    }
    this.waiting.push({ kind: "undo", ids: [], who: desk.who, text: "", key: `${desk.client}-u${Date.now()}` });
    this._changed();
    this.send();
  }

  drop(entry) {
    this.waiting = this.waiting.filter((other) => other !== entry);
    this._changed();
    if (entry.kind === "verdict") tell("undone", { ids: entry.ids, verdict: entry.verdict, text: entry.text });
  }

  again() {
    for (const entry of this.waiting) entry.refused = false;
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
    const asked = performance.now();
    try {
      const { kind, ids, verdict, who, key } = entry;
      const sender = { who, client: desk.client, key };
      const answer = await (kind === "undo" ? post("/api/undo", sender) : post("/api/verdicts", { ids, verdict, ...sender }));
      this.waiting = this.waiting.filter((other) => other !== entry);
      this.failures = 0;
      tell("reach", { gone: false });
      this._changed();
      if (kind === "undo") tell("undone", answer.undone || { ids: [] });
      else tell("saved", { ...entry, event: answer.event });
      know(answer.state, asked);
      if (answer.queue) tell("queue", { queue: answer.queue, asked });
    } catch (trouble) {
      entry.trouble = trouble.message;
      // The desk may have written it before it went silent; then only the desk can take it back.
      entry.uncertain = Boolean(trouble.gone);
      if (trouble.gone || trouble.locked) {
        tell("reach", { gone: true, message: trouble.message, locked: trouble.locked });
        this.timer = setTimeout(() => this.send(), AGAIN[Math.min(this.failures, AGAIN.length - 1)]);
        this.failures += 1;
      } else {
        entry.refused = true;
        tell("refused", entry);
      }
      this._changed();
      if (!entry.refused) return;
    } finally {
      this.sending = null;
    }
    this.send();
  }

  _changed() {
    try { sessionStorage.setItem(this.place, JSON.stringify(this.waiting)); } catch { /* keeps nothing, or no room */ }
    tell("outbox", this.waiting);
  }
}

export const outbox = new Outbox();
