"""Steps with contact: damping and gyroscopic moments, what loops in Python carry, derivatives beside 60 digits."""

from __future__ import annotations

import numpy as np
import pytest
from precise import Precise

import linkwise as lw
from linkwise import control
from linkwise.algorithms.contact import law
from linkwise.algorithms.contact.solver import Effort
from linkwise.simulate import loop as loops
from linkwise.simulate import simulate

STEP = 0.002
FOOT = lw.Contact("body", radius=0.1, friction=0.5)


def body(inertia, mass: float = 2.0, gravity=(0.0, 0.0, 0.0)) -> lw.Robot:
    link = lw.Link("body", lw.Inertia.from_com(mass, (0.0, 0.0, 0.0), inertia))
    return lw.Robot("free", [link], [], gravity=gravity).with_base("floating").with_contacts([FOOT])


def test_free_bodies_that_tumble_keep_their_energy():
    rng = np.random.default_rng(0)
    for _ in range(3):
        a, b = rng.uniform(0.02, 0.1, 2)
        free = body((a, b, rng.uniform(abs(a - b) + 0.005, a + b - 0.005)))
        q, qd = np.tile([0.0, 0.0, 50.0, 0.0, 0.0, 0.0, 1.0], (6, 1)), 4.0 * rng.normal(size=(6, 6))
        start = free.kinetic_energy(q, qd)
        for _ in range(800):
            q, qd, _ = free.contact_step(q, qd, np.zeros((6, 6)))
        gained = free.kinetic_energy(q, qd) / start - 1.0
        assert gained.max() < 1e-12  # the moment of the begin adds 1e-4 to 1e-2
        assert gained.min() > -1e-7


def test_damping_of_any_size_slows_joints_down():
    """Explicit damping turns velocities round where h d exceeds the inertia, and diverges from twice that on."""
    rng = np.random.default_rng(1)
    for name in lw.robots()[::5]:
        robot = lw.load(name)
        strong = {f"{joint}.viscous_friction": 1e4 for joint in robot.joint_names}
        damped = robot.with_parameters(strong).with_contacts([lw.Contact(robot.leaf_names[0])])
        q, qd = robot.random(rng, 10), rng.normal(size=(10, robot.dof))
        far, speed = -100.0 * np.ones((10, 1)), np.abs(qd).max()
        for _ in range(20):
            q, qd, _ = damped.contact_step(q, qd, np.zeros((10, robot.dof)), ground_height=far)
        assert np.abs(qd).max() < 0.5 * speed, name


@pytest.mark.parametrize("operations", [None, 0], ids=["one kernel a step", "too large for it"])
def test_loops_in_python_carry_impulses_and_residuals(monkeypatch, operations):
    ball = body((0.01, 0.02, 0.02), gravity=(0.0, 0.0, -9.81))
    q, qd = np.tile([0.0, 0.0, 0.11, 0.0, 0.0, 0.0, 1.0], (3, 1)), np.zeros((3, 6))
    qd[:, 3] = 0.0, 0.2, 2.0
    if operations is not None:
        monkeypatch.setitem(loops.FUSED_OPERATIONS, "contact_step", operations)
    given = {"duration": 0.2, "step": STEP, "q": q, "qd": qd}
    fused = simulate(ball, control.Passive(ball), q, **given, fused=True)
    slower = simulate(ball, control.Passive(ball), q, **given, fused=False)
    asked = simulate(ball, lambda t, q, qd, target: np.zeros_like(qd), q, **given)
    for result in (slower, asked):
        assert result.worst_residual.shape == (3,)
        assert (result.worst_residual < 1e-6).all()
        np.testing.assert_allclose(result.q, fused.q, atol=1e-9)
        assert (result.worst_residual >= result.residual.max(axis=-1) * (1.0 - 1e-6) - 1e-15).all()
    # what a call varies reaches the step: slipperier ground slows a sliding ball down less, higher ground lifts it
    qd[:, 3] = 2.0
    for name, values in (("contact_friction", [0.05, 0.2, 0.5]), ("ground_height", [-0.05, 0.0, 0.02])):
        vary = {name: np.array(values)[:, None]}
        fused = simulate(ball, control.Passive(ball), q, **given, fused=True, vary=vary)
        slower = simulate(ball, control.Passive(ball), q, **given, fused=False, vary=vary)
        np.testing.assert_allclose(slower.q, fused.q, atol=1e-9)
        ends = slower.q[:, -1, 0] if name == "contact_friction" else -slower.q[:, -1, 2]
        assert (np.diff(ends) < -1e-3).all()


