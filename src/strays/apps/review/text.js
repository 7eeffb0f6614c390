// Texts as they are: never as markup, nothing in them unseen, none of them in the way of the rest.

const SHORT = 1600; // characters shown before "show more"

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

export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A button; `kind` is how it looks: "big", "quiet". */
export const button = (words, onclick, kind = "big", more = {}) =>
  make("button", { type: "button", class: kind, onclick, ...more }, words);

export const byId = (...ids) => ids.map((id) => document.getElementById(id));

/** What stands for a run of a character that cannot be seen. */
function signOf(run, one) {
  const code = one.codePointAt(0);
  const hex = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const times = run.length / one.length;
  return { hex, sign: (NAMES[code] || hex) + (times > 1 ? `×${times}` : "") };
}

/** Put `text` into `parent`, what cannot be seen as small signs. */
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

const lines = (text) => text.replaceAll("\r\n", "\n");

/** A text where no element can be, as in a tip: cut to `most` characters, what cannot be seen as ⟨signs⟩. */
export function plain(text, most = SHORT) {
  const short = cut(text, most);
  const shown = lines(short.replace(UNSEEN, (run, one) => `⟨${signOf(run, one).sign}⟩`));
  return short.length < text.length ? `${shown}…` : shown;
}

/** A text as an element of its own, cut to `most` characters. */
export function bdi(text, most = SHORT) {
  const shown = make("bdi");
  const short = cut(text, most);
  put(shown, short);
  if (short.length < text.length) shown.append("…");
  return shown;
}

function cut(text, most) {
  if (text.length <= most) return text;
  return text.slice(0, /[\ud800-\udbff]/.test(text[most - 1]) ? most - 1 : most); // no half characters
}

/** A text with its odd segments marked; more of a long one on demand. */
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
    const more = () => { parent.dataset.all = item.id; drawText(parent, item, segments); };
    parent.append("… ", button(`show more (${number(item.length)} characters)`, more, "more"));
  } else if (item.length > [...item.text].length) {
    const link = { class: "more", href: `/api/texts/${item.id}/full`, target: "_blank", rel: "noopener" };
    parent.append("… ", make("a", link, `show all ${number(item.length)} characters`));
  }
}

export const number = (n) => Math.round(n).toLocaleString("en");
export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

/** A p-value in words, never rounded up to all. */
export function oddness(p) {
  const share = 100 * (1 - p);
  const digits = share >= 99.9 ? 2 : 1;
  const percent = Math.min(100 - 10 ** -digits, Math.floor(share * 10 ** digits + 1e-9) / 10 ** digits);
  if (share < 50) return "no odder than most normal texts";
  return `odder than ${percent.toFixed(digits).replace(/\.?0+$/, "")} % of the normal texts`;
}

/** When it was: the time for today, else the date too. */
export function when(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString()} ${time}`;
}

export const sentence = (words) => (words ? words[0].toUpperCase() + words.slice(1) : "");

const VERDICTS = { normal: "normal", anomaly: "anomaly", skip: "skipped" };
export const SIGNS = { normal: "■", anomaly: "◆", skip: "–" };

export const said = (verdict, n = 1) => (n === 1 ? VERDICTS[verdict] : `${number(n)} ${VERDICTS[verdict]}`);

/** A verdict as a small coloured word; hollow while it is not saved. */
export function badge(verdict, unsaved = false) {
  if (!verdict) return make("span", { class: "badge" });
  const sign = make("i", { "aria-hidden": "true" }, SIGNS[verdict]);
  const words = ` ${VERDICTS[verdict]}${unsaved ? " (unsaved)" : ""}`;
  return make("span", { class: `badge is-${verdict}${unsaved ? " unsaved" : ""}` }, sign, words);
}
