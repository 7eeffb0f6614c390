// All texts, searched, filtered and sorted; judged right in the list.
import { emit, get, on, troubleOf } from "./api.js";
import { Panel } from "./card.js";
import { outbox } from "./outbox.js";
import { Rows } from "./rows.js";
import { badge, bdi, button, byId, element, make, plural, rowName } from "./text.js";

/** @import { Item, TextAnswer, TextsAnswer, Verdict } from "./messages" */

const PAGE = 50;
const search = element("search", HTMLInputElement);
const [label, sort] = [element("label", HTMLSelectElement), element("sort", HTMLSelectElement)];
const [total, list, filters, detail] = byId("total", "rows", "filters", "browse-detail");
const HINT = "Choose a text to see why it scores as it does. On a row, a, n and s judge it.";
/** @type {Item[]} */
let items = [];
let found = 0;
let turn = 0; // of the last request: answers to older ones are dropped
let typing = 0;

const panel = new Panel(detail, give, HINT);
const rows = new Rows(list, {
  draw: (/** @type {Item} */ item) => [
    make("span", { class: "num", title: "anomaly score" }, item.anomaly_score.toFixed(2)),
    make("span", { class: "line" }, ...rowName(item.names, 32), bdi(item.text, 220)),
    item.label ? badge(item.label, outbox.holds(item.id)) : flag(item),
  ],
  open: (item) => panel.show(item),
});

/** @param {Item} item */
const flag = ({ flagged }) => make("span", { class: "badge" }, flagged ? "flagged" : "");
export const closePanel = () => panel.close();

/** @param {boolean} [more] whether to add to those that are here */
export async function fetchRows(more = false) {
  const mine = ++turn;
  const flagged = label.value === "flagged";
  const query = new URLSearchParams({
    search: search.value.trim(), label: flagged ? "any" : label.value, sort: sort.value,
    offset: String(more ? items.length : 0), limit: String(PAGE),
  });
  if (flagged) query.set("flagged", "true");
  /** @type {TextsAnswer} */
  let answer;
  try {
    answer = await get(`/api/texts?${query}`);
  } catch (thrown) {
    if (mine === turn) total.textContent = troubleOf(thrown).message;
    return;
  }
  if (mine !== turn) return;
  items = more ? [...items, ...answer.items] : answer.items;
  found = answer.total;
  drawRows(!more);
}

/** @param {boolean} fresh whether these are other rows than before */
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

/**
 * A verdict for the row one is on.
 * @param {Verdict} verdict
 */
export function give(verdict) {
  const item = rows.present;
  if (!item) return;
  outbox.give([item.id], verdict, item.text);
  emit("settle", [item.id]);
  relabel([item.id], verdict);
}

/**
 * @param {number[]} ids
 * @param {Verdict | null} verdict
 */
function relabel(ids, verdict) {
  for (const id of ids) {
    const at = items.findIndex((item) => item.id === id);
    if (at < 0) continue;
    items[at] = { ...items[at], label: verdict };
    rows.update(id, items[at]);
    if (panel.has([id])) panel.card?.show(items[at]);
  }
}

/** @param {number} step */
export const move = (step) => rows.move(step);

/** @param {string} [filter] */
export function open(filter) {
  if (filter) { search.value = ""; label.value = filter; }
  fetchRows();
}

export function toSearch() {
  search.focus();
  search.select();
}

filters.addEventListener("submit", (event) => { event.preventDefault(); fetchRows(); });
search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(fetchRows, 150); });
search.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); rows.move(0); }
  if (event.key === "Escape") { event.preventDefault(); search.blur(); }
});
for (const choice of [label, sort]) choice.addEventListener("change", () => fetchRows());
on("saved", ({ ids, verdict }) => relabel(ids, verdict ?? null));
on("undone", async ({ ids }) => {
  for (const id of ids) {
    if (!items.some((item) => item.id === id)) continue;
    // What holds again may be an older verdict, or a label that came with the file.
    try {
      /** @type {TextAnswer} */
      const { label: now } = await get(`/api/texts/${id}`);
      relabel([id], now);
    } catch { relabel([id], null); }
  }
});
