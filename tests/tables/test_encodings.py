"""Files in UTF-16 and UTF-32, with a mark and without, are refused everywhere; other NULs are said."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from strays.errors import DataError, StraysWarning
from strays.tables import find_files, open_table

FILES = {
    "t.csv": "id,text\n1,a hen\n2,a cow\n",
    "t.tsv": "id\ttext\n1\ta hen\n",
    "t.jsonl": '{"text": "a hen"}\n{"text": "a cow"}\n',
    "t.json": '[{"text": "a hen"}]',
    "t.txt": "a hen\na cow\n",
    "ru.csv": "id,text\n1,\u0447\u0435\u0440\u043d\u0430\u044f \u043a\u0443\u0440\u0438\u0446\u0430\n",
    "ru.txt": "\u043a\u043e\u0442 \u0438 \u043a\u0438\u0442\n" * 2,
    "hi.txt": "\u090f\u0915 \u0917\u093e\u092f \u0914\u0930\n\u092e\u0941\u0930\u094d\u0917\u0940\n",
}
ENCODINGS = ("UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_another_encoding_is_named(tmp_path: Path, name: str, encoding: str, marked: bool, packed: bool) -> None:
    data = ("\ufeff" * marked + FILES[name]).encode(encoding)
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(data) if packed else data)
    for use in (open_table, find_files):
        with pytest.raises(DataError, match=rf"{encoding[:6]}.*iconv -f {encoding} -t UTF-8 FILE > NEW") as error:
            use(str(path))
        assert str(path) in str(error.value)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", FILES)
def test_another_encoding_on_stdin(monkeypatch: pytest.MonkeyPatch, name: str, encoding: str) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(FILES[name].encode(encoding))))
    with pytest.raises(DataError, match=rf"stdin.*iconv -f {encoding}"):
        open_table("-")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_another_encoding_among_documents_and_in_a_folder_of_rows(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "good.txt").write_text("a hen")
    (tmp_path / "a" / "wide.txt").write_bytes("a hen and a cow".encode(encoding))
    with pytest.raises(DataError, match=rf"1 of its 2 documents.*wide\.txt .*iconv -f {encoding}"):
        open_table(str(tmp_path / "a"))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "t.csv").write_text("text\na hen\n")
    (tmp_path / "b" / "u.csv").write_bytes("text\na hen\n".encode(encoding))
    with pytest.raises(DataError, match=rf"u\.csv.*iconv -f {encoding}"):
        open_table(str(tmp_path / "b"))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", ["t.csv", "t.txt", "t.jsonl"])
def test_what_was_appended_in_another_encoding(tmp_path: Path, name: str, encoding: str) -> None:
    with (tmp_path / name).open("wb") as file:
        header, *rows = FILES[name].encode().splitlines(keepends=True)
        file.writelines([header, *rows * 1000])
        file.write(FILES[name].encode(encoding))
    with pytest.raises(DataError, match=r"line \d+: is in UTF-16 or UTF-32, and what is before it is not"):
        open_table(str(tmp_path / name)).read()


@pytest.mark.parametrize(("name", "data"), [("t.csv", b"id,text\n1,a hen\n2,a\0cow\n"), ("t.txt", b"hen\na\0cow\n")])
def test_nul_characters_elsewhere_are_said_and_read(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.warns(StraysWarning, match=r"line \d: holds a NUL.*tr -d '.000' < FILE > NEW"):
        assert open_table(str(tmp_path / name)).read().column("text").to_pylist()[-1] == "a\0cow"


def test_a_nul_that_json_escapes_is_a_character_like_others(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "a\\u0000b"}\n')
    assert open_table(str(tmp_path / "t.jsonl")).read().column("text").to_pylist() == ["a\0b"]
