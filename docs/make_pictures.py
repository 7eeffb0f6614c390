"""Draw docs/scan.svg, the README's picture: the ranking that `make demo` shows. Run as python docs/make_pictures.py."""

from __future__ import annotations

from contextlib import nullcontext
from html import escape
from pathlib import Path

from strays.apps.cli.terminal import p_value_words, printable
from strays.encoders import load_encoder
from strays.jobs.corpus import read_texts
from strays.jobs.scan import scan_table
from strays.tables import open_table

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
LINE, LETTER = 22, 8.4
# Where each column stands, in letters from the left, and its colour.
COLUMNS = {"row": (5, "#8b949e"), "score": (12, "#e6edf3"), "p-value": (21, "#e6edf3"), "mark": (23, "#ff7b72")}
TEXT_AT, TEXT_WIDTH = 30, 84


def draw(rows: list[dict], title: str) -> str:
    """The rows as an svg in a terminal's looks; it asks for no font or image from elsewhere."""
    lines = [[(1, "start", "#e6edf3", title)], _line("row", "score", "p-value", "", "text", "#8b949e")]
    for row in rows:
        text = printable(row["text"])
        text = text if len(text) <= TEXT_WIDTH else text[: TEXT_WIDTH - 1] + "…"
        p = p_value_words(row["p_value"])
        lines.append(_line(str(row["row"]), f"{row['anomaly_score']:.2f}", p, "flag" if row["flagged"] else "", text))
    body = "\n".join(
        f'<text x="{x * LETTER:.1f}" y="{y}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
        for y, line in zip(range(34, 9999, LINE), lines, strict=False)
        for x, anchor, colour, text in line
        if text
    )
    width, height = (TEXT_AT + TEXT_WIDTH + 2) * LETTER, (len(lines) + 1) * LINE + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n{body}\n</svg>\n'
    )


def _line(row: str, score: str, p: str, mark: str, text: str, colour: str | None = None) -> list[tuple]:
    cells = zip(COLUMNS.values(), (row, score, p, mark), strict=True)
    line = [(x, "start" if value == mark else "end", colour or own, value) for (x, own), value in cells]
    return [*line, (TEXT_AT, "start", colour or "#e6edf3", text)]


def main() -> None:
    """Scan the example and draw its ranking."""
    table = open_table(str(EXAMPLES / "workshop.csv"))
    known = read_texts(open_table(str(EXAMPLES / "workshop_known.txt")), "text")
    found = scan_table(
        table, load_encoder(), "auto", known=known, progress=lambda what: nullcontext(lambda done, total: None)
    ).to_dict(top=20)
    title = f"$ strays scan examples/workshop.csv --known examples/workshop_known.txt   ({found['n_rows']} rows)"
    (DOCS / "scan.svg").write_text(draw(found["oddest"], title), encoding="utf-8")


if __name__ == "__main__":
    main()
