// The page's own script: the theme, and the map with what was picked on it.
(() => {
  "use strict";

  const by = (id) => document.getElementById(id);
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
    const data = JSON.parse(by("map-data").textContent);
    if (!data.x.length) return;
    const place = new Map(data.oddest.map((point, rank) => [point, rank]));
    const says = (i) => [
      `row ${data.row[i].toLocaleString("en")}`, `score ${data.score[i]}`, `p-value ${data.p_value[i]}`, data.mark[i],
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

  function keep(says, text, rank) {
    const picked = by("picked");
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
