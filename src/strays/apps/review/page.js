// The page as a whole: views, keys, and asking the desk how things stand.
import { desk, get, hear, know, tell } from "./api.js";
import * as browse from "./browse.js";
import * as map from "./desk_map.js";
import "./dialogs.js";
import * as judged from "./judged.js";
import { draw, fetchQueue, holdOn, judge, look, say, undo } from "./judge.js";
import { outbox } from "./outbox.js";
import "./progress.js";
import { plural, sentence } from "./text.js";

const IDLE = 3000; // milliseconds between looks at the desk's state
const BUSY = 1000; // while it learns or saves
const $ = (id) => document.getElementById(id);
const VIEWS = ["judge", "browse", "map", "judged"];
// What keys and buttons do, view by view.
const ACTS = {
  judge: { give: judge, move: look },
  browse: { give: browse.give, move: browse.move, leave: browse.closePanel, enter: browse.open },
  map: { give: map.give, move: map.move, leave: map.clear, enter: map.open },
  judged: { give: judged.give, move: judged.move, leave: judged.closePanel, enter: judged.draw },
};
let view = "judge";

// ---- views ----------------------------------------------------------------------------------------------------------

function go(wish) {
  const [name, filter] = wish.split(":");
  view = VIEWS.includes(name) ? name : "judge";
  for (const one of VIEWS) $(one).hidden = one !== view;
  for (const button of document.querySelectorAll("nav [data-view]")) {
    if (button.dataset.view === view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
  document.body.dataset.view = view;
  if (location.hash.slice(1) !== view) history.pushState(null, "", `#${view}`);
  if (desk.state && ACTS[view].enter) ACTS[view].enter(filter);
}

for (const button of document.querySelectorAll("nav [data-view]")) {
  button.addEventListener("click", () => go(button.dataset.view));
}
addEventListener("popstate", () => go(location.hash.slice(1)));
hear("view", (wish) => (wish === "save" ? $("save").showModal() : go(wish)));

// ---- keys -----------------------------------------------------------------------------------------------------------

const KEYS = {
  n: () => act("normal"), a: () => act("anomaly"), s: () => act("skip"), u: () => act("undo"),
  j: () => act("ahead"), k: () => act("back"), ArrowRight: () => act("ahead"), ArrowLeft: () => act("back"),
  ArrowDown: () => act("ahead"), ArrowUp: () => act("back"),
  "/": () => { go("browse"); browse.toSearch(); },
  m: () => go("map"), l: () => go("judged"), e: () => { if (view === "map") map.switchMode(); },
  "?": () => $("help").showModal(),
  Escape: () => { if (!ACTS[view].leave || !ACTS[view].leave()) go("judge"); },
};

// In the view of one text these scroll it, wherever the focus is.
const scroll = (share) => $("present").parentElement.scrollBy({ top: share * innerHeight });
const SCROLL = {
  ArrowDown: () => scroll(0.1), ArrowUp: () => scroll(-0.1), PageDown: () => scroll(0.5), PageUp: () => scroll(-0.5),
};

function act(name) {
  if (name === "undo") undo();
  else if (name === "ahead") ACTS[view].move(1);
  else if (name === "back") ACTS[view].move(-1);
  else ACTS[view].give(name);
}

const inField = (target) => target instanceof Element && target.closest("input, textarea, select, [contenteditable]");

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
hear("key", onKey);
hear("act", act);
hear("watch", () => watch());

// ---- how the desk is ------------------------------------------------------------------------------------------------

let timer = 0;
async function watch() {
  clearTimeout(timer);
  if (document.hidden) return;
  const asked = performance.now();
  try {
    const state = await get("/api/state");
    const first = !desk.state;
    tell("reach", { gone: false });
    know(state, asked);
    if (first) begin();
    else holdOn();
  } catch (trouble) {
    tell("reach", { gone: true, message: trouble.message, locked: trouble.locked });
  }
  const { state } = desk;
  const busy = !state || state.refitting || state.save?.state === "working" || !$("gone").hidden;
  clearTimeout(timer);
  timer = setTimeout(watch, busy ? BUSY : IDLE);
}

function begin() {
  const left = outbox.recall();
  if (left.length) tell("settle", left.flatMap((entry) => entry.ids));
  outbox.send();
  fetchQueue();
  if (ACTS[view].enter) ACTS[view].enter();
}

document.addEventListener("visibilitychange", watch);

hear("reach", ({ gone, message, locked }) => {
  const was = !$("gone").hidden;
  $("gone").hidden = !gone;
  if (gone) {
    const n = outbox.waiting.length;
    const waiting = n ? ` ${plural(n, "verdict")} not saved yet: kept here and sent as soon as it answers.` : "";
    const words = `${message}${waiting}${locked ? "" : " Is strays review still running?"}`;
    if ($("gone").textContent !== words) $("gone").textContent = words;
  } else if (was) {
    say("The desk answers again.");
    outbox.send();
    fetchQueue();
  }
});

hear("state", ({ state, before }) => {
  const name = (state.file || state.project).split(/[\\/]/).pop();
  document.title = `${name} · strays review`;
  $("file").textContent = name;
  $("file").title = state.file || state.project;
  $("trouble").hidden = !state.trouble;
  $("trouble").textContent = `${sentence(state.trouble)}. The last model stays; you can go on judging.`;
  $("about").textContent = `${plural(state.n_rows, "row")}, ${plural(state.n_texts, "different text")}. ` +
    `Encoder ${state.encoder}, detector ${state.detector}; flagged: ${state.threshold}. ` +
    `Verdicts are in ${state.project}.`;
  const done = before && before.refitting && !state.refitting && !state.trouble;
  if (done) say(`Learnt from ${plural(state.learnt.n_labels, "label")}.`);
  if (state.refitting && before && !before.refitting) watch(); // look more often from now on
});

go(location.hash.slice(1) || "judge");
draw();
watch();
