// The page's own script: the theme, and the map with what was picked on it.
(() => {
  "use strict";

  /**
   * What page.html has in its element map-data: a column for each property, an entry for each point.
   * @typedef {object} MapData
   * @property {number[]} x places, from 0 to `grid`
   * @property {number[]} y
   * @property {number} grid
   * @property {number[]} value
   * @property {string[]} mark
   * @property {number[]} row
   * @property {string[] | null} id what the file calls the rows; "" for a row without
   * @property {number[]} score
   * @property {number[]} p_value
   * @property {string[]} text
   * @property {number[]} oddest points, the oddest first
   */

  /** @param {string} id */
  function by(id) {
    const found = document.getElementById(id);
    if (!found) throw new Error(`the page has no ${id}`);
    return found;
  }

  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function themes() {
    const button = by("theme");
    const now = () => root.dataset.theme || (dark.matches ? "dark" : "light");
    const show = () => {
      button.textContent = now() === "dark" ? "Light" : "Dark";
      button.setAttribute("aria-label", `Change to the ${now() === "dark" ? "light" : "dark"} theme`);
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = now() === "dark" ? "light" : "dark";
      show();
    });
    dark.addEventListener("change", show);
    show();
  }

  function map() {
    /** @type {MapData} */
    const data = JSON.parse(by("map-data").textContent ?? "");
    if (!data.x.length) return;
    const place = new Map(data.oddest.map((point, rank) => [point, rank]));
    const says = (/** @type {number} */ i) => [
      data.id?.[i] || `row ${data.row[i].toLocaleString("en")}`, `score ${data.score[i]}`, `p-value ${data.p_value[i]}`, data.mark[i],
    ].filter(Boolean).join(" \u00b7 ");
    const here = by("map-here");
    here.hidden = false;
    root.classList.add("live");
    const drawn = new StraysMap(here, {
      x: data.x.map((v) => v / data.grid),
      y: data.y.map((v) => v / data.grid),
      value: data.value,
      mark: data.mark,
      text: (i) => `${says(i)}\n${data.text[i]}`,
      onPick: (i) => {
        drawn.focus(i);
        keep(says(i), data.text[i], place.get(i));
      },
      wheel: "engaged",
    });
  }

  /**
   * Show the picked point below the map.
   * @param {string} says
   * @param {string} text
   * @param {number} [rank] among the oddest
   */
  function keep(says, text, rank) {
    const picked = by("picked");
    /**
     * @template {keyof HTMLElementTagNameMap} Tag
     * @param {Tag} tag
     * @param {string} content
     * @param {string} [name] its class
     */
    const line = (tag, content, name) => {
      const made = document.createElement(tag);
      made.textContent = content;
      if (name) made.className = name;
      return made;
    };
    picked.hidden = false;
    picked.replaceChildren(line("span", says, "says"), line("bdi", text));
    if (rank !== undefined) {
      const link = line("a", `No. ${rank + 1} of the oddest`);
      link.href = `#text-${rank}`;
      picked.append(" ", link);
    }
  }

  themes();
  map();
})();
