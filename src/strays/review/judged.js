// What was judged so far, by whom and when; a verdict can be changed here.
import { desk, get, hear, tell } from "./api.js";
import { Card, verdictButtons } from "./card.js";
import { outbox } from "./outbox.js";
import { fetchOlder, past } from "./progress.js";
import { Rows } from "./rows.js";
import { badge, bdi, make, plural, when } from "./text.js";

const [list, people, panel] = ["events", "people", "judged-detail"].map((id) => document.getElementById(id));
let card = null;

const rows = new Rows(list, {
  draw: (event) => [
    make("span", { class: "num" }, when(event.at)),
    make("span", { class: "line" }, make(event.undone ? "s" : "span", {}, event.n > 1 ? `${plural(event.n, "text")}: ` : "", bdi(event.text, 220))),
    make("span", { class: "who" }, event.who),
    make(event.undone ? "s" : "span", {}, badge(event.verdict)),
  ],
  open: show,
});

async function show(event) {
  let item;
  try { item = await get(`/api/texts/${event.ids[0]}`); } catch { return; }
  if (!card) {
    panel.replaceChildren(make("button", { type: "button", class: "quiet close", "aria-label": "Close", onclick: closePanel }, "✕"));
    card = new Card(panel, { history: true });
    panel.append(verdictButtons(give));
  }
  panel.parentElement.classList.add("opened");
  card.show(item, { note: event.n > 1 ? `The first of ${plural(event.n, "text")} that were judged together` : "" });
}

export function closePanel() {
  const open = panel.parentElement.classList.contains("opened");
  panel.parentElement.classList.remove("opened");
  return open && innerWidth < 800;
}

/** Another verdict for the texts of a row. */
export function give(verdict) {
  const event = rows.present;
  if (!event) return;
  outbox.give(event.ids, verdict, event.text);
  tell("settle", event.ids);
}

export const move = (step) => rows.move(step);

export function draw() {
  const tail = [];
  if (!past.events.length) tail.push(make("li", { class: "empty" }, make("h2", {}, "Nothing is judged yet")));
  else if (!past.whole) tail.push(make("li", { class: "tail" }, make("button", { type: "button", class: "big", onclick: () => fetchOlder().catch(() => {}) }, "Show older")));
  rows.set(past.events.map((event) => [event.event, event]), ...tail);
  if (!panel.childElementCount && past.events.length) {
    panel.replaceChildren(make("p", { class: "soft hint" }, "Choose a verdict to see its text, or to change it: a, n or s on a row."));
  }
  const by = desk.state ? desk.state.people : [];
  people.textContent = by.map(({ who, n }) => `${who} ${n}`).join(" · ");
}

document.addEventListener("past", draw);
hear("saved", async ({ ids }) => {
  if (!card || !ids.includes(card.item.id)) return;
  try { card.show(await get(`/api/texts/${card.item.id}`)); } catch { /* it stays as it is */ }
});
