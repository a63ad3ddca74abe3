"""``linkwise study``: what it says, and how it ends."""

import json

import pytest

from linkwise.cli import main

TEXT = """
name = "a small one"
robot = "two_link"
seed = 1
samples = 5000

[vary]
q = { uniform = [-1.0, 1.0] }

[compute]
g = { function = "gravity_torques" }

[keep]
g = { raw = true, statistics = ["mean", "max"] }

[failures]
high = "max(g) > 10"
"""


@pytest.fixture
def linkwise(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(TEXT)

    def go(*arguments):
        status = main([str(a) for a in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return go


def test_run_and_resume(linkwise, tmp_path):
    status, out, err = linkwise("study", "small.toml")
    assert (status, err) == (0, "")
    assert "g [N·m]" in out
    assert "high: " in out
    assert "5000 points in small.study" in out
    assert (tmp_path / "small.study" / "data.zarr" / "g").is_dir()
    status, _, err = linkwise("study", "small.toml")
    assert status == 2
    assert (
        err
        == "linkwise: small.study: exists already; resume it (--resume), or write to another folder (--out)\n"
    )
    assert linkwise("study", "small.study", "--resume")[0] == 0
    assert linkwise("study", "small.toml", "--resume")[0] == 0


def test_json(linkwise):
    status, out, _ = linkwise("study", "small.toml", "--out", "x", "--threads", 1, "--json")
    facts = json.loads(out)
    assert status == 0
    assert facts["store"] == "x"
    assert facts["points"] == 5000
    assert facts["complete"]
    assert set(facts["statistics"]["g"]) == {"unit", "elements", "mean", "max"}


def test_check_computes_nothing(linkwise, tmp_path):
    status, out, _ = linkwise("study", "small.toml", "--check")
    assert status == 0
    assert "5000 points (5000 sample) in 1 chunks" in out
    assert "memory" in out
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]
    assert json.loads(linkwise("study", "small.toml", "--check", "--json")[1])["points"] == 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.toml",), "none.toml: no such file"),
        (("small.toml", "--out", "no/where"), "no/where: the folder it is to be written to does not exist"),
        (("small.toml", "--resume"), "small.study: there is nothing to resume"),
        ((".",), "a folder; give the file of a study, or --resume"),
        ((".", "--resume"), "not the folder of a study"),
        (("small.toml", "--threads", "0"), "--threads"),
    ],
)
def test_refusals(linkwise, arguments, message):
    status, out, err = linkwise("study", *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("linkwise: ")
    assert message in err
