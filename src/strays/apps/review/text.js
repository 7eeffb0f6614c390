// Texts as they are: never as markup, nothing in them unseen, none of them in the way of the rest.

import { download, troubleOf } from "./api.js";

/** @import { Item, Segment, Verdict } from "./messages" */

const SHORT = 1600; // characters shown before "show more"

/** @type {Record<number, string>} */
const NAMES = {
  0: "NUL", 7: "BEL", 8: "BS", 11: "VT", 12: "FF", 13: "CR", 27: "ESC", 0x7f: "DEL", 0x85: "NEL", 0xad: "SHY",
  0x61c: "ALM", 0x200b: "ZWSP", 0x200e: "LRM", 0x200f: "RLM", 0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE",
  0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI",
  0x2069: "PDI", 0xfeff: "BOM",
};
// Controls, marks that turn the direction of writing, and other characters that take no room; a run of one is one sign.
// Joiners (U+200C, U+200D) and variation selectors stay: emoji and Persian need them.
const UNSEEN = new RegExp(
  "([\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f" +
  "\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]|\\p{Surrogate}|\\r(?!\\n))\\1*", "gu",
);

/**
 * An element. Attributes that start with "on" are listeners, true and false set or leave out an attribute.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | EventListener>} [attributes]
 * @param {...(Node | string)} children
 */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

/**
 * A button; `kind` is how it looks: "big", "quiet".
 * @param {string} words
 * @param {EventListener} onclick
 * @param {string} [kind]
 * @param {Record<string, string>} [more] attributes
 */
export const button = (words, onclick, kind = "big", more = {}) =>
  make("button", { type: "button", class: kind, onclick, ...more }, words);

/**
 * The page's element with an id, which must be of this kind.
 * @template {Element} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 */
export function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${kind.name} with the id ${id}`);
  return found;
}

/** @param {...string} ids */
export const byId = (...ids) => ids.map((id) => element(id, HTMLElement));

/**
 * The first element below another that a selector finds; there must be one.
 * @param {Element} parent
 * @param {string} selector
 */
export function within(parent, selector) {
  const found = parent.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`nothing is ${selector} in #${parent.id}`);
  return found;
}

/**
 * What stands for a run of a character that cannot be seen.
 * @param {string} run
 * @param {string} one
 */
function signOf(run, one) {
  const code = one.codePointAt(0) ?? 0;
  const hex = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const times = run.length / one.length;
  return { hex, sign: (NAMES[code] || hex) + (times > 1 ? `×${times}` : "") };
}

/**
 * Put `text` into `parent`, what cannot be seen as small signs.
 * @param {Element} parent
 * @param {string} text
 */
function put(parent, text) {
  let from = 0;
  for (const match of text.matchAll(UNSEEN)) {
    parent.append(lines(text.slice(from, match.index)));
    const { hex, sign } = signOf(match[0], match[1]);
    parent.append(make("span", { class: "unseen-sign", title: hex }, sign));
    from = match.index + match[0].length;
  }
  parent.append(lines(text.slice(from)));
}

/** @param {string} text */
const lines = (text) => text.replaceAll("\r\n", "\n");

/**
 * A text where no element can be, as in a tip: cut to `most` characters, what cannot be seen as ⟨signs⟩.
 * @param {string} text
 * @param {number} [most]
 */
export function plain(text, most = SHORT) {
  const short = cut(text, most);
  const shown = lines(short.replace(UNSEEN, (run, one) => `⟨${signOf(run, one).sign}⟩`));
  return short.length < text.length ? `${shown}…` : shown;
}

/**
 * A text as an element of its own, cut to `most` characters.
 * @param {string} text
 * @param {number} [most]
 */
export function bdi(text, most = SHORT) {
  const shown = make("bdi");
  const short = cut(text, most);
  put(shown, short);
  if (short.length < text.length) shown.append("…");
  return shown;
}

/**
 * @param {string} text
 * @param {number} most
 */
function cut(text, most) {
  if (text.length <= most) return text;
  return text.slice(0, /[\ud800-\udbff]/.test(text[most - 1]) ? most - 1 : most); // no half characters
}

