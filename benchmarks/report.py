"""A report on many rows: seconds beyond the scoring, bytes, and how its map moves beside plotly's with the same points.

    python -m benchmarks.report [--rows 100000] [--encoder fast] [--data DIR]

Rows are made-up titles, 200 of them with their words in disorder; 600 have labels, so that every part of the page is
made. The encoder is `fast`, to spare shared cores; with the default one, which is not measured here, the report's own
part takes longer, for encoding the pieces of the oddest texts.
Then both maps are opened in Chromium at 1200 x 800 and dragged, zoomed and pointed at by the same movements of a mouse:
`frame` is the time between two frames meanwhile (16.7 is as smooth as the screen), `work` the milliseconds for which
the page's thread is busy with each movement.
With --data, 20,000 news titles are also laid out: `trustworthiness` is scikit-learn's, of 10 neighbours, on 2,500 of
them, beside that of the two principal components. Writes results/report.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common import machine, write_json
from benchmarks.titles import titles
from strays.encoders import load_encoder
from strays.jobs.report.facts import facts
from strays.jobs.report.layout import layout
from strays.jobs.report.page import map_script, render
from strays.jobs.report.report import KEPT_EXAMPLES
from strays.jobs.scan import scan_table
from strays.studies.corpora import data_folder, load_corpus
from strays.tables import open_table

ROUNDS, STEPS = 3, 60
# Keeps the times between frames while somebody moves the mouse.
RECORD = """() => {
  window.frames_ = [];
  let last = performance.now();
  const tick = (now) => { window.frames_.push(now - last); last = now; window.ticking = requestAnimationFrame(tick); };
  window.ticking = requestAnimationFrame(tick);
}"""
STOP = "() => { cancelAnimationFrame(window.ticking); return window.frames_.slice(2); }"


class Stages:
    """A progress bar that keeps how long each stage took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[Callable[[int, int | None], None]]:
        """A stage, timed."""
        start = time.perf_counter()
        yield lambda done, total: None
        self.seconds[what] = round(time.perf_counter() - start, 2)


def write_rows(path: Path, n: int) -> None:
    """Titles, some with their words in disorder, some with labels."""
    rng = np.random.default_rng(0)
    texts = titles(n, rng)
    labels = [""] * n
    odd = rng.choice(n, 200, replace=False)
    for k, i in enumerate(odd.tolist()):
        texts[i] = " ".join(rng.permutation(texts[i].split()))
        labels[i] = "anomaly" if k < 100 else ""
    for i in rng.choice(np.setdiff1d(np.arange(n), odd), 500, replace=False).tolist():
        labels[i] = "normal"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(zip(texts, labels, strict=True))


