"""The contact solver against an independent one, generated code, gradients, and contacts that cannot be right."""

from __future__ import annotations

import math
import shutil
import subprocess

import numpy as np
import pytest
from test_contact_motion import free_body, standing

import linkwise as lw
from four_legs import four_legs, round_feet
from linkwise.algorithms.contact import recovery, solver
from linkwise.compiler.ir import interpret
from linkwise.control import Passive
from linkwise.embedded import Options, Package, entries
from linkwise.simulate import simulate

REFERENCE_SWEEPS = 1000
CLOSE = 1e-8  # velocities [m/s], relative to the largest without contact
STEP = 0.002


def leg_states(robot, count, seed=0, speed=0.5):
    """States near standing: some feet in the ground, some above it, all moving."""
    rng = np.random.default_rng(seed)
    q = np.repeat(standing(robot)[None], count, 0)
    q[:, 2] = 0.38
    q[:, 7:] += 0.1 * rng.normal(size=(count, 12))
    q[:, 3:6] += 0.05 * rng.normal(size=(count, 3))
    q[:, 2] += 0.02 * rng.normal(size=count)
    return q, speed * rng.normal(size=(count, robot.dof)), 10.0 * rng.normal(size=(count, robot.dof))


def contact_problem(robot, q, qd, tau):
    """(G, c, velocities without impulses) by other functions of the robot: gaps and what they recover are in c."""
    frames, offset, radius = [c.frame for c in robot.contacts], np.array([0, 0, -0.2]), 0.02
    # v⁺ is in the axes of the begin: components of acceleration without ω × v
    free = qd + STEP * robot.forward_dynamics(q, qd, tau)
    free[:, 3:6] += STEP * np.cross(qd[:, :3], qd[:, 3:6])
    rows, gaps = [], []
    for frame in frames:
        pose, J = robot.pose(q, frame), robot.jacobian(q, frame)
        arm = pose[:, :3, :3] @ offset + [0, 0, -radius]
        rows.append(J[:, 3:] + np.swapaxes(np.cross(np.swapaxes(J[:, :3], 1, 2), arm[:, None]), 1, 2))
        gaps.append(pose[:, 2, 3] + arm[:, 2])
    J, gaps = np.concatenate(rows, axis=1), np.stack(gaps, axis=1)
    G = J @ robot.inverse_mass_matrix(q) @ np.swapaxes(J, 1, 2)
    before = np.einsum("nij,nj->ni", J, free)
    c = before.copy()
    c[:, 2::3] += np.where(gaps > 0, gaps / STEP, np.maximum(0.2 * gaps / STEP, -0.1))
    return G, c, before


def swept_impulses(G, c, friction):
    """(p, whether the sweeps have converged) by very many plain projected sweeps."""
    p = np.zeros_like(c)
    for _ in range(REFERENCE_SWEEPS):
        last = p.copy()
        for k in range(0, p.shape[1], 3):
            w = c[:, k : k + 3] + np.einsum("nij,nj->ni", G[:, k : k + 3], p)
            normal = np.maximum(p[:, k + 2] - w[:, 2] / G[:, k + 2, k + 2], 0.0)
            across = p[:, k : k + 2] - 1.0 / (G[:, k, k] + G[:, k + 1, k + 1])[:, None] * w[:, :2]
            length = np.sqrt((across**2).sum(axis=1) + 1e-60)
            p[:, k : k + 2] = across * np.minimum(1.0, friction * normal / length)[:, None]
            p[:, k + 2] = normal
    return p, np.abs(p - last).max(axis=1) <= 1e-11 * np.abs(p).max(axis=1)


