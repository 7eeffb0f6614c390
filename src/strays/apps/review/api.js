// Talking to the desk: requests, who this tab is, and what the parts of the page tell each other.

/** Why a request did not do what it should. `gone`: nobody answered, or the desk broke; trying again may help. */
export class Trouble extends Error {
  constructor(message, { gone = false, locked = false } = {}) {
    super(message);
    this.gone = gone;
    this.locked = locked;
  }
}

const LOCKED = "The desk was started anew. Open the link that strays review printed, in this tab.";

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", ...options });
  } catch {
    throw new Trouble("The desk does not answer.", { gone: true });
  }
  if (answer.ok) return answer;
  let message = `The desk answered ${answer.status}.`;
  try { message = (await answer.json()).error.message; } catch { /* not one of the desk's own answers */ }
  if (answer.status === 401 || answer.status === 403) throw new Trouble(LOCKED, { locked: true });
  throw new Trouble(message, { gone: answer.status >= 500 });
}

async function json(path, options) {
  const answer = await ask(path, options);
  try {
    const body = await answer.json();
    return answer.status === 202 ? { working: true, ...body } : body;
  } catch {
    throw new Trouble("The desk's answer broke off.", { gone: true });
  }
}

export const get = (path) => json(path);
export const post = (path, body) => json(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

function kept(store, key) { try { return store.getItem(key); } catch { return null; } }
function keep(store, key, value) { try { store.setItem(key, value); } catch { /* a browser that keeps nothing */ } }

function ownName() {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  const name = Array.from(bytes, (byte) => byte.toString(36).padStart(2, "0")).join("");
  keep(sessionStorage, "strays-client", name);
  return name;
}

/** What all parts share: this tab's name, the person's, and the desk's last known state. */
export const desk = {
  client: kept(sessionStorage, "strays-client") || ownName(),
  state: null,
  get who() { return kept(localStorage, "strays-who") || ""; },
  set who(name) { keep(localStorage, "strays-who", name.trim()); },
};

// A tab that was duplicated brings a copy of the other's name: the older one keeps it.
const born = Date.now() + Math.random();
const tabs = new BroadcastChannel("strays-tabs");
tabs.onmessage = ({ data }) => {
  if (data.client !== desk.client || data.born === born) return;
  if (data.born > born) tabs.postMessage({ client: desk.client, born });
  else { desk.client = ownName(); tell("renamed"); }
};
tabs.postMessage({ client: desk.client, born });

const ears = new EventTarget();
export const tell = (name, detail) => ears.dispatchEvent(new CustomEvent(name, { detail }));
export const hear = (name, does) => ears.addEventListener(name, (event) => does(event.detail));

let newest = 0;
/** Take over a state, unless one that was asked for later is already here. */
export function know(state, asked) {
  if (asked < newest) return;
  newest = asked;
  const before = desk.state;
  desk.state = state;
  tell("state", { state, before });
  if (before && before.generation !== state.generation) tell("learnt", state);
}
