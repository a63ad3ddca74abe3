"""What moves a robot by one step (step kernels, rollouts of C packages, the plant of the real-time loop) moves it as
``simulate`` does: with its constraints and contacts. What has none of them says so."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir import interpret
from linkwise.embedded.entries import Options, entries
from linkwise.realtime.program import TwoRatePrograms
from linkwise.simulate import SimulationError, simulate, simulate_adaptive
from linkwise.simulate.loop import step_kernel
from linkwise.systems import Fmu
from linkwise.systems.fmu_model import SystemExportError

STEP, STEPS = 0.002, 5


def linkage():
    """An arm whose tip is held by a ball joint while it moves on."""
    robot = lw.planar_chain(3)
    q, tip = np.array([0.4, -0.7, 0.5]), robot.default_frame()
    robot = robot.with_constraints([lw.Point(tip, robot.pose(q)[:3, 3])])
    return robot, q, robot.impact(q, np.array([0.5, -0.5, 0.8]))


def ball():
    """A ball that falls on the ground and slides."""
    scene = lw.Scene([lw.Body.sphere(0.1, mass=1.0, name="ball"), lw.Ground(friction=0.5)])
    q, qd = np.array(scene.neutral), np.array([0.0, 0.0, 0.0, 1.0, 0.3, -1.0])
    q[2] = 0.101
    return scene, q, qd


def stopped():
    """An arm that moves against the end of its range."""
    robot = lw.load("ur10e").with_contacts([], stops=True)
    q, qd = np.zeros(6), np.zeros(6)
    q[2], qd[2] = robot.limits.upper[2] - 1e-3, 2.0
    return robot, q, qd


@pytest.mark.parametrize("made", [linkage, ball, stopped])
def test_every_step_has_constraints_and_contacts(made):
    robot, q, qd = made()
    tau = np.random.default_rng(1).normal(size=robot.dof)
    expected = simulate(
        robot, lambda *_: tau, duration=STEPS * STEP, step=STEP, q=q, qd=qd, integrator="semi_implicit_euler",
        torque_limits=False,
    )  # fmt: skip
    free = (robot.with_contacts if robot.contact_parts else robot.with_constraints)([])
    kernel, (rolled,) = (
        step_kernel(robot),
        entries(robot, ["rollout"], Options(integrator="semi_implicit_euler", period=STEP)),
    )
    given = {"q": q, "qd": qd, "step": [STEP], "tau": np.tile(tau, STEPS)}
    final, _ = rolled.kernel(given, steps=STEPS)
    found = [(final["q"], final["qd"])]
    steppers = [lambda q, qd: kernel(q, qd, tau, [STEP])]
    if robot.nq == robot.dof:
        plant = TwoRatePrograms(robot, period=STEP).plant
        steppers.append(lambda q, qd: interpret.run(plant, q, qd, tau))
    for step in steppers:
        now = q, qd
        for _ in range(STEPS):
            now = step(*now)
        found.append(now)
    for new in found:
        for mine, theirs in zip(new, (expected.final_q, expected.final_qd), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)
    away = step_kernel(free)
    now = q, qd
    for _ in range(STEPS):
        now = away(*now, tau, [STEP])
    assert np.abs(now[1] - expected.final_qd).max() > 1e-2  # they matter here


def test_what_has_no_contacts_says_so():
    scene, q, qd = ball()
    with pytest.raises(SimulationError, match="contacts need the fixed steps of simulate"):
        simulate_adaptive(scene, duration=0.1, q=q, qd=qd)
    for robot, what in ((scene, "contacts"), (linkage()[0], "constraints")):
        with pytest.raises(SystemExportError, match=f"no FMU of a robot with {what}"):
            Fmu(robot, "forward_dynamics")
