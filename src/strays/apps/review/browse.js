// All texts, searched, filtered and sorted; judged right in the list.
import { get, hear, tell } from "./api.js";
import { Panel } from "./card.js";
import { outbox } from "./outbox.js";
import { Rows } from "./rows.js";
import { badge, bdi, button, byId, make, plural } from "./text.js";

const PAGE = 50;
const [search, label, sort, total, list] = byId("search", "label", "sort", "total", "rows");
const HINT = "Choose a text to see why it scores as it does. On a row, a, n and s judge it.";
let items = [];
let found = 0;
let turn = 0; // of the last request: answers to older ones are dropped
let typing = 0;

const panel = new Panel(...byId("browse-detail"), give, HINT);
const rows = new Rows(list, {
  draw: (item) => [
    make("span", { class: "num", title: "anomaly score" }, item.anomaly_score.toFixed(2)),
    make("span", { class: "line" }, bdi(item.text, 220)),
    item.label ? badge(item.label, outbox.holds(item.id)) : flag(item),
  ],
  open: (item) => panel.show(item),
});

const flag = ({ flagged }) => make("span", { class: "badge" }, flagged ? "flagged" : "");
export const closePanel = () => panel.close();

export async function fetchRows(more = false) {
  const mine = ++turn;
  const flagged = label.value === "flagged";
  const query = new URLSearchParams({
    search: search.value.trim(), label: flagged ? "any" : label.value, sort: sort.value,
    offset: more ? items.length : 0, limit: PAGE,
  });
  if (flagged) query.set("flagged", "true");
  let answer;
  try {
    answer = await get(`/api/texts?${query}`);
  } catch (trouble) {
    if (mine === turn) total.textContent = trouble.message;
    return;
  }
  if (mine !== turn) return;
  items = more ? [...items, ...answer.items] : answer.items;
  found = answer.total;
  drawRows(!more);
}

function drawRows(fresh) {
  total.textContent = found ? plural(found, "text") : "";
  const tail = [];
  if (!items.length) {
    const clear = () => { search.value = ""; label.value = "any"; fetchRows(); search.focus(); };
    const words = search.value.trim() ? "Nothing is like that" : "Nothing here yet";
    tail.push(make("li", { class: "empty" }, make("h2", {}, words), button("Show all texts", clear)));
  } else if (items.length < found) {
    const more = button(`Show ${Math.min(PAGE, found - items.length)} more`, () => fetchRows(true));
    tail.push(make("li", { class: "tail" }, more));
  }
  rows.set(items.map((item) => [item.id, item]), ...tail);
  if (fresh) {
    list.scrollTop = 0;
    panel.clear(items.length ? HINT : "");
  }
}

/** A verdict for the row one is on. */
export function give(verdict) {
  const item = rows.present;
  if (!item) return;
  outbox.give([item.id], verdict, item.text);
  tell("settle", [item.id]);
  relabel([item.id], verdict);
}

function relabel(ids, verdict) {
  for (const id of ids) {
    const at = items.findIndex((item) => item.id === id);
    if (at < 0) continue;
    items[at] = { ...items[at], label: verdict };
    rows.update(id, items[at]);
    if (panel.has([id])) panel.card.show(items[at]);
  }
}

export const move = (step) => rows.move(step);

export function open(filter) {
  if (filter) { search.value = ""; label.value = filter; }
  fetchRows();
}

export function toSearch() {
  search.focus();
  search.select();
}

document.getElementById("filters").addEventListener("submit", (event) => { event.preventDefault(); fetchRows(); });
search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(fetchRows, 150); });
search.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); rows.move(0); }
  if (event.key === "Escape") { event.preventDefault(); search.blur(); }
});
for (const choice of [label, sort]) choice.addEventListener("change", () => fetchRows());
hear("saved", ({ ids, verdict }) => relabel(ids, verdict));
hear("undone", async ({ ids }) => {
  for (const id of ids) {
    if (!items.some((item) => item.id === id)) continue;
    // What holds again may be an older verdict, or a label that came with the file.
    try { const { label: now } = await get(`/api/texts/${id}`); relabel([id], now); } catch { relabel([id], null); }
  }
});
