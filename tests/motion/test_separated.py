"""Problems that are said to have no solution have none (``benchmarks/planning_parts/separated.py``)."""

import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.collision import Box, HalfSpace, Sphere, World
from linkwise.geometry.solids import cylinder
from linkwise.model import Transform

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / "collision"), str(TESTS.parent / "benchmarks")]

from mesh_arm import COLLISION, LINK, write_stl  # noqa: E402
from planning_parts import separated  # noqa: E402
from planning_parts.meshes import Meshes  # noqa: E402
from planning_parts.problems import PlanningProblem  # noqa: E402

pytest.importorskip("pinocchio")
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="0 0 0.1"/><axis xyz="{axis}"/><limit lower="-3" upper="3" velocity="2" effort="50"/></joint>"""
REACH = 0.5  # [m] of the upper arm, from 0.2 m above the base


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    return swinging(tmp_path_factory.mktemp("swing"))


def swinging(folder):
    """A turret and an upper arm that swings through the upright position."""
    sizes = {"base": (0.08, 0.1, 0.05), "turret": (0.05, 0.1, 0.05), "upper_arm": (0.03, REACH, REACH / 2)}
    for name, (radius, length, middle) in sizes.items():
        mesh = cylinder(radius, length, sides=12).moved(Transform(np.eye(3), [0.0, 0.0, middle]))
        write_stl(folder / f"{name}.stl", mesh)
    links = [LINK.format(name=name, collision=COLLISION.format(name=name)) for name in sizes]
    turn = JOINT.format(name="turn", parent="base", child="turret", axis="0 0 1")
    swing = JOINT.format(name="swing", parent="turret", child="upper_arm", axis="0 1 0")
    file = folder / "swing.urdf"
    file.write_text(f'<robot name="swing">{"".join(links)}{turn}{swing}</robot>')
    return file, lw.load(file)


def reason(arm, obstacles, start=(0.5, -1.5), goal=((1.0, 1.4),)) -> str | None:
    file, robot = arm
    given = PlanningProblem("ceiling", World(obstacles), np.array(start), np.array(goal))
    return separated.why_separated(Meshes(file, robot, given.world), given)


def test_an_arm_cannot_swing_through_a_ceiling(arm):
    file, robot = arm
    ceiling = HalfSpace((0.0, 0.0, -1.0), -0.6)  # z > 0.6 m is solid
    words = reason(arm, [ceiling])
    assert words is not None
    joint, value = words.split(" cannot pass ")
    assert joint == "swing"
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (200, 2))
    q[:, 1] = float(value)
    assert Meshes(file, robot, World([ceiling])).collide(q).all()


def test_what_can_be_passed_is_not_called_separated(arm):
    assert reason(arm, []) is None
    assert reason(arm, [HalfSpace((0.0, 0.0, -1.0), -0.75)]) is None  # above the arm
    ceiling = HalfSpace((0.0, 0.0, -1.0), -0.6)
    assert reason(arm, [ceiling], goal=((1.0, -1.2),)) is None  # on the side of the start
    assert reason(arm, [ceiling], goal=((1.0, 1.4), (1.0, -1.6))) is None  # one of the goals is
    half = Box((-0.02, -1.0, 0.35), (1.0, 1.0, 2.0))  # over one half: the arm turns to the other one
    assert reason(arm, [half], start=(0.0, 0.3), goal=((0.0, 0.9),)) is None


def test_obstacles_with_gaps_between_the_values_of_the_grid_prove_nothing(arm, monkeypatch):
    monkeypatch.setattr(separated, "GRID", 8)
    value = 0.5 * (0.4 + 1.4)
    monkeypatch.setattr(separated, "VALUES", 1)
    turns, tip = np.linspace(-3.0, 3.0, 8), 0.45
    places = [
        (tip * np.sin(value) * np.cos(a), tip * np.sin(value) * np.sin(a), 0.2 + tip * np.cos(value))
        for a in turns
    ]
    balls = [Sphere(place, 0.08) for place in places]
    file, robot = arm
    free = ~Meshes(file, robot, World(balls)).collide(np.array([(a + 0.43, value) for a in turns]))
    assert free.any()
    assert Meshes(file, robot, World(balls)).collide(np.array([(a, value) for a in turns])).all()
    assert reason(arm, balls, start=(0.0, 0.4), goal=((0.0, 1.4),)) is None


def test_a_first_joint_that_slides_is_not_judged(arm, tmp_path):
    file, _ = swinging(tmp_path)
    file.write_text(file.read_text().replace("revolute", "prismatic", 1))
    assert reason((file, lw.load(file)), [HalfSpace((0.0, 0.0, -1.0), -0.6)]) is None
