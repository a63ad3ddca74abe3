"""Standard output and error in encodings that have not all letters."""

import io
import json
import os
import sys

import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.core import foreign

COMMANDS = [
    ["info", "puma560"],
    ["operations", "two_link"],
    ["inverse", "two_link", "--trajectory", "quintic", "--to", "1,1", "--out", os.devnull],
    ["--help"],
    ["inverse", "--help"],
    ["info", "é∞日本"],
    ["generate", "two_link", "gravity_torques", "--target", "python"],
]


@pytest.fixture
def run(monkeypatch):
    def with_encoding(command, encoding, errors="strict"):
        """(status, bytes of standard output, bytes of standard error)"""
        streams = {name: io.TextIOWrapper(io.BytesIO(), encoding, errors) for name in ("stdout", "stderr")}
        with monkeypatch.context() as patch:
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            status = main(command)
            assert sys.stdout is streams["stdout"]
        for stream in streams.values():
            stream.flush()
        return status, *(stream.buffer.getvalue() for stream in streams.values())

    return with_encoding


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "koi8-r"])
def test_every_letter_can_be_written(run, encoding):
    for command in COMMANDS:
        status, out, err = run(command, encoding)
        expected, whole, _ = run(command, "utf-8")
        assert status == expected, (command, err)
        assert out.count(b"\n") == whole.count(b"\n")
        (out + err).decode(encoding)  # and not UTF-8 in a stream that says otherwise
        assert b"codec" not in err


def test_letters_of_units_are_spelt(run):
    _, out, _ = run(["info", "puma560"], "ascii")
    assert b"-9.81 m/s^2" in out
    assert b"inf" in out
    assert b"-160deg" in out
    assert run(["info", "é"], "ascii")[2].startswith(b"linkwise: \\xe9: neither")


def test_json_keeps_names(run, tmp_path):
    path = tmp_path / "arm.toml"
    lw.save(lw.load("two_link"), path)
    path.write_text(path.read_text("utf-8").replace('"two_link"', '"ärm² 日本 😀"'), "utf-8")
    for encoding in ("ascii", "latin-1", "utf-8"):
        status, out, _ = run(["info", str(path), "--json"], encoding)
        assert status == 0
        assert json.loads(out.decode(encoding))["name"] == "ärm² 日本 😀"


def test_what_the_user_chose_stays(run):
    assert b"m/s?" in run(["info", "puma560"], "ascii", "replace")[1]


def test_all_letters_have_ascii_spellings():
    everything = "".join(map(chr, [*range(0x3000), 0xD800, 0x1F600]))
    error = UnicodeEncodeError("ascii", everything, 0, len(everything), "")
    text, end = foreign.spelt_letters(error)
    assert text.isascii()
    assert end == len(everything)
    with pytest.raises(UnicodeDecodeError):
        foreign.spelt_letters(UnicodeDecodeError("ascii", b"\xff", 0, 1, ""))
