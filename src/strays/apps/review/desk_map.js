// The map of all texts: pick one, or encircle a region and judge it in one go.
import { desk, emit, get, on, troubleOf } from "./api.js";
import { Panel, verdictButtons } from "./card.js";
import { queue } from "./judge.js";
import { outbox } from "./outbox.js";
import { badge, bdi, button, byId, make, number, plain, plural, within } from "./text.js";

/** @import { Item, MapAnswer, MapValues, TextAnswer, Verdict } from "./messages" */

const SAMPLE = 8; // texts shown of a selection
const MANY = 2000; // of more texts than this, the flagged are not marked one by one: the colours tell enough
const HELP = "Map of the texts. Arrow keys move it, plus and minus zoom, 0 shows all; j and k go to the next plainer " +
  "or odder text, a and n judge it, e switches to selecting.";
const HINT = "Texts that are alike lie side by side. Click a point to read it. To judge a region in one go, choose " +
  "Select (or hold Shift) and encircle it.";
const [view, place, part, beside] = byId("map", "canvas", "map-part", "map-detail");
const panel = new Panel(beside, give, HINT);
panel.onclose = clear;
/** @type {StraysMap | null} */
let map = null;
/** @type {MapAnswer} */
let data = { generation: -1, ids: [], x: [], y: [], value: [], mark: [] }; // of the map, once there is one
let seen = -1; // the last event when the marks were asked for
let turn = 0; // of the last request for marks: answers to older ones are dropped
/** @type {Map<number, number>} */
let where = new Map(); // id -> its place in data
/** @type {number[]} */
let order = []; // places, the oddest first
let picked = -1;
/** @type {number[]} */
let selected = [];
let timer = 0;
let too = false; // whether a selection's verdict also replaces those that are there
/** @type {Map<number, Item>} */
const texts = new Map(); // id -> item

/**
 * @param {number} id
 * @returns {Promise<Item>}
 */
async function item(id) {
  const known = texts.get(id);
  if (known) return known;
  /** @type {TextAnswer} */
  const one = await get(`/api/texts/${id}`);
  texts.set(id, one);
  return one;
}

export async function open() {
  clearTimeout(timer);
  if (map) return refresh();
  /** @type {MapAnswer} */
  let answer;
  const event = desk.state ? desk.state.last_event : -1;
  try { answer = await get("/api/map"); } catch (thrown) { return wait(troubleOf(thrown).message); }
  if (answer.working) return wait("The map is being made…");
  seen = event;
  where = new Map(answer.ids.map((id, i) => [id, i]));
  data = { ...answer, mark: marks(answer) };
  place.replaceChildren();
  rank();
  map = new StraysMap(place, {
    ...data, label: HELP, text: tip, onPick: pick, onSelect: choose, wheel: "always",
  });
  setMode(mode());
  within(view, ".legend .if-few").hidden = data.ids.length > MANY;
  tellPart();
  ring();
  if (!beside.childElementCount) panel.clear();
}

/**
 * The desk's marks, and those of verdicts that are still on their way to it.
 * @param {MapValues} values
 */
function marks({ mark }) {
  const shown = mark.length > MANY ? mark.map((one) => (one === "flagged" ? "" : one)) : mark;
  for (const { kind, ids, verdict, too } of outbox.waiting) {
    if (kind !== "verdict" || !verdict || verdict === "skip") continue;
    for (const i of ids.map((id) => where.get(id))) {
      if (i !== undefined && (too || !isVerdict(shown[i]))) shown[i] = verdict;
    }
  }
  return shown;
}

/** Of a large corpus the map has a sample, and a region is of that sample. */
function tellPart() {
  const [here, all] = [data.ids.length, desk.state ? desk.state.n_texts : 0];
  part.hidden = here >= all;
  part.textContent = `${number(here)} of ${number(all)} texts are on the map; a region judges these.`;
}

/** @param {string} words */
function wait(words) {
  place.replaceChildren(make("div", { class: "empty" }, make("h2", {}, words)));
  timer = setTimeout(() => { if (!view.hidden) open(); }, 1000);
}

/** New colours after the model has learnt, new marks after anyone has judged: a region must know what is judged. */
async function refresh() {
  ring();
  const { state } = desk;
  if (!state || (state.generation === data.generation && state.last_event === seen)) return;
  try { await renew(); } catch { /* the colours it had stay */ }
}

async function renew() {
  const [mine, event, before] = [++turn, desk.state ? desk.state.last_event : -1, already()];
  /** @type {MapValues} */
  const answer = await get("/api/map/values");
  if (mine !== turn || !map) return;
  seen = event;
  Object.assign(data, answer, { mark: marks(answer) });
  rank();
  map.setValues(data.value, data.mark);
  if (selected.length && already() !== before) drawSelection();
}

function rank() {
  order = data.ids.map((_, i) => i).sort((i, j) => data.value[j] - data.value[i]);
}

/**
 * The hovered text; one that is not here yet is fetched, and shown if the pointer is still there.
 * @param {number} i
 */
function tip(i) {
  const id = data.ids[i];
  const short = (/** @type {Item} */ one) => [...(one.names[0] ? [plain(one.names[0], 60)] : []), plain(one.text, 240)].join("\n");
  const known = texts.get(id);
  if (known) return short(known);
  setTimeout(async () => {
    if (!map || map.hovered !== i) return;
    try {
      const one = await item(id);
      if (map.hovered === i) map.tip.textContent = short(one);
    } catch { /* no tip */ }
  }, 60);
  return "…";
}

function ring() {
  if (!map) return;
  const present = queue.present ? where.get(queue.present.id) : undefined;
  map.focus(picked >= 0 ? picked : present ?? -1);
}

