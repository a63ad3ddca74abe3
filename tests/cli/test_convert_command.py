"""``linkwise convert``: the same robot in another format."""

import json

import pytest

import linkwise as lw
from linkwise.cli.app import run


@pytest.mark.parametrize("ending", ["toml", "urdf", "xml"])
def test_the_new_file_is_the_same_robot(ending, tmp_path, capsys):
    target = tmp_path / f"new.{ending}"
    assert run(["convert", "panda", str(target), "--base", "planar", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nq"] == 10
    assert lw.load(target).content() == lw.load("panda", base="planar").content()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("panda", "arm.json"), "a robot is saved as .urdf, .toml, .xml"),
        (("nobody", "arm.toml"), "nobody"),
        (("panda", "no/folder/arm.toml"), "no/folder"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["convert", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1
