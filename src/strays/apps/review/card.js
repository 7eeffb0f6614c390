// One text with all there is to say of it: why it is asked about, its score, its odd words, and what it is like.
import { get, troubleOf } from "./api.js";
import {
  badge, bdi, button, drawText, make, number, oddness, plain, rowName, sentence, SIGNS, when,
} from "./text.js";

/** @import { Item, Neighbour, PastVerdict, Segment, TextAnswer, Verdict, WhyAnswer } from "./messages" */

const NEIGHBOURS = 3;
const LONG = 240; // characters of a neighbour

/** @type {Map<number, Promise<WhyAnswer>>} */
const reasons = new Map(); // id -> its explanation

/**
 * Why a text scores as it does; asked for once, until the model has learnt more.
 * @param {number} id
 */
export function explain(id) {
  const known = reasons.get(id);
  if (known) return known;
  /** @type {Promise<WhyAnswer>} */
  const promise = get(`/api/texts/${id}/why`);
  promise.catch(() => reasons.delete(id));
  reasons.set(id, promise);
  return promise;
}

export const forgetReasons = () => reasons.clear();

export class Card {
  /**
   * @param {HTMLElement} parent
   * @param {{ history?: boolean }} [options] whether to list what people said of the text
   */
  constructor(parent, { history = false } = {}) {
    this.history = history;
    /** @type {Item | null} */
    this.item = null;
    this.drawn = ""; // the text that is shown
    this.why = make("p", { class: "asked" });
    this.text = make("div", { class: "text", dir: "auto", tabindex: "0", role: "group", "aria-label": "Text" });
    this.facts = make("p", { class: "facts" });
    this.reason = make("p", { class: "reason soft" });
    this.meanwhile = make("p", { class: "meanwhile soft", role: "status" });
    this.past = make("ul", { class: "past" });
    this.trouble = make("p", { class: "soft", role: "status" });
    this.normals = make("ul", { class: "near" });
    this.anomalies = make("ul", { class: "near" });
    this.root = make("div", { class: "card" },
      make("article", {}, this.why, this.text, this.facts, this.reason, this.meanwhile, this.past),
      make("aside", { "aria-label": "Why it is odd, and what it is like" }, this.trouble,
        make("h3", {}, sign("normal"), " Nearest texts taken for normal"), this.normals,
        make("h3", {}, sign("anomaly"), " Nearest known anomalies"), this.anomalies));
    parent.append(this.root);
  }

  /**
   * @param {Item} item
   * @param {{ note?: string }} [options] what to say in place of why it is asked about
   */
  show(item, { note = "" } = {}) {
    const same = this.item?.id === item.id;
    this.item = item;
    const { text, length } = item;
    this.root.dataset.id = String(item.id);
    this.why.replaceChildren(note || (this.history && item.label ? "" : asked(item)));
    this.why.dataset.kind = item.why ? item.why.kind : "";
    this.text.dataset.size = length <= 140 ? "short" : length <= 420 ? "middling" : "long";
    if (!same) delete this.text.dataset.all;
    if (!same || text !== this.drawn) drawText(this.text, item);
    this.drawn = text;
    this.facts.replaceChildren(
      make("strong", {}, sentence(oddness(item.p_value))),
      make("span", {}, `score ${item.anomaly_score.toFixed(2)}`),
      ...(item.rank ? [make("span", {}, `rank ${number(item.rank)}`)] : []),
      ...whereIs(item),
      ...(item.flagged ? [make("span", { class: "flag" }, "flagged")] : []),
      ...(item.given ? [make("span", {}, `given as ${item.given}`)] : []),
    );
    this.past.replaceChildren();
    if (this.history) {
      if (item.label) this.past.append(make("li", {}, badge(item.label)));
      this._history(item);
    }
    if (!same) this._wait();
    this._explain(item);
  }

  /**
   * Say that somebody else has judged this text while it was shown; null: nobody has.
   * @param {PastVerdict | null} event
   */
  tellJudged(event) {
    const words = event ? ["judged meanwhile by ", bdi(event.who, 100), ": ", badge(event.verdict)] : [];
    const told = event ? String(event.event) : "";
    if (this.meanwhile.dataset.event === told) return; // told already: a screen reader would say it again
    this.meanwhile.dataset.event = told;
    this.meanwhile.replaceChildren(...words);
  }

  /** @param {Item} item */
  async _history(item) {
    try {
      /** @type {TextAnswer} */
      const { history } = await get(`/api/texts/${item.id}`);
      if (this.item !== item || !history.length) return;
      this.past.replaceChildren(...history.map(({ verdict, who, at, undone }) => make("li", {},
        make(undone ? "s" : "span", {}, badge(verdict)), ` ${who}, ${when(at)}${undone ? ", undone" : ""}`)));
    } catch { /* the numbers above stay */ }
  }

  /** Room for what comes, so that nothing moves when it does. */
  _wait() {
    this.root.classList.add("waiting");
    this.trouble.textContent = "";
    this.reason.replaceChildren();
    const blank = () => make("li", { class: "blank", "aria-hidden": "true" }, make("span"), make("span"));
    for (const list of [this.normals, this.anomalies]) {
      list.replaceChildren(...Array.from({ length: NEIGHBOURS }, blank));
    }
  }

