// One text with all there is to say of it: why it is asked about, its score, its odd words, and what it is like.
import { get } from "./api.js";
import { badge, bdi, drawText, make, number, oddness, plural, VERDICTS, when } from "./text.js";

const NEIGHBOURS = 3;
const LONG = 240; // characters of a neighbour

const reasons = new Map(); // id -> a promise of the explanation

/** Why a text scores as it does; asked for once, until the model has learnt more. */
export function explain(id) {
  if (!reasons.has(id)) {
    const promise = get(`/api/texts/${id}/why`);
    promise.catch(() => reasons.delete(id));
    reasons.set(id, promise);
  }
  return reasons.get(id);
}

export const forgetReasons = () => reasons.clear();

export class Card {
  constructor(parent, { history = false } = {}) {
    this.history = history;
    this.why = make("p", { class: "asked" });
    this.text = make("div", { class: "text", dir: "auto", tabindex: "0", role: "group", "aria-label": "Text" });
    this.facts = make("p", { class: "facts" });
    this.past = make("ul", { class: "past" });
    this.trouble = make("p", { class: "soft", role: "status" });
    this.normals = make("ul", { class: "near" });
    this.anomalies = make("ul", { class: "near" });
    this.root = make("div", { class: "card" },
      make("article", {}, this.why, this.text, this.facts, this.past),
      make("aside", { "aria-label": "Why it is odd, and what it is like" }, this.trouble,
        make("h3", {}, make("span", { class: "is-normal", "aria-hidden": "true" }, "■ "), "Nearest texts taken for normal"), this.normals,
        make("h3", {}, make("span", { class: "is-anomaly", "aria-hidden": "true" }, "◆ "), "Nearest known anomalies"), this.anomalies));
    parent.append(this.root);
  }

  show(item, { note = "" } = {}) {
    const same = this.item && this.item.id === item.id;
    this.item = item;
    const { text, length, n_rows: rows } = item;
    this.root.dataset.id = item.id;
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
      make("span", { title: `row ${item.rows.slice(0, 20).map(number).join(", ")}${item.rows.length > 20 ? " …" : ""}` },
        rows > 1 ? `stands for ${plural(rows, "row")}` : rows ? `row ${number(item.rows[0])}` : "in no row"),
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

  async _history(item) {
    try {
      const { history } = await get(`/api/texts/${item.id}`);
      if (this.item !== item || !history.length) return;
      this.past.replaceChildren(...history.toReversed().map((event) => make("li", {},
        make(event.undone ? "s" : "span", {}, badge(event.verdict)), ` ${event.who}, ${when(event.at)}${event.undone ? ", undone" : ""}`)));
    } catch { /* the numbers above stay */ }
  }

  /** Room for what comes, so that nothing moves when it does. */
  _wait() {
    this.root.classList.add("waiting");
    this.trouble.textContent = "";
    const blank = () => make("li", { class: "blank", "aria-hidden": "true" }, make("span"), make("span"));
    for (const list of [this.normals, this.anomalies]) list.replaceChildren(...Array.from({ length: NEIGHBOURS }, blank));
  }

  async _explain(item) {
    let why;
    try {
      why = await explain(item.id);
    } catch (trouble) {
      if (this.item === item) this.trouble.textContent = `No explanation: ${trouble.message}`;
      why = { segments: [], nearest_normals: [], nearest_anomalies: [] };
    }
    if (this.item !== item) return;
    this.root.classList.remove("waiting");
    drawText(this.text, item, why.segments);
    near(this.normals, why.nearest_normals, "No other text is known to be normal.");
    near(this.anomalies, why.nearest_anomalies, "None is known yet.");
  }
}

export function asked(item) {
  if (item.label === "skip") return "Skipped before";
  return item.why ? sentence(item.why.words) : "";
}

function near(list, neighbours, none) {
  const rows = neighbours.slice(0, NEIGHBOURS).map(({ text, similarity }) => {
    const like = make("span", { class: "like", title: "likeness, from 0 to 1" }, similarity.toFixed(2));
    return make("li", { title: text.slice(0, 1000) }, bdi(text, LONG), like);
  });
  list.replaceChildren(...(rows.length ? rows : [make("li", { class: "soft" }, none)]));
}

export const sentence = (words) => (words ? words[0].toUpperCase() + words.slice(1) : "");

/** Buttons to judge what a panel shows; `others` stand where Skip would. */
export function verdictButtons(give, ...others) {
  const button = (verdict, sign, key) => make("button", { type: "button", class: `big ${verdict}`, onclick: () => give(verdict) },
    ...(sign ? [make("i", { "aria-hidden": "true" }, sign)] : []), ` ${{ anomaly: "Anomaly", normal: "Normal", skip: "Skip" }[verdict]} `, make("kbd", {}, key));
  return make("div", { class: "buttons", role: "toolbar", "aria-label": "Verdict" },
    button("anomaly", "◆", "a"), button("normal", "■", "n"), ...(others.length ? others : [button("skip", "", "s")]));
}

export const said = (verdict, n = 1) => (n === 1 ? VERDICTS[verdict] : `${number(n)} ${VERDICTS[verdict]}`);
