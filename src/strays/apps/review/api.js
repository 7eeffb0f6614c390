// Talking to the desk: requests, who this tab is, and events between the parts of the page.

/** @import { Events, State } from "./messages" */

/** Why a request did not do what it should. `gone`: nobody answered, or the desk broke; trying again may help. */
export class DeskError extends Error {
  /**
   * @param {string} message
   * @param {{ gone?: boolean, locked?: boolean }} [how]
   */
  constructor(message, { gone = false, locked = false } = {}) {
    super(message);
    this.gone = gone;
    this.locked = locked;
  }
}

/**
 * What went wrong, as a DeskError whatever was thrown.
 * @param {unknown} thrown
 */
export function troubleOf(thrown) {
  if (thrown instanceof DeskError) return thrown;
  return new DeskError(thrown instanceof Error ? thrown.message : String(thrown));
}

const LOCKED = "Open the link that strays review printed: it lets you in. A desk that was started anew has a new link.";

/**
 * @param {Storage} store
 * @param {string} key
 */
function kept(store, key) { try { return store.getItem(key); } catch { return null; } }

/**
 * @param {Storage} store
 * @param {string} key
 * @param {string} value
 */
function keep(store, key, value) { try { store.setItem(key, value); } catch { /* a browser that keeps nothing */ } }

// The token comes in the link, after the #, which browsers send to nobody. It is kept for all tabs of this desk: other
// ports of this machine have a storage of their own, and other tabs find a new token here when the desk is started anew.
const TOKEN = "strays-token";
let given = ""; // for a browser that keeps nothing
const token = () => kept(localStorage, TOKEN) ?? given;

/** Take the token from the page's address, and out of it: it is not to be seen, nor kept among the pages visited. */
function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (!found) return false;
  given = found[1];
  keep(localStorage, TOKEN, given);
  history.replaceState(null, "", location.pathname);
  return true;
}
takeToken();
// The link of a desk that was started anew, opened in this tab, changes nothing but what follows the #.
addEventListener("popstate", () => { if (takeToken()) emit("watch", undefined); });

/**
 * @param {string} path
 * @param {RequestInit} [options]
 */
async function request(path, options) {
  let answer;
  try {
    const headers = { ...options?.headers, Authorization: `Bearer ${token()}` };
    answer = await fetch(path, { cache: "no-store", credentials: "omit", ...options, headers });
  } catch {
    throw new DeskError("The desk does not answer.", { gone: true });
  }
  if (answer.ok) return answer;
  let message = `The desk answered ${answer.status}.`;
  try { message = (await answer.json()).error.message; } catch { /* not one of the desk's own answers */ }
  if (answer.status === 401 || answer.status === 403) throw new DeskError(LOCKED, { locked: true });
  throw new DeskError(message, { gone: answer.status >= 500 });
}

/**
 * The desk's answer; its type is the caller's to name, from messages.d.ts.
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<any>}
 */
async function json(path, options) {
  const answer = await request(path, options);
  try {
    const body = await answer.json();
    return answer.status === 202 ? { working: true, ...body } : body;
  } catch {
    throw new DeskError("The desk's answer broke off.", { gone: true });
  }
}

/** @param {string} path */
export const get = (path) => json(path);

/**
 * @param {string} path
 * @param {object} body
 */
export const post = (path, body) => json(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

/**
 * Have the browser save what a path answers. A plain link would not carry the token.
 * @param {string} path
 */
export async function download(path) {
  const answer = await request(path);
  const [, name = ""] = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "") ?? [];
  let content;
  try { content = await answer.blob(); } catch { throw new DeskError("The desk's answer broke off.", { gone: true }); }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // it has begun by then
}

function ownName() {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  const name = Array.from(bytes, (byte) => byte.toString(36).padStart(2, "0")).join("");
  keep(sessionStorage, "strays-client", name);
  return name;
}

/** What all parts share: this tab's name, the person's, and the desk's last known state. */
export const desk = {
  client: kept(sessionStorage, "strays-client") || ownName(),
  /** @type {State | null} */
  state: null,
  get who() { return kept(localStorage, "strays-who") || ""; },
  set who(name) { keep(localStorage, "strays-who", name.trim()); },
};

// A tab that was duplicated brings a copy of the other's name. Whoever holds the lock of a name, has it; a page that is
// loaded again waits until the one before has let go. Without locks (plain http from another machine) both keep it.
const LETS_GO = 500; // milliseconds

/** @param {string} name */
const claim = (name) => new Promise((resolve) => {
  const held = () => { resolve(true); return new Promise(() => {}); }; // until this page is gone
  navigator.locks.request(`strays-tab ${name}`, { signal: AbortSignal.timeout(LETS_GO) }, held)
    .catch(() => resolve(false));
});

/** Resolves once `desk.client` is this tab's own. */
export const named = (async () => {
  while (navigator.locks && !await claim(desk.client)) desk.client = ownName();
})();

const bus = new EventTarget();

/**
 * Tell all listeners of an event.
 * @template {keyof Events} Name
 * @param {Name} name
 * @param {Events[Name]} detail
 */
export const emit = (name, detail) => bus.dispatchEvent(new CustomEvent(name, { detail }));

/**
 * Listen to an event.
 * @template {keyof Events} Name
 * @param {Name} name
 * @param {(detail: Events[Name]) => void} does
 */
export const on = (name, does) => bus.addEventListener(name, (event) => {
  if (event instanceof CustomEvent) does(event.detail);
});

let newest = 0;
/**
 * Take over a state, unless one that was asked for later is already here.
 * @param {State} state
 * @param {number} asked when it was asked for
 */
export function setState(state, asked) {
  if (asked < newest) return;
  newest = asked;
  const before = desk.state;
  desk.state = state;
  emit("state", { state, before });
  if (before && before.generation !== state.generation) emit("learnt", state);
}
