"""Planning at every point of a study: the same as single plans; bad settings are refused."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import HalfSpace, Sphere, World, write_world
from linkwise.motion import plan


def test_points_of_a_study_are_single_plans(tmp_path, run):
    world = World([HalfSpace((0.0, 0.0, 1.0), -0.3), Sphere((0.8, 0.0, 0.5), 0.15)])
    file = tmp_path / "world.json"
    write_world(world, file)
    goal = [-0.8, -1.2, 1.5, -1.8, -1.5, 0.0]
    entry = {"plan": str(file), "start": "q", "goal": goal, "clearance": 0.005}
    low, high = [0.5, -1.6, 1.0, -1.8, -1.5, 0.0], [1.5, 0.6, 1.6, -1.7, -1.4, 0.1]

    names = ["q", "move.solved", "move.duration", "move.clearance"]
    tables = {"robot": "ur10e", "samples": 6, "seed": 3, "vary": {"q": {"uniform": [low, high]}}}
    tables["keep"] = dict.fromkeys(names, "raw")
    data = run({**tables, "compute": {"move": entry}}).dataset().load()
    q, solved, duration, kept = (np.asarray(data[name]) for name in names)
    robot = lw.load("ur10e")
    assert solved.any()
    for k in range(6):
        found = plan(robot, q[k], goal, world, clearance=0.005, acceleration=20.0, seed=3)
        assert bool(solved[k]) == bool(found)
        assert np.isnan(duration[k]) if not found else duration[k] == found.motion.duration
        assert np.isnan(kept[k]) if not found else kept[k] == found.clearance
    for wrong in ({"plan": "none.json"}, {"goal": [0.0]}, {"start": [0.0] * 6}, {"clearance": -1.0}):
        with pytest.raises(lw.LinkwiseError, match="move"):
            lw.study(**tables, compute={"move": entry | wrong})
