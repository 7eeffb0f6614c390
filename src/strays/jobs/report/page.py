"""From plain facts to one page of HTML that asks nothing of anybody: style, scripts and data are inside it."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from strays.errors import StraysError
from strays.jobs.report import svg
from strays.jobs.report.safe import dull, short_id

PIP = "pip install 'strays[report]'"
# How strongly a piece of text is marked, by its effect beside the strongest one's.
LEVELS = (0.15, 0.4, 0.7, 1.0)
# The map's scripts, each needing those before it; the desk's page has them too.
MAP_SCRIPTS = ("map_points.js", "map_view.js", "map_painter.js", "map_hands.js", "map.js")


def require_jinja() -> None:
    """Raise, before any work is done, where pages cannot be made."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise StraysError(f"a report needs jinja2, which is not installed; install it with: {PIP}") from error


def map_script() -> str:
    """The map as one script."""
    return "".join(map(_asset, MAP_SCRIPTS))


def render(facts: dict[str, Any]) -> str:
    """The page."""
    require_jinja()
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"dull": dull, "short_id": short_id, "level": level, "count": _count, "p": _p_value}
    style, script = _asset("page.css"), map_script() + _asset("page.js")
    plots = {"scores": svg.scores(facts["scores"]), "p_values": svg.p_values(facts["p_values"])}
    plots["map"] = svg.still_map(facts["map"])
    if "metrics" in facts["quality"]:
        plots |= {"roc": svg.roc(facts["quality"]), "precision_recall": svg.precision_recall(facts["quality"])}
    page = environment.from_string(_asset("page.html")).render(
        facts,
        policy=_policy(style, script),
        style=Markup(style),  # noqa: S704 - our own files and drawings, in which texts are escaped
        script=Markup(script),  # noqa: S704
        data=Markup(_json(facts["map"])),  # noqa: S704
        plots={name: Markup(plot) for name, plot in plots.items()},  # noqa: S704
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # names may hold halves of characters


def level(strength: float) -> int:
    """How strongly to mark a piece: 0 not at all, up to the number of levels."""
    return sum(strength >= least for least in LEVELS)


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _p_value(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def _asset(name: str) -> str:
    return files("strays.jobs.report").joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or a line."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(style: str, script: str) -> str:
    """A Content-Security-Policy by which the page may run and use what is in it, and nothing else."""
    sources = {"style": style, "script": script}
    hashes = {name: hashlib.sha256(content.encode("utf-8")).digest() for name, content in sources.items()}
    allowed = "".join(f"{name}-src 'sha256-{base64.b64encode(h).decode('ascii')}'; " for name, h in hashes.items())
    return f"default-src 'none'; {allowed}base-uri 'none'; form-action 'none'"