/**
 * A text with its odd segments marked; more of a long one on demand.
 * @param {HTMLElement} parent
 * @param {Item} item
 * @param {Segment[]} [segments]
 */
export function drawText(parent, item, segments = []) {
  const most = parent.dataset.all === String(item.id) ? Infinity : SHORT;
  const text = cut(item.text, most);
  const whole = make("bdi");
  let at = 0;
  for (const { start, end, effect } of segments) {
    if (start >= text.length) break;
    put(whole, text.slice(at, start));
    at = Math.min(end, text.length);
    if (effect < 0.05) {
      put(whole, text.slice(start, at));
    } else {
      const mark = make("mark");
      mark.style.setProperty("--effect", effect.toFixed(2));
      put(mark, text.slice(start, at));
      whole.append(mark);
    }
  }
  put(whole, text.slice(at));
  parent.replaceChildren(whole);
  if (!item.text.length) parent.append(make("span", { class: "soft" }, "(an empty text)"));
  if (text.length < item.text.length) {
    const more = () => { parent.dataset.all = String(item.id); drawText(parent, item, segments); };
    parent.append("… ", button(`show more (${number(item.length)} characters)`, more, "more"));
  } else if (item.length > [...item.text].length) {
    const all = button(`save all ${number(item.length)} characters`, async () => {
      try { await download(`/api/texts/${item.id}/full`); } catch (thrown) { all.title = troubleOf(thrown).message; }
    }, "more");
    parent.append("… ", all);
  }
}

/** @param {number} n */
export const number = (n) => Math.round(n).toLocaleString("en");

/**
 * @param {number} n
 * @param {string} one
 * @param {string} [many]
 */
export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

/**
 * A p-value in words, never rounded up to all.
 * @param {number} p
 */
export function oddness(p) {
  const share = 100 * (1 - p);
  const digits = share >= 99.9 ? 2 : 1;
  const percent = Math.min(100 - 10 ** -digits, Math.floor(share * 10 ** digits + 1e-9) / 10 ** digits);
  if (share < 50) return "no odder than most normal texts";
  return `odder than ${percent.toFixed(digits).replace(/\.?0+$/, "")} % of the normal texts`;
}

/**
 * When it was: the time for today, else the date too.
 * @param {string} at
 */
export function when(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString()} ${time}`;
}

/**
 * What the file calls the first row of a text, without its middle where it is long; nothing where it has no name.
 * @param {(string | null)[]} names of its rows
 * @param {number} [most] characters
 */
export function rowName([name], most = 60) {
  if (!name) return [];
  const line = name.replace(/\s+/g, " ");
  const short = line.length <= most ? line : `${cut(line, most >> 1)}…${line.slice(-(most >> 1))}`;
  return [make("span", { class: "name" }, /^\d+$/.test(short) ? "id " : "", bdi(short)), " "];
}

/** @param {string | null | undefined} words */
export const sentence = (words) => (words ? words[0].toUpperCase() + words.slice(1) : "");

const VERDICTS = { normal: "normal", anomaly: "anomaly", skip: "skipped" };
export const SIGNS = { normal: "■", anomaly: "◆", skip: "–" };

/**
 * @param {Verdict} verdict
 * @param {number} [n]
 */
export const said = (verdict, n = 1) => (n === 1 ? VERDICTS[verdict] : `${number(n)} ${VERDICTS[verdict]}`);

/**
 * A verdict as a small coloured word; hollow while it is not saved.
 * @param {Verdict | null | undefined} verdict
 * @param {boolean} [unsaved]
 */
export function badge(verdict, unsaved = false) {
  if (!verdict) return make("span", { class: "badge" });
  const sign = make("i", { "aria-hidden": "true" }, SIGNS[verdict]);
  const words = ` ${VERDICTS[verdict]}${unsaved ? " (unsaved)" : ""}`;
  return make("span", { class: `badge is-${verdict}${unsaved ? " unsaved" : ""}` }, sign, words);
}
