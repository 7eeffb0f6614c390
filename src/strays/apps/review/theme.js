// Light or dark, before anything is drawn: what was chosen here, or else what the system has.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => { try { return localStorage.getItem("strays-theme"); } catch { return null; } };
  const apply = () => { document.documentElement.dataset.theme = chosen() || (dark.matches ? "dark" : "light"); };
  apply();
  dark.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || !event.target.closest("#theme")) return;
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      if (next === (dark.matches ? "dark" : "light")) localStorage.removeItem("strays-theme"); // with the system again
      else localStorage.setItem("strays-theme", next);
    } catch { /* a browser that keeps nothing: for this page only */ }
    document.documentElement.dataset.theme = next;
  });
})();