  /** @param {Item} item */
  async _explain(item) {
    /** @type {WhyAnswer} */
    let why;
    try {
      why = await explain(item.id);
    } catch (thrown) {
      if (this.item === item) this.trouble.textContent = `No explanation: ${troubleOf(thrown).message}`;
      why = { what_is_odd: "", odd_all_over: false, copies: "", segments: [], nearest_normals: [], nearest_anomalies: [] };
    }
    if (this.item !== item) return;
    this.root.classList.remove("waiting");
    drawText(this.text, item, why.segments);
    const words = [why.what_is_odd, why.copies].filter(Boolean).join("; ");
    this.reason.replaceChildren(...(words ? [bdi(sentence(words))] : []));
    near(this.normals, why.nearest_normals, "No other text is known to be normal.");
    near(this.anomalies, why.nearest_anomalies, "The model has not learnt of any yet.");
  }
}

/**
 * Which rows of the file have a text: what they are called there, or else their numbers.
 * @param {Item} item
 */
function whereIs({ n_rows: n, rows, names }) {
  const more = `${n > rows.length ? "\n…" : ""}${n > 1 ? "\none verdict for all" : ""}`;
  const lines = rows.map((row, i) => [`row ${number(row)}`, ...(names[i] ? [plain(names[i], 80)] : [])].join(": "));
  const [name] = rowName(names);
  const alike = n > 1 ? `and ${number(n - 1)} like it` : "";
  const where = name ? alike : n ? `row ${number(rows[0])} ${alike}`.trim() : "in no row";
  return [...(name ? [name] : []), ...(where ? [make("span", { title: lines.join("\n") + more }, where)] : [])];
}

/** @param {Item} item */
export function asked(item) {
  if (item.label === "skip") return "Skipped before";
  return item.why ? sentence(item.why.words) : "";
}

/**
 * @param {HTMLElement} list
 * @param {Neighbour[]} neighbours
 * @param {string} none what to say where there are none
 */
function near(list, neighbours, none) {
  const rows = neighbours.slice(0, NEIGHBOURS).map(({ text, similarity, n_copies: copies }) => {
    const like = make("span", { class: "like", title: "likeness, from 0 to 1" }, similarity.toFixed(2));
    const more = copies ? [make("span", { class: "soft" }, ` and ${number(copies)} more like it`)] : [];
    return make("li", { title: plain(text, 1000) }, bdi(text, LONG), ...more, like);
  });
  list.replaceChildren(...(rows.length ? rows : [make("li", { class: "soft" }, none)]));
}

/** @param {Verdict} verdict */
const sign = (verdict) => make("i", { class: `is-${verdict}`, "aria-hidden": "true" }, SIGNS[verdict]);

/**
 * Buttons to judge what a panel shows; `others` stand where Skip would.
 * @param {(verdict: Verdict) => void} give
 * @param {...Node} others
 */
export function verdictButtons(give, ...others) {
  /**
   * @param {Verdict} verdict
   * @param {...(Node | string)} words
   */
  const one = (verdict, ...words) => {
    const made = button("", () => give(verdict), `big ${verdict}`);
    made.append(...words, " ", make("kbd", {}, verdict[0]));
    return made;
  };
  return make("div", { class: "buttons", role: "toolbar", "aria-label": "Verdict" },
    one("anomaly", sign("anomaly"), " Anomaly"), one("normal", sign("normal"), " Normal"),
    ...(others.length ? others : [one("skip", "Skip")]));
}

/** The place beside a list where one text is shown whole, judged, and closed again. */
export class Panel {
  /**
   * @param {HTMLElement} place
   * @param {(verdict: Verdict) => void} give
   * @param {string} hint what to say while nothing is shown
   */
  constructor(place, give, hint) {
    this.place = place;
    this.give = give;
    this.hint = hint;
    /** @type {Card | null} */
    this.card = null;
    /** @type {() => void} */
    this.onclose = () => this.clear();
  }

  /** The text it shows. */
  get item() { return this.card ? this.card.item : null; }

  /**
   * @param {Item} item
   * @param {{ note?: string }} [options]
   */
  show(item, options) {
    if (!this.card) {
      this.place.replaceChildren(button("✕", () => this.onclose(), "quiet close", { "aria-label": "Close" }));
      this.card = new Card(this.place, { history: true });
      this.place.append(verdictButtons(this.give));
    }
    this.open();
    this.card.show(item, options);
  }

  /**
   * Whether it shows one of these texts.
   * @param {number[]} ids
   */
  has(ids) { return this.item !== null && ids.includes(this.item.id); }

  open() { this.place.parentElement?.classList.add("opened"); }

  /** On narrow screens it covers the list: whether it did, and does no longer. */
  close() {
    const around = this.place.parentElement;
    const covered = Boolean(around?.classList.contains("opened")) && innerWidth < 800;
    around?.classList.remove("opened");
    return covered;
  }

  clear(hint = this.hint) {
    this.close();
    this.card = null;
    this.place.replaceChildren(make("p", { class: "soft hint" }, hint));
  }
}