def impulses_of_pinocchio(pin, G, c, friction):
    """p by Pinocchio's ADMM solver, None where it does not converge."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free")
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for _ in range(len(c) // 3):
        contact = pin.PointContactConstraintModel(model, joint, pin.SE3.Identity())
        contact.setFriction(friction)
        models.append(pin.ConstraintModel(contact))
        datas.append(models[-1].createData())
    settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
    settings.max_iterations = 5000
    settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = 1e-12
    settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0.0
    solver = pin.ADMMConstraintSolver(len(c))
    converged = solver.solve(pin.DelassusOperatorDense(G), c, models, datas, settings, result)
    return np.array(result.retrieveConstraintImpulses()) if converged else None


def test_velocities_agree_with_the_contact_solver_of_pinocchio():
    pin = pytest.importorskip("pinocchio")
    if not hasattr(pin, "ADMMConstraintSolver"):
        pytest.skip("this Pinocchio has no contact solver")
    legs = four_legs().with_contacts(round_feet())
    q, qd, tau = leg_states(legs, 100, seed=5)
    G, c, before = contact_problem(legs, q, qd, tau)
    velocities = legs.contact_velocities(q, qd, tau, accuracy=1e-9).reshape(100, -1)
    solved = legs.contact_residual(q, qd, tau, accuracy=1e-9) < 1e-9
    assert solved.mean() > 0.98
    compared = 0
    for k in np.flatnonzero(solved):
        impulses = impulses_of_pinocchio(pin, G[k], c[k], 0.8)
        if impulses is not None:
            wanted = before[k] + G[k] @ impulses
            np.testing.assert_allclose(velocities[k], wanted, atol=CLOSE * np.abs(before[k]).max())
            compared += 1
    assert compared > 80


def test_velocities_agree_with_an_independent_solver_and_laws_hold():
    legs = four_legs().with_contacts(round_feet())
    q, qd, tau = leg_states(legs, 60)
    G, c, before = contact_problem(legs, q, qd, tau)
    p, sweeps_converged = swept_impulses(G, c, 0.8)
    wanted, size = before + np.einsum("nij,nj->ni", G, p), np.abs(before).max(axis=1)
    fine = {"accuracy": 1e-9}
    velocities, impulse = (
        legs.contact_velocities(q, qd, tau, **fine),
        legs.contact_step(q, qd, tau, **fine)[2],
    )
    assert legs.kernel("contact_step", accuracy=1e-9).operations.multiplications < 7600
    solved = legs.contact_residual(q, qd, tau, **fine) < 1e-9
    both = solved & sweeps_converged
    assert solved.mean() > 0.98
    assert both.mean() > 0.8
    error = np.abs(velocities.reshape(60, -1) - wanted).max(axis=1) / size
    assert error[both].max() < CLOSE
    assert (impulse[..., 2] >= 0.0).all()
    across = np.linalg.norm(impulse[..., :2], axis=-1)
    assert (across <= 0.8 * impulse[..., 2] * (1.0 + 1e-12)).all()
    sliding = np.linalg.norm(velocities[..., :2], axis=-1)
    power = (velocities[..., :2] * impulse[..., :2]).sum(-1)
    closed = solved[:, None] & (impulse[..., 2] > 1e-6) & (sliding > 1e-6)
    np.testing.assert_allclose(power[closed], -(sliding * 0.8 * impulse[..., 2])[closed], rtol=1e-5)
    gaps = legs.contact_gaps(q)
    bias = np.where(gaps > 0, gaps / STEP, np.maximum(0.2 * gaps / STEP, -0.1))
    after = velocities[..., 2] + bias
    assert after[solved].min() > -1e-8
    assert np.abs(after * impulse[..., 2])[solved].max() < 1e-9
    # impulses and forces are the same thing, and positions follow from the velocities
    forces = legs.contact_forces(q, qd, tau, **fine)
    np.testing.assert_allclose(forces * STEP, impulse, atol=1e-14)


def coupled_blocks(count=2000, seed=0):
    """(blocks of G, velocities that close the gap) of single contacts, with strong coupling of normal and tangents."""
    rng = np.random.default_rng(seed)
    A, free = rng.normal(size=(count, 3, 3)), rng.normal(size=(count, 3))
    free[:, 2] = -np.abs(free[:, 2])
    return A @ np.swapaxes(A, 1, 2) + 0.05 * np.eye(3), free


def test_a_sweep_solves_single_contacts():
    """What sticks stays at rest inside its cone; what slides is nearly on its edge after one step, and nearer after
    two, with an impulse against its motion."""
    G, free = coupled_blocks()
    blocks: list = [[G[:, i, j] for j in range(3)] for i in range(3)]
    for first, typical, most in ((True, 5e-4, 0.1), (False, 1e-8, 2e-3)):
        p = np.stack(solver._of_contact(blocks, 1.0 / G[:, 2, 2], [*free.T], 0.8, 1e-12, first), axis=1)
        w = free + np.einsum("nij,nj->ni", G, p)
        sticks = np.abs(w).max(axis=1) < 1e-9
        length, limit = np.hypot(p[:, 0], p[:, 1]), 0.8 * p[:, 2]
        assert 0.1 < sticks.mean() < 0.3
        assert (length <= 1.000001 * limit)[sticks].all()
        off, against = np.abs(length / limit - 1.0)[~sticks], (p[:, :2] * w[:, :2]).sum(axis=1)[~sticks]
        assert np.quantile(off, 0.5) < typical
        assert np.quantile(off, 0.9) < most
        assert (against < 0.0).mean() > 0.99
        assert np.quantile(np.abs(w[~sticks, 2]), 0.99) < 1e-9


def test_sweeps_tell_the_velocities_after_them():
    rng = np.random.default_rng(1)
    A, c, p = rng.normal(size=(7, 9)), rng.normal(size=7), rng.normal(size=7)
    joint = solver.JointRow(lower=-0.1, forward=0.02, backward=0.03)
    problem = solver.Problem((A @ A.T).tolist(), c.tolist(), [0.7, 0.9], [joint])
    new, w = solver._swept(problem, solver._scales(problem), p.tolist())
    assert np.allclose(w, A @ A.T @ np.array(new) + c, rtol=0, atol=1e-12)
    assert not np.allclose(new, p)


def test_kernels_have_the_bits_of_the_interpreter_and_of_batches():
    ball = free_body().with_contacts([lw.Contact("body", radius=0.1, restitution=0.3)], stops=False)
    arm = lw.load("puma560")
    arm = arm.with_contacts([lw.Contact(arm.leaf_names[0], friction=0.5)], stops=[arm.joint_names[1]])
    rng = np.random.default_rng(2)
    for robot, low in ((ball, 0.1), (arm, None)):
        q = robot.random(rng, 9)
        if low is not None:
            q[:, 2] = low + 0.001 * rng.normal(size=9)
        qd, tau = rng.normal(size=(9, robot.dof)), rng.normal(size=(9, robot.dof))
        kernel = robot.kernel("contact_step", inputs=("time_step", "contact_friction", "ground_height"))
        given = (np.array([0.001]), np.array([0.4]), np.array([-0.01]))
        many = kernel(q, qd, tau, *given)
        for k in range(9):
            row = (q[k], qd[k], tau[k], *given)
            wanted = interpret.run(kernel.program(), *(x.tolist() for x in row))
            for got, batch, want in zip(kernel(*row), many, wanted, strict=True):
                np.testing.assert_array_equal(got, np.reshape(want, got.shape))
                np.testing.assert_array_equal(batch[k], got)
        own = robot.contact_step(q, qd, tau, step=0.001, contact_friction=0.4, ground_height=-0.01)
        for a, b in zip(own, many, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)  # the step is a constant there


@pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("make")), reason="gcc or make is not installed")
def test_packages_in_c_have_the_same_bits(tmp_path):
    arm = lw.load("two_link")
    touching = arm.with_contacts([lw.Contact(arm.default_frame(), friction=0.5)], stops=False)
    for dtype in ("float64", "float32"):
        made = Package(touching, ["contact_step", "contact_residual"], Options(dtype=dtype), count=8)
        made.write(tmp_path / dtype)
        said = subprocess.run(
            ["make", "check", "CC=gcc", "CFLAGS=-O1 -march=native"],
            cwd=tmp_path / dtype,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "all bits equal" in said.stdout
    with pytest.raises(lw.LinkwiseError, match="no contacts"):
        entries(arm, ["contact_step"])


def test_gradients_agree_with_differences_where_no_contact_changes():
    ball = free_body(size=(0.1, 0.1, 0.1)).with_contacts([lw.Contact("body", radius=0.1)])
    kernel = ball.kernel("contact_step")
    rng = np.random.default_rng(3)
    checked = 0
    for speed in (0.0, 1.0, 3.0):  # sticks, slides; in flight below
        for height in (0.0999, 0.3):
            q, tau = np.array([0, 0, height, 0.1, 0.05, 0.02, 0.99]), 0.1 * rng.normal(size=6)
            qd = np.array([0.0, 0.0, 0.0, speed, 0.2 * speed, -0.3])
            bars = [rng.normal(size=np.shape(x)) for x in kernel(q, qd, tau)]
            given = [q, qd, tau]
            for place, gradient in enumerate(kernel.vjp()(*given, *(bar.ravel() for bar in bars))):
                for k in range(len(gradient)):
                    ends = []
                    for sign in (1.0, -1.0):
                        moved = [x.copy() for x in given]
                        moved[place][k] += sign * 1e-6
                        ends.append(sum((a * b).sum() for a, b in zip(kernel(*moved), bars, strict=True)))
                    np.testing.assert_allclose(gradient[k], (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-5)
                    checked += 1
    assert checked == 6 * 19


def test_all_joints_of_an_arm_stop_at_once():
    """Most joints at one of their stops, moving towards or away from it: a bounded quadratic programme."""
    arm = lw.load("panda")
    arm = arm.with_contacts([lw.Stop(name) for name in arm.joint_names])
    lower, upper = (
        np.array([getattr(j.limits, end) for j in arm.coordinate_joints]) for end in ("lower", "upper")
    )
    rng = np.random.default_rng(0)
    q = rng.uniform(lower, upper, size=(4000, 7))
    q = np.where(rng.uniform(size=q.shape) < 0.5, np.where(rng.uniform(size=q.shape) < 0.5, lower, upper), q)
    qd = 3.0 * rng.normal(size=q.shape)
    assert arm.contact_residual(q, qd, np.zeros_like(q)).max() < 1e-6
    after = arm.contact_step(q, qd, np.zeros_like(q))[0]
    assert np.maximum(lower - after, after - upper).max() < 1e-9


def test_a_nan_reaches_its_state_alone():
    ball = free_body().with_contacts([lw.Contact("body", radius=0.1)])
    q = np.repeat(np.array([[0, 0, 0.1, 0, 0, 0, 1.0]]), 5, 0)
    qd = np.zeros((5, 6))
    qd[2, 3] = np.nan
    new_q, new_qd, impulse = ball.contact_step(q, qd, np.zeros((5, 6)))
    for part in (new_q, new_qd, impulse):
        assert np.isnan(part[2]).any()
        assert not np.isnan(np.delete(part, 2, 0)).any()


def test_friction_below_zero_never_pushes():
    """A negative coefficient pushed along the motion, with the residual of a solution."""
    ball = free_body().with_contacts([lw.Contact("body", radius=0.1, friction=0.3)])
    q, qd, tau = np.array([0, 0, 0.1, 0, 0, 0, 1.0]), np.array([0, 0, 0, 1.0, 0, 0]), np.zeros(6)
    for wrong in (-1.0, [-0.5], np.full((3, 1), -0.1), math.inf):
        with pytest.raises(lw.LinkwiseError, match="contact_friction: expected finite numbers from 0 on"):
            ball.contact_step(q, qd, tau, contact_friction=wrong)
    with pytest.raises(lw.LinkwiseError, match="contact_friction: expected finite numbers from 0 on"):
        simulate(ball, Passive(ball), duration=0.01, step=0.002, q=q, vary={"contact_friction": [[-0.1]]})
    kernel = ball.kernel("contact_step", inputs="contact_friction")  # as in generated code
    pushed, free = kernel(q, qd, tau, [-1.0]), kernel(q, qd, tau, [0.0])
    for part, wanted in zip(pushed, free, strict=True):
        np.testing.assert_array_equal(part, wanted)
    assert np.isnan(kernel(q, qd, tau, [math.nan])[1]).any()


def test_robots_of_all_kinds_take_steps():
    """Bundled robots with a contact at every leaf: what is solved keeps the laws, the rest says so."""
    rng = np.random.default_rng(4)
    for name in lw.robots()[::4]:
        robot = lw.load(name)
        q, qd, tau = robot.random(rng, 20), rng.normal(size=(20, robot.dof)), rng.normal(size=(20, robot.dof))
        frame = robot.leaf_names[0]
        height = robot.pose(q, frame)[:, 2, 3:] + 1e-4 * rng.normal(size=(20, 1))
        touching = robot.with_contacts([lw.Contact(frame)], stops=True)
        new_q, new_qd, impulse = touching.contact_step(q, qd, tau, ground_height=height)
        assert np.isfinite(new_qd).all()
        assert (impulse[..., 2] >= 0).all()
        residual = touching.contact_residual(q, qd, tau, ground_height=height)
        assert np.median(residual) < 1e-9
        np.testing.assert_allclose(new_q, q + STEP * new_qd, atol=1e-14)


def test_contacts_are_part_of_the_robot_and_what_cannot_be_right_is_named():
    body = free_body()
    ball = body.with_contacts([lw.Contact("body", radius=0.1), lw.Ground(friction=0.3)])
    assert ball != body
    assert ball.with_contacts([]) == body
    assert (ball.contacts[0].friction, ball.contact_names) == (0.3, ("body",))
    box = body.with_contacts(
        [lw.Contact.box("body", (1, 1, 1)), lw.Contact.capsule("body", 0.1, 0.5, name="bar")]
    )
    assert box.contact_names[4:] == ("bar[0]", "bar[1]")
    assert len(body.with_contacts([lw.Contact.cylinder("body", 0.1, 0.2, sides=6)]).contact_names) == 12
    arm = lw.load("puma560")
    assert len(arm.with_contacts([], stops=True).contact_parts) == 6
    locked = arm.with_contacts([], stops=True).lock({arm.joint_names[0]: 0.0})
    assert len(locked.contact_parts) == 5
    for wrong, message in (
        (lambda: lw.Contact("body", friction=-0.1), "at least 0"),
        (lambda: lw.Contact("body", friction=math.inf), "never slides"),
        (lambda: lw.Contact("body", friction=math.nan), "finite"),
        (lambda: lw.Contact("body", radius=-1.0), "at least 0"),
        (lambda: lw.Contact("body", restitution=1.5), "from 0 to 1"),
        (lambda: lw.Contact("body", offset=(1.0, 2.0)), r"shape \(3,\)"),
        (lambda: lw.Contact.box("body", (1.0, 0.0, 1.0)), "above 0"),
        (lambda: lw.Ground(height=math.nan), "finite"),
        (lambda: body.with_contacts([lw.Contact("foot")]), "no frame 'foot'"),
        (lambda: body.with_contacts([lw.Contact("world")]), "does not move"),
        (lambda: body.with_contacts([lw.Contact("body", "world")]), "has no shape"),
        (lambda: body.with_contacts([lw.Ground(), lw.Ground()]), "one Ground"),
        (lambda: body.with_contacts(["body"]), "expected Contact"),
        (lambda: body.with_contacts(lw.Contact("body")), "a list"),
        (lambda: body.with_contacts([], stops=["root_joint"]), "no limits"),
        (lambda: arm.with_contacts([], stops=["nose"]), "no joint"),
        (lambda: body.contact_step(np.zeros(7), np.zeros(6), np.zeros(6)), "touches nothing"),
        (lambda: ball.contact_step(np.zeros(7), np.zeros(6), np.zeros(6), step=-1.0), "above 0"),
        (lambda: ball.contact_step(np.zeros(7), np.zeros(6), np.zeros(6), accuracy=0.0), "above 0"),
        (lambda: ball.kernel("contact_step", inputs="foot"), "foot"),
    ):
        with pytest.raises(lw.LinkwiseError, match=message):
            wrong()


def test_steps_in_other_units_of_time_are_the_same_steps(monkeypatch):
    """Speeds a thousand times smaller or larger, with gravity, torques and the step to match: positions stay, speeds
    and impulses scale, to the same relative accuracy."""
    box, rng, resting = free_body(), np.random.default_rng(7), recovery.RESTING_SPEED
    box = box.with_contacts([lw.Contact("body", edges=(0.2, 0.3, 0.1), friction=0.6)])
    q = np.repeat(box.neutral[None], 40, 0)
    q[::2, 3:6] = 0.1 * rng.normal(size=(20, 3))  # every other one on an edge or a corner
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    q[:, 2] += 1e-6 - box.contact_gaps(q).min(axis=1)  # what recovers from depth has a speed of its own
    qd, tau = rng.normal(size=(2, 40, 6)) - [0.0, 0.0, 0.0, 0.0, 0.0, 0.5]
    wanted = box.contact_step(q, qd, tau, step=STEP, friction=False)
    assert (wanted[2][..., 2] > 0.0).mean() > 0.3
    for scale in (2.0**-10, 2.0**10):
        monkeypatch.setattr(recovery, "RESTING_SPEED", scale * resting)  # the one speed that the law has
        other = box.with_gravity(scale**2 * np.array([0.0, 0.0, -9.81]))
        found = other.contact_step(q, scale * qd, scale**2 * tau, step=STEP / scale, friction=False)
        for part, right, power in zip(found, wanted, (0, 1, 1), strict=True):
            np.testing.assert_allclose(part / scale**power, right, atol=1e-9 * np.abs(right).max())


def test_a_leg_that_leans_on_its_stop_begins_to_slide():
    """Newton steps make the residual larger first where a contact begins to slide: they were undone in all rounds."""
    place = lw.Transform.from_rpy((0.1, 0.05, -0.1), (0.4, -0.7, 0.9))
    knee = lw.Joint(
        "knee", "revolute", "body", "leg", place, (0.48, 0.6, 0.64), limits=lw.Limits(lower=-1.0, upper=1.0)
    )
    body = lw.Link("body", lw.Inertia.from_com(2.0, (0, 0, 0), (0.05, 0.06, 0.07)))
    leg = lw.Link("leg", lw.Inertia.from_com(0.5, (0, 0, -0.1), (0.005, 0.005, 0.002)))
    foot = lw.Contact("leg", offset=(0, 0, -0.2), radius=0.03, friction=1.0)
    robot = lw.Robot("leaning", [body, leg], [knee]).with_base("floating").with_contacts([foot], stops=True)
    rng, count = np.random.default_rng(0), 20000
    q = np.repeat(robot.neutral[None], count, 0)
    turned = rng.normal(size=(count, 4))
    q[:, 3:7] = turned / np.sqrt((turned * turned).sum(axis=1))[:, None]
    q[:, 7] = -1.0
    q[:, 2] -= robot.contact_gaps(q)[:, 0]
    qd = 10.0 ** rng.uniform(-1.5, 0.5, (count, 1)) * rng.normal(size=(count, 7))
    qd[:, 6] = -0.1 * np.abs(qd[:, 6])
    residual = robot.contact_residual(q, qd, np.zeros_like(qd))
    assert (residual < 1e-6).all(), np.sort(residual)[-10:]