def make_page(rows: int, encoder: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What making a page takes, and its facts."""
    stages = Stages()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "titles.csv"
        write_rows(file, rows)
        start = time.perf_counter()
        found = scan_table(
            open_table(str(file)),
            load_encoder(encoder),
            "auto",
            label_column="label",
            keep_examples=KEPT_EXAMPLES,
            progress=stages,
        )
    scoring = time.perf_counter() - start
    stages.seconds.clear()
    start, worked = time.perf_counter(), time.process_time()
    gathered = facts(found, progress=stages)
    with stages("writing"):
        page = render(gathered).encode("utf-8")
    result = {
        "rows": rows,
        "encoder": encoder,
        "seconds_of_scoring": round(scoring, 2),
        "seconds_beyond_scoring": round(time.perf_counter() - start, 2),
        # What it would be about, did nobody else use the machine.
        "processor_seconds_beyond_scoring": round(time.process_time() - worked, 2),
        "seconds_by_stage": stages.seconds,
        "page_bytes": len(page),
        "points_on_the_map": len(gathered["map"]["x"]),
    }
    return result, gathered


def neighbours_kept(data: str) -> dict[str, Any]:
    """How far neighbours on the map are neighbours, on a real corpus, and what the map takes."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import trustworthiness

    rng = np.random.default_rng(0)
    texts = load_corpus("5.2-ag", data_folder(data)).texts
    X = load_encoder("default").encode([texts[i] for i in rng.permutation(len(texts))[:20_000]])
    some = rng.permutation(len(X))[:2500]
    start = time.perf_counter()
    places = layout(X, random_state=0)
    took = time.perf_counter() - start
    plain = PCA(2, random_state=0).fit_transform(X)
    kept = {
        name: float(trustworthiness(X[some], at[some], n_neighbors=10))
        for name, at in (("layout", places), ("principal_components", plain))
    }
    return {"texts": len(X), "seconds": round(took, 2), "trustworthiness": {k: round(v, 4) for k, v in kept.items()}}


def strays_page(points: dict[str, Any]) -> str:
    """A page with our map and nothing else."""
    script = map_script()
    data = json.dumps({key: points[key] for key in ("x", "y", "value", "mark", "text", "grid")})
    return f"""<!doctype html><meta charset="utf-8"><div id="map" style="width:1200px;height:800px"></div>
<script>{script}</script><script>
const d = {data};
new StraysMap(document.getElementById("map"), {{x: d.x.map((v) => v / d.grid), y: d.y.map((v) => v / d.grid),
  value: d.value, mark: d.mark, text: (i) => d.text[i]}});
</script>"""


def plotly_page(points: dict[str, Any]) -> str:
    """The same points by plotly, drawn with WebGL."""
    import plotly.graph_objects as go

    figure = go.Figure(
        go.Scattergl(
            x=[v / points["grid"] for v in points["x"]],
            y=[v / points["grid"] for v in points["y"]],
            mode="markers",
            text=points["text"],
            hoverinfo="text",
            marker={"size": 5, "color": points["value"], "colorscale": "Blues"},
        ),
        {"width": 1200, "height": 800, "dragmode": "pan", "margin": {"l": 0, "r": 0, "t": 0, "b": 0}},
    )
    return str(figure.to_html(include_plotlyjs=True, config={"scrollZoom": True}))


def move(page: Any, kind: str) -> None:
    """One round of what a hand does on the map."""
    page.mouse.move(600, 400)
    if kind == "pan":
        page.mouse.down()
    for k in range(STEPS):
        angle = 2 * np.pi * k / STEPS
        if kind == "zoom":
            page.mouse.wheel(0, -60 if k < STEPS / 2 else 60)
        else:
            page.mouse.move(600 + 150 * np.sin(angle), 400 + 150 * np.sin(2 * angle))
    if kind == "pan":
        page.mouse.up()


def in_browser(html: str) -> dict[str, Any]:
    """How a page with a map behaves."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(html, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=program)
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        busy = page.context.new_cdp_session(page)
        busy.send("Performance.enable")

        def worked() -> float:
            found = {m["name"]: m["value"] for m in busy.send("Performance.getMetrics")["metrics"]}
            return 1000 * float(found["TaskDuration"])

        start = time.perf_counter()
        page.goto(file.as_uri())
        page.wait_for_selector("canvas")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        result: dict[str, Any] = {
            "bytes": len(html.encode("utf-8")),
            "ms_until_drawn": round(1000 * (time.perf_counter() - start)),
        }
        for kind in ("pan", "zoom", "hover"):
            frames: list[float] = []
            work = []
            for _ in range(ROUNDS):
                before = worked()
                page.evaluate(RECORD)
                move(page, kind)
                frames += page.evaluate(STOP)
                work.append((worked() - before) / STEPS)
            result[kind] = {
                "frame_ms_median": round(median(frames), 1),
                "frame_ms_p95": round(float(np.quantile(frames, 0.95)), 1),
                "work_ms_per_move": round(median(work), 2),
            }
        browser.close()
    return result


def ratios(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Our figures as shares of plotly's."""
    flat = {key: round(ours[key] / theirs[key], 3) for key in ("bytes", "ms_until_drawn")}
    return flat | {
        kind: {key: round(ours[kind][key] / max(theirs[kind][key], 1e-9), 3) for key in ours[kind]}
        for kind in ("pan", "zoom", "hover")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--encoder", default="fast")
    parser.add_argument("--data", help="folder with the corpora; without it no real corpus is laid out")
    options = parser.parse_args()
    made, gathered = make_page(options.rows, options.encoder)
    print(json.dumps(made, indent=2))
    ours, theirs = in_browser(strays_page(gathered["map"])), in_browser(plotly_page(gathered["map"]))
    result = {
        "page": made,
        "layout": neighbours_kept(options.data) if options.data else None,
        "map": {"points": made["points_on_the_map"], "strays": ours, "plotly": theirs, "ratio": ratios(ours, theirs)},
        "note": "Chromium without a GPU, which WebGL runs on in software here",
        "machine": machine("plotly", "playwright", "scikit-learn")
        | {"threads": os.environ.get("OMP_NUM_THREADS"), "processes_waiting": round(os.getloadavg()[1], 1)},
    }
    print(json.dumps(result["map"], indent=2))
    write_json("report.json", result)


if __name__ == "__main__":
    main()
