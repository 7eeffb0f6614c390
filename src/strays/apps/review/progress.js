// How far one is: judged, found, still hidden, and when the model learns next.
import { desk, get, on } from "./api.js";
import { outbox } from "./outbox.js";
import { byId, element, make, number, plural } from "./text.js";

/** @import { HistoryAnswer, PastEvent, Verdict } from "./messages" */

const [count, hidden, learning] = byId("count", "hidden", "learning");
const curve = element("curve", SVGSVGElement);
const MOST = 1000; // events in the curve
const LATEST = 100;
const NEWS = 6000;

/**
 * All verdicts, the last first, as far back as was asked for.
 * @type {{ events: PastEvent[], whole: boolean }}
 */
export const past = { events: [], whole: false };
let known = -1;
let fetching = false;
let newsUntil = 0; // what was learnt is shown for a while

function drawNumbers() {
  const { state } = desk;
  if (!state) return;
  const waiting = outbox.waiting.filter((entry) => entry.kind === "verdict");
  /** @param {Verdict} verdict */
  const pending = (verdict) => waiting.reduce((n, entry) => n + (entry.verdict === verdict ? entry.ids.length : 0), 0);
  const judged = state.judged.normal + state.judged.anomaly + pending("normal") + pending("anomaly");
  const skipped = state.judged.skipped + pending("skip");
  const rest = ` of ${plural(state.n_texts, "text")}${skipped ? `, ${number(skipped)} skipped` : ""}`;
  count.replaceChildren(strong(number(judged)), " judged", soft(rest));
  const about = state.n_open ? state.hidden : null; // nothing can hide where all is judged
  hidden.replaceChildren(strong(number(state.judged.anomaly + pending("anomaly")), "is-anomaly"), " found");
  hidden.title = "";
  if (about) {
    const [estimate, low, high] = [about.estimate, about.low, about.high].map((n) => number(Math.max(0, n)));
    hidden.append(soft(about.high < 0.5 ? ", probably all there are" : `, about ${estimate} more (${low} to ${high})`));
  } else if (state.n_open && state.no_estimate) {
    hidden.append(soft(`; no estimate of how many more yet: ${state.no_estimate}`));
    hidden.title = state.no_estimate; // there may be no room for all of it
  }
  if (state.refitting) {
    const n = state.judged.normal + state.judged.anomaly + state.given.normal + state.given.anomaly;
    learning.textContent = `learning from ${plural(n, "label")}…`;
  } else {
    const more = Math.max(1, state.every - state.fresh - waiting.length);
    const { learnt } = state;
    const did = learnt.n_labels ? `learnt from ${plural(learnt.n_labels, "label")}` : "no labels yet";
    const news = performance.now() < newsUntil && learnt.says;
    const next = ` · ${learnt.n_labels ? "again" : "learns"} after ${more} more`;
    learning.replaceChildren(strong(did), news ? `: ${learnt.says}` : next);
    learning.title = learnt.says || "";
  }
  learning.classList.toggle("busy", state.refitting);
}

/**
 * @param {string} words
 * @param {string} [kind]
 */
const strong = (words, kind = "") => make("b", { class: kind }, words);

/** @param {string} words */
const soft = (words) => make("span", { class: "soft" }, words);

/** Anomalies found (upwards) against texts judged (to the right). */
function drawCurve() {
  /** @type {Map<number, Verdict>} */
  const verdicts = new Map();
  const points = [[0, 0]];
  let found = 0;
  for (const event of past.events.toReversed()) {
    if (event.undone || event.verdict === "skip") continue;
    for (const id of event.ids) {
      found += Number(event.verdict === "anomaly") - Number(verdicts.get(id) === "anomaly");
      verdicts.set(id, event.verdict);
    }
    points.push([verdicts.size, found]);
  }
  const [across, up] = [Math.max(10, verdicts.size), Math.max(3, ...points.map((point) => point[1]))];
  /** @param {number[]} point */
  const at = ([x, y]) => `${((120 * x) / across).toFixed(1)} ${(25 - (23 * y) / up).toFixed(1)}`;
  const path = `M${points.map(at).join("L")}`;
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path);
  const area = document.createElementNS("http://www.w3.org/2000/svg", "path");
  area.setAttribute("d", `${path}V26H0Z`);
  area.setAttribute("class", "area");
  curve.replaceChildren(area, line);
  const words = `${plural(found, "anomaly", "anomalies")} found in ${plural(verdicts.size, "verdict")}`;
  curve.setAttribute("aria-label", words);
}

/** The latest events, or at first as many as the curve shows. */
export async function fetchPast() {
  if (fetching || !desk.state) return;
  fetching = true;
  try {
    const limit = known < 0 ? MOST : LATEST;
    const aim = desk.state.last_event;
    /** @type {HistoryAnswer} */
    const { events } = await get(`/api/history?limit=${limit}`);
    const oldest = events.at(-1)?.event ?? Infinity;
    const older = known < 0 || events.length < limit ? [] : past.events.filter((event) => event.event < oldest);
    past.events = [...events, ...older];
    past.whole = events.length < limit || (known >= 0 && past.whole);
    known = aim;
    drawCurve();
    document.dispatchEvent(new Event("past"));
  } catch { /* the next state asks again */ } finally {
    fetching = false;
  }
}

/** Older events than those at hand. */
export async function fetchOlder() {
  const oldest = past.events.at(-1);
  if (!oldest) return;
  /** @type {HistoryAnswer} */
  const { events } = await get(`/api/history?limit=${LATEST}&before=${oldest.event}`);
  past.events.push(...events);
  past.whole = events.length < LATEST;
  document.dispatchEvent(new Event("past"));
}

on("state", ({ state }) => {
  drawNumbers();
  if (state.last_event !== known) fetchPast();
});
on("outbox", drawNumbers);
on("learnt", () => {
  newsUntil = performance.now() + NEWS;
  drawNumbers();
  setTimeout(drawNumbers, NEWS + 50);
});
