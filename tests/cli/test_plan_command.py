"""``linkwise plan``: a motion as a table, JSON, and the exit status where there is none."""

import json

import numpy as np

import linkwise as lw

START, GOAL = "0,-1.2,1.5,-1,-1.5,0", "1.2,-1.2,1.5,-1,-1.5,0"


def test_plan(linkwise, tmp_path):
    world, table = tmp_path / "world.json", tmp_path / "motion.csv"
    world.write_text('{"obstacles": [{"type": "half_space", "normal": [0, 0, 1], "height": -0.3}]}')
    done = linkwise(
        "plan",
        "ur10e",
        "--from",
        START,
        "--to",
        GOAL,
        "--world",
        str(world),
        "--out",
        str(table),
        "--rate",
        "100",
        "--json",
    )
    assert done.status == 0, done.err
    facts = json.loads(done.out)
    assert facts["status"] == "solved"
    assert facts["clearance"] >= 0.0
    rows = np.genfromtxt(table, delimiter=",", names=True)
    assert abs(rows["t"][-1] - facts["duration"]) < 0.02
    assert np.allclose([rows[f"q{k + 1}"][0] for k in range(6)], [float(x) for x in START.split(",")])
    text = linkwise("plan", "ur10e", "--from", START, "--to", GOAL, "--world", str(world))
    assert "a motion of" in text.out
    assert "was not written" in text.out


def test_what_is_kept_all_the_way(linkwise, tmp_path):
    """An axis of the tool stays upright and its origin on a plane, in the written motion."""
    robot, table = lw.load("ur10e"), tmp_path / "motion.csv"
    pose = robot.pose(np.array([float(x) for x in START.split(",")]))
    axis = ",".join(f"{x:.12g}" for x in (*pose[2, :3], 0.0, 0.0, 1.0))
    plane = f"0,0,1,{pose[2, 3]:.12g}"
    kept = ["--keep-axis", axis, "--tilt", "0.03", "--keep-plane", plane, "--distance", "0.005"]
    ends = ["plan", "ur10e", "--from", START, "--to", GOAL]
    done = linkwise(*ends, *kept, "--out", str(table), "--rate", "100")
    assert done.status == 0, done.err
    rows = np.genfromtxt(table, delimiter=",", names=True)
    poses = robot.pose(np.stack([rows[f"q{k + 1}"] for k in range(6)], axis=1))
    assert len(poses) > 10
    assert np.arccos(np.clip(poses[:, 2, :3] @ pose[2, :3], -1.0, 1.0)).max() <= 0.03
    assert np.abs(poses[:, 2, 3] - pose[2, 3]).max() <= 0.005
    off = linkwise(*ends, "--keep-axis", "0.6,0.8,0,0,0,1", "--json")
    assert off.status == 1
    assert json.loads(off.out)["status"] == "start off constraint"
    assert "--keep-axis" in linkwise(*ends, "--tilt", "0.1").err
    assert linkwise(*ends, "--distance", "0.1").status == 2
    assert linkwise(*ends, "--keep-axis", "0,0,1").status == 2
    for option, numbers in (
        ("--keep-axis", "0,0,0,0,0,-1"),
        ("--keep-axis", "0,0,1,0,0,0"),
        ("--keep-plane", "0,0,0,1"),
    ):
        refused = linkwise(*ends, option, numbers)
        assert refused.status == 2
        assert f"{option}: the numbers of a direction must not all be 0" in refused.err


def test_no_motion_and_bad_input(linkwise, tmp_path):
    world = tmp_path / "world.json"
    world.write_text('{"obstacles": [{"type": "sphere", "centre": [0, 0, 0.5], "radius": 3}]}')
    done = linkwise("plan", "ur10e", "--from", START, "--to", GOAL, "--world", str(world))
    assert done.status == 1
    assert "start collides" in done.out
    assert linkwise("plan", "ur10e", "--from", START, "--to", "1,2").status == 2
    assert (
        linkwise(
            "plan", "ur10e", "--from", START, "--to", GOAL, "--world", str(tmp_path / "missing.json")
        ).status
        == 2
    )
    assert linkwise("plan", "ur10e", "--from", START, "--to", "pose:1,2,3").status == 2
    assert linkwise("plan", "ur10e", "--from", START, "--to", GOAL, "--frame", "tool0").status == 2
    world.write_text("{")
    assert linkwise("plan", "ur10e", "--from", START, "--to", GOAL, "--world", str(world)).status == 2
