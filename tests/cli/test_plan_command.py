"""``linkwise plan``: a motion as a table, JSON, and the exit status where there is none."""

import json

import numpy as np
from click.testing import CliRunner

from linkwise.cli.app import main

START, GOAL = "0,-1.2,1.5,-1,-1.5,0", "1.2,-1.2,1.5,-1,-1.5,0"


def run(*arguments: str):
    return CliRunner().invoke(main, ["plan", "ur10e", "--from", START, *arguments])


def test_plan(tmp_path):
    world, table = tmp_path / "world.json", tmp_path / "motion.csv"
    world.write_text('{"obstacles": [{"type": "half_space", "normal": [0, 0, 1], "height": -0.3}]}')
    done = run("--to", GOAL, "--world", str(world), "--out", str(table), "--rate", "100", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.output)
    assert facts["status"] == "solved"
    assert facts["clearance"] >= 0.0
    rows = np.genfromtxt(table, delimiter=",", names=True)
    assert abs(rows["t"][-1] - facts["duration"]) < 0.02
    assert np.allclose([rows[f"q{k + 1}"][0] for k in range(6)], [float(x) for x in START.split(",")])
    text = run("--to", GOAL, "--world", str(world))
    assert "a motion of" in text.output
    assert "was not written" in text.output


def test_no_motion_and_bad_input(tmp_path):
    world = tmp_path / "world.json"
    world.write_text('{"obstacles": [{"type": "sphere", "centre": [0, 0, 0.5], "radius": 3}]}')
    done = run("--to", GOAL, "--world", str(world))
    assert done.exit_code == 1
    assert "start collides" in done.output
    assert run("--to", "1,2").exit_code == 2
    assert run("--to", GOAL, "--world", str(tmp_path / "missing.json")).exit_code == 2
    assert run("--to", "pose:1,2,3").exit_code == 2
    assert run("--to", GOAL, "--frame", "tool0").exit_code == 2
    world.write_text("{")
    assert run("--to", GOAL, "--world", str(world)).exit_code == 2
