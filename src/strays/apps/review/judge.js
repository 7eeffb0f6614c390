// The view in which one text after another is judged.
import { desk, get, hear, tell } from "./api.js";
import { asked as whyAsked, Card, explain, forgetReasons } from "./card.js";
import { outbox } from "./outbox.js";
import { past } from "./progress.js";
import { Queue } from "./queue.js";
import { badge, bdi, button, byId, make, plain, plural, said, sentence } from "./text.js";

const AHEAD = 10; // texts at hand
const FEW = 4;
const HOLD = 60_000; // milliseconds

export const queue = new Queue();
const done = []; // what was judged, the last at the end: {item, who}, or null for what was judged in another view
const awaited = new Set(); // ids whose undoing shows already
const [place, last, live] = byId("present", "last", "said");
let card = null;
let asking = false;
let fetched = 0; // when the desk was last asked what to judge

export const say = (words) => { live.textContent = words; };

export async function fetchQueue() {
  if (asking) return;
  asking = true;
  const asked = fetched = performance.now();
  let answer;
  try {
    answer = await get(`/api/queue?client=${encodeURIComponent(desk.client)}&n=${AHEAD}`);
  } catch (trouble) {
    tell("reach", { gone: true, message: trouble.message, locked: trouble.locked });
    return;
  } finally {
    asking = false;
  }
  tell("queue", { queue: answer, asked });
}

/** Tell the desk now and then that these texts are being looked at, so that it gives them to nobody else. */
export function holdOn() {
  if (performance.now() - fetched > HOLD) fetchQueue();
}

export function judge(verdict) {
  const item = queue.present;
  if (!item) return;
  queue.take();
  done.push({ item, who: desk.who });
  outbox.give([item.id], verdict, item.text);
  noteLast(verdict, item.text, 1, true);
  draw();
  const next = queue.present;
  say(`${sentence(said(verdict))}. ${next ? `Next: ${plain(next.text, 300)}` : "Nothing is left."}`);
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

export function look(step) {
  if (queue.move(step)) draw();
}

function note(before, mark, text, n) {
  last.replaceChildren(before, mark, n > 1 ? ` ${plural(n, "text")} ` : " ", bdi(text, 80));
}

function noteLast(verdict, text, n, unsaved) {
  note("Last: ", badge(verdict, unsaved), text, n);
}

export function draw() {
  const item = queue.present;
  tell("present", item);
  if (!item) {
    card = null;
    place.replaceChildren(empty());
    return;
  }
  if (!card) {
    place.replaceChildren();
    card = new Card(place);
  }
  const words = queue.at > 0 ? `Looking ahead, ${queue.at} further on. ${whyAsked(item)}` : "";
  card.show(item, { note: words });
  tellMeanwhile();
  const next = queue.items[queue.at + 1];
  // The next one's explanation, once this one's is here: the one being read comes first.
  if (next) explain(item.id).then(() => explain(next.id)).catch(() => {});
  place.parentElement.scrollTop = 0;
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
    make("p", { class: "buttons" }, button("Export", () => tell("view", "save")),
      ...(skipped ? [button("See the skipped", () => tell("view", "browse:skip"))] : []),
      button("See what was judged", () => tell("view", "judged"))));
}

hear("queue", ({ queue: answer, asked }) => {
  const before = queue.present;
  queue.refresh(answer, asked);
  if (queue.present !== before || !before) draw();
  // A text that was skipped comes back where nothing else is left, but not with an answer that was asked for before
  // its verdict was acknowledged: that one is left out, so ask again.
  const old = answer.items.some((item) => Number.isFinite(queue.settled.get(item.id)));
  if (!queue.present && old && !outbox.waiting.length) fetchQueue();
});

hear("saved", ({ ids, kept, verdict, text }) => {
  queue.acknowledge([...ids, ...kept], performance.now());
  if (!ids.length) { // nothing was written, so there is nothing to undo either
    const at = done.lastIndexOf(null);
    if (at >= 0) done.splice(at, 1);
    const words = "All of these were judged meanwhile, and keep their verdicts.";
    last.replaceChildren(words);
    say(words);
  } else if (!outbox.waiting.length) noteLast(verdict, text, ids.length, false);
});

hear("settle", (ids) => {
  done.push(null);
  const before = queue.present;
  queue.settle(ids);
  if (queue.present !== before) draw();
});

hear("undone", async ({ ids, verdict, text }) => {
  if (!ids.length) {
    awaited.clear();
    last.replaceChildren("There is nothing to undo.");
    say("There is nothing to undo.");
    return;
  }
  note("Undone: ", badge(verdict), text, ids.length);
  say(`Undone: ${said(verdict, ids.length)}.`);
  if (awaited.delete(ids[0])) return;
  for (const id of ids) queue.settled.delete(id);
  if (ids.length > 1) return fetchQueue();
  let item;
  try { item = await get(`/api/texts/${ids[0]}`); } catch { return; }
  if (item.label) return; // an older verdict holds again
  queue.restore(item);
  draw();
});

hear("learnt", () => {
  forgetReasons();
  fetchQueue();
});
hear("renamed", () => {
  for (const id of outbox.waiting.flatMap((entry) => entry.ids)) queue.settled.delete(id);
  outbox.forget();
  fetchQueue();
});
document.addEventListener("past", tellMeanwhile);
hear("outbox", () => { if (!queue.present) draw(); });

for (const button of document.querySelectorAll("#judge [data-act]")) {
  button.addEventListener("click", () => tell("act", button.dataset.act));
}
