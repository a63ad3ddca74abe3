"""Robots that nothing uses any more are freed at once, without the collector, although kernels were made for them."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest

import linkwise as lw
import recorded_robots
from linkwise.robot.kernels import without_kernels


@pytest.fixture(autouse=True)
def without_collector():
    """References alone decide what lives."""
    enabled = gc.isenabled()
    gc.disable()
    yield
    if enabled:
        gc.enable()


USES = {
    "inverse dynamics": lambda robot, s: robot.inverse_dynamics(s["q"], s["qd"], s["qdd"]),
    "forward dynamics": lambda robot, s: robot.forward_dynamics(s["q"][0], s["qd"][0], s["tau"][0]),
    "constraints": lambda robot, s: robot.constraint_forces(s["q"], 0.0 * s["qd"], s["tau"]),
    "impact": lambda robot, s: robot.impact(s["q"], s["qd"]),
    "parameters": lambda robot, s: robot.kernel(
        "gravity_torques", frame=robot.link_names[-1], inputs=("payload",)
    ),
    "simulation": lambda robot, s: lw.simulate.simulate(
        robot, lambda links, q, qd, reference: [0.0 * x for x in qd], duration=0.01, step=0.005
    ),
    "inverse kinematics": lambda robot, s: lw.motion.inverse_kinematics(
        robot,
        robot.pose(s["q"][0], robot.link_names[-1])[:3, 3],
        frame=robot.link_names[-1],
        task="position",
        strict=False,
    ),
}


OF_TREES = ("inverse dynamics", "forward dynamics", "parameters", "simulation", "inverse kinematics")


def test_robots_are_freed_after_calls():
    for make, uses in (
        (recorded_robots.tree, OF_TREES),
        (recorded_robots.linkage, ("constraints", "impact")),
        (recorded_robots.touching, ("forward dynamics",)),
    ):
        equal = make()
        s = recorded_robots.states(equal, 2)
        if equal.constraints:
            s["q"][:] = (0.3, -0.4, 0.5, 0.2, -0.6)  # where its loop is closed
        for name in uses:
            robot = equal.with_gravity((0.1, -0.2, -9.7))
            USES[name](robot, s)
            left = [weakref.ref(robot), weakref.ref(without_kernels(robot))]
            del robot
            assert left[0]() is None, f"{equal.name}: {name}"
            # parts of a kernel with parameters refer to each other; the last ones with constraints are kept
            if name != "parameters" and not equal.constraints:
                assert left[1]() is None, f"{equal.name}: {name}"


def test_kernels_outlive_their_robot():
    robot = recorded_robots.chain().with_gravity((0.1, -0.2, -9.7))
    s = recorded_robots.states(robot, 1)
    kernel, q = robot.kernel("gravity_torques"), s["q"][0]
    expected = robot.gravity_torques(q)
    gone = weakref.ref(robot)
    del robot
    assert gone() is None
    for each in (kernel, pickle.loads(pickle.dumps(kernel))):
        assert np.array_equal(each(q), expected)
        assert each.jacobian("q")(q).shape == (3, 3)
