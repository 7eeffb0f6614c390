// The view in which one text after another is judged.
import { desk, emit, get, on, troubleOf } from "./api.js";
import { asked as whyAsked, Card, explain, forgetReasons } from "./card.js";
import { outbox } from "./outbox.js";
import { past } from "./progress.js";
import { Queue } from "./queue.js";
import { badge, bdi, button, byId, make, plain, plural, said, sentence } from "./text.js";

/** @import { Item, QueueAnswer, TextAnswer, Verdict } from "./messages" */

const AHEAD = 10; // texts at hand
const FEW = 4;
const HOLD = 60_000; // milliseconds

export const queue = new Queue();
/** @type {({ item: Item, who: string } | null)[]} */
const done = []; // what was judged, the last at the end; null for what was judged in another view
/** @type {Set<number>} */
const awaited = new Set(); // ids whose undoing shows already
const [place, last, live] = byId("present", "last", "said");
/** @type {Card | null} */
let card = null;
let asking = false;
let fetched = 0; // when the desk was last asked what to judge

/** @param {string} words for a screen reader */
export const announce = (words) => { live.textContent = words; };

export async function fetchQueue() {
  if (asking) return;
  asking = true;
  const asked = fetched = performance.now();
  /** @type {QueueAnswer} */
  let answer;
  try {
    answer = await get(`/api/queue?client=${encodeURIComponent(desk.client)}&n=${AHEAD}`);
  } catch (thrown) {
    const trouble = troubleOf(thrown);
    emit("reach", { gone: true, message: trouble.message, locked: trouble.locked });
    return;
  } finally {
    asking = false;
  }
  emit("queue", { queue: answer, asked });
}

/** Tell the desk now and then that these texts are being looked at, so that it gives them to nobody else. */
export function holdOn() {
  if (performance.now() - fetched > HOLD) fetchQueue();
}

/** @param {Verdict} verdict */
export function judge(verdict) {
  const item = queue.present;
  if (!item) return;
  queue.take();
  done.push({ item, who: desk.who });
  outbox.give([item.id], verdict, item.text);
  noteLast(verdict, item.text, 1, true);
  draw();
  const next = queue.present;
  announce(`${sentence(said(verdict))}. ${next ? `Next: ${plain(next.text, 300)}` : "Nothing is left."}`);
  if (queue.items.length < FEW) fetchQueue();
}

/** Take back the last verdict. One that was given in this view shows at once, so that the next key judges that text. */
export function undo() {
  const last = done.pop();
  if (last) {
    queue.restore(last.item);
    awaited.add(last.item.id);
    draw();
  }
  outbox.undo(last?.who);
}

/** @param {number} step */
export function look(step) {
  if (queue.move(step)) draw();
}

/**
 * @param {string} before
 * @param {Node} mark
 * @param {string} text
 * @param {number} n
 */
function note(before, mark, text, n) {
  last.replaceChildren(before, mark, n > 1 ? ` ${plural(n, "text")} ` : " ", bdi(text, 80));
}

/**
 * @param {Verdict | undefined} verdict
 * @param {string} text
 * @param {number} n
 * @param {boolean} unsaved
 */
function noteLast(verdict, text, n, unsaved) {
  note("Last: ", badge(verdict, unsaved), text, n);
}

/**
 * @param {Card} on
 * @param {Item} item
 */
function show(on, item) {
  on.show(item, { note: queue.at > 0 ? `Looking ahead, ${queue.at} further on. ${whyAsked(item)}` : "" });
}

export function draw() {
  const item = queue.present;
  emit("present", item);
  if (!item) {
    card = null;
    place.replaceChildren(empty());
    return;
  }
  if (!card) {
    place.replaceChildren();
    card = new Card(place);
  }
  show(card, item);
  tellMeanwhile();
  const next = queue.items[queue.at + 1];
  // The next one's explanation, once this one's is here: the one being read comes first.
  if (next) explain(item.id).then(() => explain(next.id)).catch(() => {});
  if (place.parentElement) place.parentElement.scrollTop = 0;
}

