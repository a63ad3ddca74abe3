"""Robots of any size have one kernel for the loop over time: stages of a step are turns of a loop, accelerations a
recursion over the links; the motion is the same."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise import control
from linkwise.compiler.ir.schedule import LoopRegion, scheduled
from linkwise.compiler.rollout import interpret
from linkwise.robot.kernels import kernels_of
from linkwise.simulate import loop, simulate
from linkwise.simulate.integrators import rk4, rk4_in_a_loop, space_of
from linkwise.simulate.plant import Plant
from linkwise.simulate.run import Times, closed_loop
from strategies import robots, states_of

ROUND_OFF = 1e-9  # of motions of some milliseconds, relative to the largest number


def moved(robot, q, qd, limit, **options):
    """The motion of a robot, with code that is short from this many operations on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "LONG_STAGE", limit)
        kernels_of(robot).clear()
        found = simulate(robot, control.Passive(robot), q=q, qd=qd, duration=4e-3, warn=False, **options)
        kernels_of(robot).clear()
    return found


def agree(a, b):
    for x, y in ((a.q, b.q), (a.qd, b.qd), (a.final_q, b.final_q)):
        np.testing.assert_allclose(x, y, rtol=0, atol=ROUND_OFF * (1.0 + np.abs(y).max()))


@settings(max_examples=6, deadline=None)
@given(robots(max_dof=4), st.booleans())
def test_random_trees_move_the_same(robot, substeps):
    """Fixed and floating, with friction, springs and followers; alone and in a batch by the same bits."""
    state = states_of(robot, 1, 5)
    q, qd = state.q, 0.3 * state.qd
    options = {"control_period": 2e-3} if substeps else {}
    short = moved(robot, q, qd, 0, **options)
    long = moved(robot, q, qd, 10**9, **options)
    agree(short, long)
    assert moved(robot, q[2], qd[2], 0, **options).q.tobytes() == short.q[2].tobytes()


def test_bundled_robots_move_the_same():
    """Arms with dry friction among them, and a chain with a floating base."""
    rng = np.random.default_rng(0)
    floating = (
        lw.planar_chain(4).with_base("floating").with_payload(5.0, inertia=(1.0, 1.0, 1.0), frame="base")
    )
    small = [robot for robot in map(lw.load, lw.robots()) if robot.dof <= 7]
    for robot in (*small[::3], floating):
        q, qd = robot.random(rng), 0.2 * rng.normal(size=robot.dof)
        agree(moved(robot, q, qd, 0), moved(robot, q, qd, 10**9))


def test_stages_as_turns_of_a_loop_are_those_of_the_method():
    """On numbers, positions and orientations; the same bits where positions are numbers."""
    rng = np.random.default_rng(2)
    arm, floating = lw.planar_chain(3), lw.planar_chain(2).with_base("floating")
    for robot in (arm, floating):
        space = space_of(loop.mechanism_of(robot))
        q, qd = robot.random(rng), rng.normal(size=robot.dof)

        def acceleration(at, q, qd):
            return [float(np.sin(x) - 0.1 * v) for x, v in zip(q[-len(qd) :], qd, strict=True)]

        given = acceleration, [float(x) for x in q], [float(x) for x in qd], 0.01, space
        for a, b in zip(rk4_in_a_loop(*given), rk4(*given), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-15)
            if robot is arm:
                assert np.array_equal(a, b)


def step_of(robot, **changes):
    """The code of a step of a robot that falls."""
    law, times = control.Passive(robot), Times.of(0.01, 1e-3, None, 1)
    made = closed_loop(
        Plant(robot), law, None, times, integrator="rk4", continuous=False, delay=0, varied=(), record=()
    )
    return replace(made, **changes).program("float64").step.body


def size_of(robot):
    return sum(1 for _ in scheduled(step_of(robot)))


def test_code_grows_with_the_number_of_links():
    """Without constraints and dry friction: twice as many links, twice the operations; no more than 600 for a link."""
    chains = [lw.planar_chain(n) for n in (12, 24, 48)]
    floating = [lw.general_chain(n).with_base("floating") for n in (12, 24)]
    for family in (chains, floating):
        sizes = [size_of(robot) for robot in family]
        assert all(b < 2.2 * a for a, b in pairwise(sizes)), sizes
        assert sizes[0] < 600 * (12 + 2), sizes


def test_code_in_constant_time_has_no_loop():
    """A loop ends by a comparison, of which such code has none."""
    robot = lw.planar_chain(12)
    assert any(isinstance(item, LoopRegion) for item in step_of(robot))
    assert not any(isinstance(item, LoopRegion) for item in step_of(robot, written_out=True))


def test_large_robots_are_one_kernel_without_being_asked():
    """40 joints ran in Python, with a warning; now the kernel gives what the interpreter gives."""
    robot = lw.planar_chain(40)
    rng = np.random.default_rng(0)
    q, qd = 0.1 * rng.normal(size=40), 0.1 * rng.normal(size=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.SlowWarning)
        found = simulate(robot, control.Passive(robot), q=q, qd=qd, duration=2e-3)
    (kernel,) = [kernel for key, kernel in kernels_of(robot).items() if key[0] == "rollout"]
    program = kernel.program()
    given = {"q": q, "qd": qd, "step": [1e-3]}
    given |= {name: np.zeros(size) for name, size in program.interface.inputs().items() if name not in given}
    final, _ = interpret(program, given, 2)
    assert final["q"].tobytes() == found.final_q.tobytes()
    qdd = robot.forward_dynamics(q, qd, np.zeros(40))
    np.testing.assert_allclose((found.qd[1] - qd) / 1e-3, qdd, atol=0.02 * np.abs(qdd).max() + 1e-3)