def reference(robot: lw.Robot, q, qd, tau) -> list[Precise]:
    """q, q̇ and impulses after a step in 60 digits, solved until nothing changes."""
    links, scene = robot.contact_setting({}).links(), law.scene_of(robot)
    values = [
        links.grouped([Precise(x) for x in part], positions=k == 0) for k, part in enumerate((q, qd, tau))
    ]
    frictions = [each.friction for each in scene.candidates]
    given = law.Given(Precise(STEP), frictions, [Precise(0.0)] * len(frictions))
    effort = Effort(3, 7, proximal=(1e-6, 1e-9))
    found = law.step(links, *values, scene, given, effort)
    return [*found.q, *found.qd, *(x for p in found.impulses for x in p)]


def test_derivatives_agree_with_differences_of_sixty_digits():
    """Away from switches: contacts that stick, slide and are open, one or two at a time."""
    ball = body((0.01, 0.02, 0.02), gravity=(0.0, 0.0, -9.81))
    inertia = lw.Inertia.from_com(1.0, (0, 0, -0.1), (0.01, 0.01, 0.004))
    links = [lw.Link("trunk", lw.Inertia.from_com(3.0, (0, 0, 0), (0.02, 0.03, 0.03)))]
    joints = []
    for side, y in (("left", 0.1), ("right", -0.1)):
        links.append(lw.Link(side, inertia))
        place = lw.Transform.from_rpy((0.0, y, 0.0))
        joints.append(lw.Joint(f"{side}_hip", "revolute", "trunk", side, place, (0.0, 1.0, 0.0)))
    walker = lw.Robot("walker", links, joints).with_base("floating")
    walker = walker.with_contacts(
        [lw.Contact(s, offset=(0, 0, -0.2), friction=0.5) for s in ("left", "right")]
    )
    cases = [
        (ball, [0, 0, height, 0.1, 0.05, 0.02, 0.99], [0.1, 0.2, 0.0, speed, 0.2 * speed, -0.3])
        for speed, height in ((0.0, 0.0999), (1.5, 0.0999), (1.5, 0.3))
    ]
    cases.append(
        (walker, [0, 0, 0.199, 0.0, 0.01, 0.0, 1.0, 0.05, -0.05], [0, 0, 0, 0.8, 0.1, -0.3, 0.1, 0.2])
    )
    rng = np.random.default_rng(3)
    for robot, q, qd in cases:
        q, qd, tau = np.array(q, float), np.array(qd, float), 0.1 * rng.normal(size=robot.dof)
        kernel = robot.kernel("contact_step", accuracy=1e-12)
        values = np.concatenate([np.ravel(x) for x in kernel(q, qd, tau)])
        exact = np.array([float(x) for x in reference(robot, q, qd, tau)])
        np.testing.assert_allclose(values, exact, atol=1e-10)
        bar = rng.normal(size=len(values))
        sizes = np.cumsum([len(q), len(qd)])
        gradients = kernel.vjp()(q, qd, tau, *np.split(bar, sizes))
        direction = [rng.normal(size=len(part)) for part in (q, qd, tau)]
        ends = [
            reference(
                robot,
                *(
                    [Precise(x) + sign * 1e-12 * d for x, d in zip(part, way, strict=True)]
                    for part, way in zip((q, qd, tau), direction, strict=True)
                ),
            )
            for sign in (1.0, -1.0)
        ]
        change = [float((a - b) * 0.5e12) for a, b in zip(*ends, strict=True)]
        wanted = float(np.dot(bar, change))
        ours = sum(float(np.dot(g, d)) for g, d in zip(gradients, direction, strict=True))
        scale = sum(float(np.dot(np.abs(g), np.abs(d))) for g, d in zip(gradients, direction, strict=True))
        assert abs(ours - wanted) < 2e-6 * scale, (robot.name, qd)
