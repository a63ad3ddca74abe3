"""What the traced algorithms cost, against published counts: an error in an algorithm or in the frames shows here."""

from __future__ import annotations

import itertools

import pytest

import linkwise as lw
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.robot.kernels import kernel

# multiplications (with divisions) and additions of general 6R arms with α₁ = a₁ = d₁ = 0, all ten parameters per link
BOUNDS = {
    ("general", "inverse_dynamics", "newton_euler"): (502, 408),
    ("perpendicular", "inverse_dynamics", "newton_euler"): (388, 344),
    ("general", "forward_dynamics", "kalman"): (1269, 1025),
    ("perpendicular", "forward_dynamics", "kalman"): (879, 781),
    # Kozłowski's Tables 1 and 2 for his own two methods
    ("general", "inverse_dynamics", "boundary_value"): (701, 520),
    ("perpendicular", "inverse_dynamics", "boundary_value"): (523, 432),
    # Valera's Table 2
    ("general", "inverse_dynamics", "gibbs_appell"): (590, 430),
}


def counted(robot, function, algorithm, **options):
    operations = kernel(FUNCTIONS[function], Setting(robot, **options), algorithm).operations
    return operations.multiplications + operations.divisions, operations.additions, operations


@pytest.mark.parametrize(("twists", "function", "algorithm"), BOUNDS)
def test_no_more_than_published(twists, function, algorithm):
    robot = lw.general_chain(6, twists=twists, base_offsets=False)
    multiplications, additions, operations = counted(robot, function, algorithm)
    most = BOUNDS[twists, function, algorithm]
    assert (multiplications <= most[0], additions <= most[1]) == (True, True), (
        multiplications,
        additions,
        most,
    )
    assert operations.trigonometric <= 12
    # regrouping parameters and choosing origins never costs anything
    again = counted(robot, function, algorithm, base_parameters=True)
    assert sum(again[:2]) <= multiplications + additions


def test_cost_grows_with_n():
    """Newton–Euler and the filter are O(n): each further general joint costs the same."""
    for function, algorithm in (("inverse_dynamics", "newton_euler"), ("forward_dynamics", "kalman")):
        totals = [counted(lw.general_chain(n), function, algorithm)[2].total for n in (4, 5, 6)]
        steps = [after - before for before, after in itertools.pairwise(totals)]
        assert max(steps) - min(steps) <= 0.02 * max(steps), steps


def test_origins_that_slide_save_operations():
    """For a robot with offsets along its axes; each count from a robot of its own, whose kernels are not shared."""
    slid, still = lw.general_chain(6, base_offsets=False), lw.general_chain(6, base_offsets=False)
    fewer = counted(slid, "inverse_dynamics", "newton_euler")[2].total
    assert fewer < counted(still, "inverse_dynamics", "newton_euler", slide=False)[2].total


def test_zero_velocities_and_prismatic_joints_are_cheaper():
    revolute = lw.general_chain(6, base_offsets=False)
    stanford = lw.load("stanford")
    full = sum(counted(revolute, "inverse_dynamics", "newton_euler")[:2])
    assert sum(counted(revolute, "bias_torques", "newton_euler")[:2]) < full
    assert sum(counted(revolute, "gravity_torques", "compound_link")[:2]) < 0.5 * full
    assert sum(counted(stanford, "inverse_dynamics", "newton_euler")[:2]) < 0.7 * full


def test_stages_add_up():
    robot = lw.general_chain(6, base_offsets=False)
    for function, algorithm in (("inverse_dynamics", "newton_euler"), ("forward_dynamics", "kalman")):
        operations = counted(robot, function, algorithm)[2]
        assert len(operations.by_stage) > 3
        for kind in ("multiplications", "additions", "divisions", "trigonometric"):
            assert sum(getattr(part, kind) for part in operations.by_stage.values()) == getattr(
                operations, kind
            )
