// What was judged so far, by whom and when; a verdict can be changed here.
import { desk, emit, get, on } from "./api.js";
import { Panel } from "./card.js";
import { outbox } from "./outbox.js";
import { fetchOlder, past } from "./progress.js";
import { Rows } from "./rows.js";
import { badge, bdi, button, byId, make, plural, rowName, when } from "./text.js";

/** @import { PastEvent, TextAnswer, Verdict } from "./messages" */

const [list, people, detail] = byId("events", "people", "judged-detail");
const HINT = "Choose a verdict to see its text, or to change it: a, n or s on a row.";
const panel = new Panel(detail, give, HINT);

/**
 * Undone, or another verdict was given since.
 * @param {PastEvent} event
 */
const gone = (event) => event.undone || event.replaced;

const rows = new Rows(list, {
  draw: (/** @type {PastEvent} */ event) => [
    make("span", { class: "num" }, when(event.at)),
    make("span", { class: "line" },
      make(gone(event) ? "s" : "span", {}, event.n > 1 ? `${plural(event.n, "text")}: ` : "",
        ...rowName(event.names, 32), bdi(event.text, 220))),
    make("span", { class: "who" }, event.who),
    make(gone(event) ? "s" : "span", {}, badge(event.verdict)),
  ],
  open: show,
});

/** @param {PastEvent} event */
async function show(event) {
  /** @type {TextAnswer} */
  let item;
  try { item = await get(`/api/texts/${event.ids[0]}`); } catch { return; }
  panel.show(item, { note: event.n > 1 ? `The first of ${plural(event.n, "text")} that were judged together` : "" });
}

export const closePanel = () => panel.close();

/**
 * Another verdict for the texts of a row.
 * @param {Verdict} verdict
 */
export function give(verdict) {
  const event = rows.present;
  if (!event) return;
  outbox.give(event.ids, verdict, event.text);
  emit("settle", event.ids);
}

/** @param {number} step */
export const move = (step) => rows.move(step);

const older = () => fetchOlder().catch(() => {}); // the button stays

export function draw() {
  const tail = [];
  if (!past.events.length) tail.push(make("li", { class: "empty" }, make("h2", {}, "Nothing is judged yet")));
  else if (!past.whole) tail.push(make("li", { class: "tail" }, button("Show older", older)));
  rows.set(past.events.map((event) => [event.event, event]), ...tail);
  if (!panel.card && past.events.length) panel.clear();
  const by = desk.state ? desk.state.people : [];
  people.textContent = by.map(({ who, n }) => `${who} ${n}`).join(" · ");
}

document.addEventListener("past", draw);
on("saved", async ({ ids }) => {
  const shown = panel.item;
  if (!shown || !ids.includes(shown.id)) return;
  try { panel.card?.show(await get(`/api/texts/${shown.id}`)); } catch { /* it stays as it is */ }
});