/** The present text is never pulled away; where somebody else has judged it meanwhile, that is said. */
function tellMeanwhile() {
  const item = queue.present;
  if (!item || !card) return;
  const last = past.events.find((event) => !event.undone && event.ids.includes(item.id));
  const stands = last && last.verdict !== "skip" && !awaited.has(item.id); // what is being undone stands no longer
  card.tellJudged(stands ? last : null);
}

function empty() {
  const { state } = desk;
  /**
   * @param {string} title
   * @param {...Node} rest
   */
  const none = (title, ...rest) => make("div", { class: "empty" }, make("h2", {}, title), ...rest);
  if (!state || queue.left === null) return none("Fetching texts…");
  if (queue.left > 0 && !outbox.waiting.length) {
    const others = `${plural(queue.left, "text")} left, which somebody else is looking at right now.`;
    return none("The last texts are on other desks", make("p", {}, others));
  }
  if (outbox.waiting.length) return none("Saving…", make("p", {}, "The last verdicts are on their way to the desk."));
  const { normal, anomaly, skipped } = state.judged;
  const all = `${plural(normal + anomaly, "text")} judged, ${plural(anomaly, "anomaly", "anomalies")} found`;
  return none("All judged", make("p", {}, all, skipped ? `, ${skipped} skipped.` : "."),
    make("p", { class: "soft" }, "What next: save the model to score other files with, or export the verdicts."),
    make("p", { class: "buttons" }, button("Export", () => emit("view", "save")),
      ...(skipped ? [button("See the skipped", () => emit("view", "browse:skip"))] : []),
      button("See what was judged", () => emit("view", "judged"))));
}

on("queue", ({ queue: answer, asked }) => {
  const before = queue.present;
  queue.refresh(answer, asked);
  if (queue.present !== before || !before) draw();
  // A text that was skipped comes back where nothing else is left, but not with an answer that was asked for before
  // its verdict was acknowledged: that one is left out, so ask again.
  const old = answer.items.some((item) => Number.isFinite(queue.settled.get(item.id)));
  if (!queue.present && old && !outbox.waiting.length) fetchQueue();
});

on("saved", ({ ids, kept, verdict, text }) => {
  queue.acknowledge([...ids, ...kept], performance.now());
  if (!ids.length) { // nothing was written, so there is nothing to undo either
    const at = done.lastIndexOf(null);
    if (at >= 0) done.splice(at, 1);
    const words = "All of these were judged meanwhile, and keep their verdicts.";
    last.replaceChildren(words);
    announce(words);
  } else if (!outbox.waiting.length) noteLast(verdict, text, ids.length, false);
});

on("settle", (ids) => {
  done.push(null);
  const before = queue.present;
  queue.settle(ids);
  if (queue.present !== before) draw();
});

on("undone", async ({ ids, verdict, text = "" }) => {
  if (!ids.length) {
    awaited.clear();
    last.replaceChildren("There is nothing to undo.");
    announce("There is nothing to undo.");
    return;
  }
  note("Undone: ", badge(verdict), text, ids.length);
  if (verdict) announce(`Undone: ${said(verdict, ids.length)}.`);
  if (awaited.delete(ids[0])) return;
  for (const id of ids) queue.settled.delete(id);
  if (ids.length > 1) return fetchQueue();
  /** @type {TextAnswer} */
  let item;
  try { item = await get(`/api/texts/${ids[0]}`); } catch { return; }
  if (item.label) return; // an older verdict holds again
  queue.restore(item);
  draw();
});

on("learnt", () => {
  forgetReasons();
  fetchQueue();
  renew();
});

/** The text being read stays, with what the new model says of it. */
async function renew() {
  const item = queue.present;
  if (!item) return;
  /** @type {TextAnswer} */
  let now;
  try { now = await get(`/api/texts/${item.id}`); } catch { return; }
  const { anomaly_score, p_value, flagged, rank } = now;
  Object.assign(item, { anomaly_score, p_value, flagged, rank });
  if (card && queue.present === item) show(card, item);
}
document.addEventListener("past", tellMeanwhile);
on("outbox", () => { if (!queue.present) draw(); });

for (const button of document.querySelectorAll("#judge button[data-act]")) {
  if (button instanceof HTMLElement) button.addEventListener("click", () => emit("act", button.dataset.act ?? ""));
}
