"""``linkwise study``: what it says, and how it ends."""

import json
import subprocess
import sys

import pytest
from stores import contents

import linkwise as lw
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
    assert "raw arrays: 8e-05 GB before compression; " in out
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


def test_a_folder_that_is_not_enough_to_resume(linkwise, tmp_path):
    (tmp_path / "robots").mkdir()
    lw.save(lw.load("two_link"), tmp_path / "robots" / "arm.toml")
    (tmp_path / "robots" / "own.toml").write_text(TEXT.replace('"two_link"', '"arm.toml"'))
    assert linkwise("study", "robots/own.toml")[0] == 0
    status, _, err = linkwise("study", "own.study", "--resume")
    assert (status, err.count("\n")) == (2, 1)
    assert "arm.toml" in err
    assert err.endswith("; or give its own file: linkwise study FILE.toml --out own.study --resume\n")
    assert linkwise("study", "robots/own.toml", "--out", "own.study", "--resume")[0] == 0
    tables = {**lw.open_study("own.study").description, "robot": lw.load("two_link")}
    tables = {key: value for key, value in tables.items() if key not in ("format", "robot_content")}
    lw.study(tables).run(tmp_path / "object.study")
    err = linkwise("study", "object.study", "--resume")[2]
    assert "object.study: robot was an object of Python; resume it there" in err


LIMITED = """
import resource, sys
from linkwise.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("chunk", "limit"), [(8192, 100_000), (4096, 80_000)]
)  # of a raw file; of the journal later
def test_a_real_file_system_that_is_full(linkwise, tmp_path, chunk, limit):
    text = TEXT.replace("samples = 5000", f"samples = 40000\nchunk = {chunk}")
    text = text.replace('"mean", "max"]', '"mean", "max"], quantiles = [0.5]')
    (tmp_path / "small.toml").write_text(text)
    assert linkwise("study", "small.toml", "--out", "whole")[0] == 0
    command = [sys.executable, "-c", LIMITED, str(limit), "study", "small.toml"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "linkwise: small.study: File too large; nothing that was done is lost: "
        "linkwise study small.study --resume\n"
    )
    status, _, said = linkwise("study", "small.study", "--resume")
    assert (status, said) == (0, "")
    assert contents(tmp_path / "small.study") == contents(tmp_path / "whole")
