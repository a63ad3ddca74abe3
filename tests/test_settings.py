"""One checked table of settings for robot files, layouts and studies."""

import pytest

import linkwise as lw
from linkwise.files.settings import REQUIRED, Settings, parse_toml, read_toml
from linkwise.identify import Layout, LogError
from linkwise.study.errors import StudyError


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s: s.get("missing", int), "part.missing: missing; expected a whole number"),
        (lambda s: s.get("text", float), "part.text: expected a number, got 'x'"),
        (lambda s: s.get("truth", float), "part.truth: expected a number, got True"),
        (lambda s: s.get("truth", int), "part.truth: expected a whole number, got True"),
        (lambda s: s.get("nan", float), "part.nan: nan is not a finite number"),
        (lambda s: s.number("inf"), "part.inf: inf is not a finite number"),
        (lambda s: s.number("huge"), "part.huge: the number is too large"),
        (lambda s: s.number("nan", infinite=True), "part.nan: nan is not a finite number"),
        (lambda s: s.number("missing"), "part.missing: missing; expected a number"),
        (lambda s: s.numbers("list", 3), "part.list: expected a list of 3 numbers, got 2 entries"),
        (lambda s: s.numbers("text", 2), "part.text: expected a list of 2 numbers, got 'x'"),
        (lambda s: s.whole("one", 2), "part.one: expected a whole number from 2 on, got 1"),
        (lambda s: s.choice("text", ("y", "z")), "part.text: no 'x'; valid: y, z"),
        (lambda s: s.one_of("one", "nan"), "part: 'one' and 'nan' exclude each other"),
        (lambda s: s.allow(("one", "tex")), "part.text: unknown key; did you mean 'tex'?"),
        (lambda s: s.finish(), "part.one: unknown key"),
    ],
)
def test_what_is_wrong_is_named(ask, message):
    values = {
        "one": 1,
        "text": "x",
        "truth": True,
        "nan": float("nan"),
        "inf": float("inf"),
        "huge": 10**400,
        "list": [1, 2],
    }
    with pytest.raises(lw.LinkwiseError) as caught:
        ask(Settings(values, "part"))
    assert str(caught.value).startswith(message)


def test_values():
    settings = Settings({"one": 1, "inf": float("inf"), "list": (1, 2.5), "table": {}})
    assert settings.get("one", float) == 1.0
    assert isinstance(settings.get("one", float), float)
    assert settings.number("inf", infinite=True) == float("inf")
    assert settings.number("missing", 3.0) == 3.0
    assert settings.numbers("list", 2) == [1.0, 2.5]
    assert settings.get("table", dict) == {}
    assert settings.has("nothing", "one")
    assert settings.one_of("nothing", "one") == "one"
    settings.finish()
    assert REQUIRED is not None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"= nonsense", "not valid TOML"),
        (b"a = " + b"9" * 5000, "not valid TOML"),
        (b"a = " + b"[" * 5000, "not valid TOML"),
        (b"\xff\xfe", "not a text in UTF-8"),
    ],
)
def test_files_that_are_no_toml_for_everyone(tmp_path, data, reason):
    path = tmp_path / "file.toml"
    path.write_bytes(data)
    with pytest.raises(lw.LinkwiseError, match=rf"where: {reason}"):
        parse_toml(data, "where", lw.LinkwiseError)
    for read, error in ((lw.load, lw.ModelError), (Layout.read, LogError), (lw.study, StudyError)):
        with pytest.raises(error, match=rf"file\.toml: {reason}"):
            read(path)


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr("linkwise.files.settings.MAX_BYTES", 10)
    (tmp_path / "long.toml").write_text("a = 1234567890")
    with pytest.raises(lw.LinkwiseError, match=r"long\.toml: more than the 10 bytes"):
        read_toml(tmp_path / "long.toml", lw.LinkwiseError)
    with pytest.raises(lw.LinkwiseError, match="no such file"):
        read_toml(tmp_path / "none.toml", lw.LinkwiseError)
    with pytest.raises(lw.LinkwiseError, match="not a regular file"):
        read_toml("/dev/zero", lw.LinkwiseError)