/** @param {number} i */
async function pick(i) {
  clear();
  picked = i;
  ring();
  /** @type {Item} */
  let one;
  try { one = await item(data.ids[i]); } catch { return; }
  if (picked === i) panel.show(one);
}

/** @param {number[]} indices */
function choose(indices) {
  clear();
  if (!indices.length || !map) return;
  selected = indices;
  too = false;
  map.select(indices);
  drawSelection();
  renew().catch(() => { /* the desk leaves out what is judged */ });
}

/**
 * @param {string} mark
 * @returns {mark is "normal" | "anomaly"}
 */
const isVerdict = (mark) => mark === "normal" || mark === "anomaly";
const judgedAlready = (/** @type {number} */ i) => isVerdict(data.mark[i]);
const already = () => selected.filter(judgedAlready).length;

async function drawSelection() {
  const mine = selected;
  const n = already();
  const box = make("input", { type: "checkbox", checked: too, onchange: () => { too = box.checked; } });
  const asks = n ? [make("label", { class: "check" }, box, " change those that are judged already too")] : [];
  const sample = make("ul", { class: "near sample" });
  const words = `${plural(mine.length, "text")} selected${n ? `, ${number(n)} judged already` : ""}`;
  beside.replaceChildren(
    make("h2", { role: "status" }, words),
    verdictButtons(give, button("Clear", clear, "big", { title: "Clear (Esc)" })), ...asks,
    make("h3", {}, `${mine.length > SAMPLE ? `${SAMPLE} of them` : "All"}, from the oddest to the plainest`), sample);
  panel.open();
  const set = new Set(mine);
  const ranked = order.filter((i) => set.has(i));
  const step = Math.max(1, (ranked.length - 1) / (SAMPLE - 1));
  const some = Array.from({ length: Math.min(SAMPLE, ranked.length) }, (_, k) => ranked[Math.round(k * step)]);
  for (const i of some) {
    /** @type {Item} */
    let one;
    try { one = await item(data.ids[i]); } catch { return; }
    if (selected !== mine || !sample.isConnected) return;
    sample.append(make("li", {}, bdi(one.text, 200), " ", badge(isVerdict(data.mark[i]) ? data.mark[i] : null)));
  }
}

/** Let go of what is selected or picked; whether there was something. */
export function clear() {
  const something = selected.length > 0 || picked >= 0;
  selected = [];
  picked = -1;
  if (map) map.clearSelection();
  if (something) panel.clear();
  ring();
  return something;
}

/**
 * A verdict for the selected region, or for the picked text.
 * @param {Verdict} verdict
 */
export function give(verdict) {
  const chosen = selected.length ? selected.filter((i) => too || !judgedAlready(i)) : picked >= 0 ? [picked] : [];
  if (!chosen.length) return;
  const ids = chosen.map((i) => data.ids[i]);
  const first = texts.get(ids[0]) || [...texts.values()].find((one) => ids.includes(one.id));
  outbox.give(ids, verdict, first ? first.text : "", too || !selected.length);
  emit("settle", ids);
  relabel(ids, verdict);
  if (selected.length) clear();
}

/**
 * @param {number[]} ids
 * @param {Verdict | null} verdict
 */
function relabel(ids, verdict) {
  if (!map) return;
  for (const id of ids) {
    const known = texts.get(id);
    if (known) known.label = verdict;
    const i = where.get(id);
    if (i !== undefined) data.mark[i] = verdict === "skip" || !verdict ? "" : verdict;
  }
  map.setValues(data.value, data.mark);
  if (panel.item && ids.includes(panel.item.id)) panel.card?.show({ ...panel.item, label: verdict });
}

/**
 * To the next plainer (1) or odder (-1) text.
 * @param {number} step
 */
export function move(step) {
  if (!map) return;
  const at = picked < 0 ? (step > 0 ? 0 : order.length - 1) : order.indexOf(picked) + step;
  if (order[at] !== undefined) pick(order[at]);
}

/** @param {string} wish "pan" or "select" */
function setMode(wish) {
  if (map) map.setMode(wish);
  for (const button of modes) button.setAttribute("aria-pressed", String(button.dataset.mode === wish));
}

/** @type {HTMLElement[]} */
const modes = [...view.querySelectorAll("[data-mode]")].filter((button) => button instanceof HTMLElement);
const mode = () => modes.find((button) => button.getAttribute("aria-pressed") === "true")?.dataset.mode ?? "pan";
export const switchMode = () => setMode(mode() === "pan" ? "select" : "pan");
for (const button of modes) button.addEventListener("click", () => setMode(button.dataset.mode ?? "pan"));

// The map's own keys for walking and letting go would take the desk's away.
place.addEventListener("keydown", (event) => {
  if (["n", "p", "escape"].includes(event.key.toLowerCase()) && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.stopPropagation();
    emit("key", event);
  }
}, true);
on("present", ring);
on("undone", async ({ ids }) => {
  if (!map || !ids.length) return;
  try {
    for (const id of ids) texts.delete(id);
    await renew();
    if (panel.item && ids.includes(panel.item.id)) panel.card?.show(await item(panel.item.id));
  } catch { relabel(ids, null); }
});
on("state", () => {
  if (!map || view.hidden) return;
  tellPart();
  refresh();
});
on("saved", ({ kept }) => { // what others judged meanwhile is not as it was drawn here
  if (!map || !kept.length) return;
  for (const id of kept) texts.delete(id);
  renew().catch(() => {});
});
on("learnt", () => texts.clear());
on("settle", (ids) => { if (map && !selected.length) for (const id of ids) texts.delete(id); });
