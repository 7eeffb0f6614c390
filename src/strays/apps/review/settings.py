"""What a project was set up with. A project may come from anywhere: every setting is checked when it is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from strays.detectors import DETECTORS
from strays.encoders.settings import EncoderSettings, whole_number
from strays.errors import StraysError


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _local_folder(value: Any) -> bool:
    # Merely looking for a folder on another machine would greet that with the user's name.
    return value is None or (isinstance(value, str) and "\0" not in value and value[:2] not in ("//", "\\\\"))


def _encoder(value: Any) -> bool:
    try:
        EncoderSettings(**value).check()
    except (TypeError, StraysError):
        return False
    return isinstance(value["name"], str)


# For each name what its value must be, and the same in words.
KNOWN: dict[str, tuple[Callable[[Any], bool], str]] = {
    "encoder": (_encoder, "the settings of an encoder"),
    "fingerprint": (_text, "a hash"),
    "detector": (lambda value: _text(value) and value in DETECTORS, f"one of {', '.join(DETECTORS)}"),
    "model": (_local_folder, "a folder of this machine, or nothing"),
    "file": (_text, "the name of a file"),
    "id_column": (_text_or_none, "the name of a column, or nothing"),
    "content": (_text, "a hash"),
    "port": (lambda value: value is None or whole_number(value, 0, 65535), "a port"),
}


def parse_settings(rows: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Settings by name, from names and JSON; ValueError where one is not what it must be.

    >>> parse_settings([("detector", '"auto"'), ("port", "8000")])
    {'detector': 'auto', 'port': 8000}
    >>> parse_settings([("port", '"8000"')])
    Traceback (most recent call last):
    ValueError: its setting 'port' is '8000'; expected a port
    """
    settings = {name: json.loads(value) for name, value in rows}
    for name, value in settings.items():
        check, expected = KNOWN.get(name, (lambda _: True, ""))
        if not check(value):
            raise ValueError(f"its setting {name!r:.60} is {value!r:.60}; expected {expected}")
    return settings
