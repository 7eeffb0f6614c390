// The page as a whole: views, keys, and asking the desk how things stand.
import { desk, emit, get, named, on, setState, troubleOf } from "./api.js";
import * as browse from "./browse.js";
import * as map from "./desk_map.js";
import "./dialogs.js";
import * as judged from "./judged.js";
import { announce, draw, fetchQueue, holdOn, judge, look, undo } from "./judge.js";
import { outbox } from "./outbox.js";
import "./progress.js";
import { element, plural, sentence } from "./text.js";

/** @import { State, Verdict } from "./messages" */

const IDLE = 3000; // milliseconds between looks at the desk's state
const BUSY = 1000; // while it learns or saves
/** @param {string} id */
const $ = (id) => element(id, HTMLElement);
/**
 * What keys and buttons do in a view. `leave` says whether there was something to leave within the view.
 * @typedef {object} View
 * @property {(verdict: Verdict) => void} give
 * @property {(step: number) => void} move
 * @property {() => boolean} [leave]
 * @property {(filter?: string) => unknown} [enter]
 */
/** @type {Record<string, View>} */
const VIEWS = {
  judge: { give: judge, move: look },
  browse: { give: browse.give, move: browse.move, leave: browse.closePanel, enter: browse.open },
  map: { give: map.give, move: map.move, leave: map.clear, enter: map.open },
  judged: { give: judged.give, move: judged.move, leave: judged.closePanel, enter: judged.draw },
};
let view = "judge";
/** @type {NodeListOf<HTMLElement>} */
const links = document.querySelectorAll("nav [data-view]");

// ---- views ----------------------------------------------------------------------------------------------------------

/** @param {string} wish a view, for browsing also with a filter: "browse:skip" */
function go(wish) {
  const [name, filter] = wish.split(":");
  view = name in VIEWS ? name : "judge";
  for (const one of Object.keys(VIEWS)) $(one).hidden = one !== view;
  for (const button of links) {
    if (button.dataset.view === view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  document.body.dataset.view = view;
  if (location.hash.slice(1) !== view) history.pushState(null, "", `#${view}`);
  if (desk.state) VIEWS[view].enter?.(filter);
}

for (const button of links) button.addEventListener("click", () => go(button.dataset.view ?? ""));
addEventListener("popstate", () => go(location.hash.slice(1)));
on("view", (wish) => (wish === "save" ? element("save", HTMLDialogElement).showModal() : go(wish)));

// ---- keys -----------------------------------------------------------------------------------------------------------

/** @type {Record<string, () => void>} */
const KEYS = {
  n: () => act("normal"), a: () => act("anomaly"), s: () => act("skip"), u: () => act("undo"),
  j: () => act("ahead"), k: () => act("back"), ArrowRight: () => act("ahead"), ArrowLeft: () => act("back"),
  ArrowDown: () => act("ahead"), ArrowUp: () => act("back"),
  "/": () => { go("browse"); browse.toSearch(); },
  m: () => go("map"), l: () => go("judged"), e: () => { if (view === "map") map.switchMode(); },
  "?": () => element("help", HTMLDialogElement).showModal(),
  Escape: () => { if (!VIEWS[view].leave?.()) go("judge"); },
};

// In the view of one text these scroll it, wherever the focus is.
/** @param {number} share of the window's height */
const scroll = (share) => $("present").parentElement?.scrollBy({ top: share * innerHeight });
/** @type {Record<string, () => void>} */
const SCROLL = {
  ArrowDown: () => scroll(0.1), ArrowUp: () => scroll(-0.1), PageDown: () => scroll(0.5), PageUp: () => scroll(-0.5),
};

/** @param {string} name */
function act(name) {
  if (name === "undo") undo();
  else if (name === "ahead") VIEWS[view].move(1);
  else if (name === "back") VIEWS[view].move(-1);
  else if (name === "normal" || name === "anomaly" || name === "skip") VIEWS[view].give(name);
}

/** @param {EventTarget | null} target */
const inField = (target) => target instanceof Element && target.closest("input, textarea, select, [contenteditable]");

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.defaultPrevented || event.repeat || event.isComposing || inField(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const undoes = key === "z" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
  if (!undoes && (event.ctrlKey || event.metaKey || event.altKey)) return;
  const does = undoes ? () => act("undo") : (view === "judge" && SCROLL[key]) || KEYS[key];
  if (!does) return;
  event.preventDefault();
  does();
}

document.addEventListener("keydown", onKey);
on("key", onKey);
on("act", act);
on("watch", () => watch());

// ---- how the desk is ------------------------------------------------------------------------------------------------

let timer = 0;
async function watch() {
  clearTimeout(timer);
  if (document.hidden) return;
  await named;
  const asked = performance.now();
  try {
    /** @type {State} */
    const state = await get("/api/state");
    const first = !desk.state;
    emit("reach", { gone: false });
    setState(state, asked);
    if (first) begin(state.project);
    else holdOn();
  } catch (thrown) {
    const trouble = troubleOf(thrown);
    emit("reach", { gone: true, message: trouble.message, locked: trouble.locked });
  }
  const { state } = desk;
  const busy = !state || state.refitting || state.save?.state === "working" || !$("gone").hidden;
  clearTimeout(timer);
  timer = setTimeout(watch, busy ? BUSY : IDLE);
}

/** @param {string} project */
function begin(project) {
  const left = outbox.recall(project);
  if (left.length) emit("settle", left.flatMap((entry) => entry.ids));
  outbox.send();
  fetchQueue();
  VIEWS[view].enter?.();
}

document.addEventListener("visibilitychange", watch);

on("reach", ({ gone, message, locked }) => {
  const was = !$("gone").hidden;
  $("gone").hidden = !gone;
  if (gone) {
    const n = outbox.waiting.length;
    const waiting = n ? ` ${plural(n, "verdict")} not saved yet: kept here and sent as soon as it answers.` : "";
    const words = `${message}${waiting}${locked ? "" : " Is strays review still running?"}`;
    if ($("gone").textContent !== words) $("gone").textContent = words;
  } else if (was) {
    announce("The desk answers again.");
    outbox.send();
    fetchQueue();
  }
});

on("state", ({ state, before }) => {
  const name = (state.file || state.project).split(/[\\/]/).pop() ?? "";
  document.title = `${name} · strays review`;
  $("file").textContent = name;
  $("file").title = state.file || state.project;
  $("trouble").hidden = !state.trouble;
  $("trouble").textContent = `${sentence(state.trouble)}. The last model stays; you can go on judging.`;
  $("about").textContent = `${plural(state.n_rows, "row")}, ${plural(state.n_texts, "different text")}. ` +
    `Encoder ${state.encoder}, detector ${state.detector}; flagged: ${state.threshold}. ` +
    `Verdicts are in ${state.project}.`;
  const done = before && before.refitting && !state.refitting && !state.trouble;
  if (done) announce(`Learnt from ${plural(state.learnt.n_labels, "label")}.`);
  if (state.refitting && before && !before.refitting) watch(); // look more often from now on
});

go(location.hash.slice(1) || "judge");
draw();
watch();
