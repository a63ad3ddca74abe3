"""Random trees with up to 12 constraint rows, every algorithm against Pinocchio's constraintDynamics."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from evaluation import assert_near, value
from test_free_joints import engine_of, random_robot, state, theirs

import linkwise as lw
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.constrained import filter as constraint_filter
from linkwise.functions.table import mechanism_of

pin = pytest.importorskip("pinocchio")

INDEPENDENT = (
    1e-2  # smallest singular value of J: Pinocchio wants constraints that do not depend on each other
)
CLOSE = 1e-9


@functools.cache
def held_tree(seed: int):
    """(robot, q, q̇, τ): a random tree with random points and poses held in the world and in other links."""
    rng = np.random.default_rng(seed)
    for attempt in range(100):
        free = random_robot(1000 * seed + attempt, int(rng.integers(4, 9)))
        q, qd, _, tau = state(free, seed + attempt)
        rows, pieces = int(rng.choice([3, 6, 9, 12])), []
        while rows:
            kind = "weld" if rows >= 6 and rng.random() < 0.5 else "point"
            rows -= 6 if kind == "weld" else 3
            pieces.append(constraint(free, q, kind, rng))
        try:
            robot = free.with_constraints(pieces)
        except lw.ModelError:  # both ends on the same link
            continue
        J = value(robot, "constraint_jacobian", q=q)
        if J.shape[0] <= J.shape[1] and np.linalg.svd(J, compute_uv=False)[-1] > INDEPENDENT:
            return robot, q, qd - np.linalg.pinv(J) @ (J @ qd), tau
    raise AssertionError("no tree found")


def constraint(robot, q, kind: str, rng):
    first, second = (str(rng.choice([j.child for j in robot.moving_joints])) for _ in range(2))
    here = value(robot, "pose", q=q, frame=first)
    if rng.random() < 0.4:  # a loop
        relative = np.linalg.inv(value(robot, "pose", q=q, frame=second)) @ here
        if kind == "weld":
            return lw.Weld(first, second, relative)
        offset = rng.normal(size=3) * 0.2
        return lw.Point(first, second, position=(relative @ [*offset, 1.0])[:3], offset=offset)
    if kind == "weld":
        return lw.Weld(first, here)
    offset = rng.normal(size=3) * 0.2
    return lw.Point(first, (here @ [*offset, 1.0])[:3], offset=offset)


def by_pinocchio(robot, q, qd, tau) -> np.ndarray:
    model, data, order = engine_of(robot)
    contacts = []
    for each in robot.constraints:
        kind = pin.ContactType.CONTACT_6D if each.rows == 6 else pin.ContactType.CONTACT_3D
        ends = []
        for frame, place in each.ends():
            joint, at = (-1, place) if frame is None else robot.locate(frame)
            at = at if frame is None else at @ place
            ends += [joint + 1, pin.SE3(at.rotation, at.translation)]
        contacts.append(pin.RigidConstraintModel(kind, model, *ends, pin.ReferenceFrame.LOCAL))
    datas = [contact.createData() for contact in contacts]
    pin.initConstraintDynamics(model, data, contacts, datas)
    settings = pin.ProximalSettings(1e-15, 1e-15, 100)
    return pin.constraintDynamics(
        model, data, q, theirs(qd, order), theirs(tau, order), contacts, datas, settings
    )[order]


@pytest.mark.parametrize("seed", range(16))
def test_random_trees_with_up_to_twelve_rows(seed):
    robot, q, qd, tau = held_tree(seed)
    expected = by_pinocchio(robot, q, qd, tau)
    scale = np.abs(expected).max()
    names = ["kalman", "compound_link"]
    if constraint_filter.applies(mechanism_of(robot), constraints.prepared(robot)) is None:
        names.append("filter")
    for name in names:
        found = value(robot, "constrained_forward_dynamics", name, q=q, qd=qd, tau=tau)
        assert_near(found, expected, CLOSE, scale, f"{name}, {robot.constraint_rows} rows")


def test_trees_cover_all_numbers_of_rows_and_loops():
    robots = [held_tree(seed)[0] for seed in range(16)]
    assert {robot.constraint_rows for robot in robots} == {3, 6, 9, 12}
    links = mechanism_of
    takes = [constraint_filter.applies(links(r), constraints.prepared(r)) is None for r in robots]
    assert 4 <= sum(takes) < 16


def least_torques(robot, q, qd, qdd) -> tuple[np.ndarray, float]:
    """(the smallest torques of the motors for a motion, what joints without a motor would still need)."""
    J = value(robot, "constraint_jacobian", q=q)
    needed = value(robot.with_constraints([], passive=[]), "inverse_dynamics", q=q, qd=qd, qdd=qdd)
    motors = np.array([j.name not in robot.passive for j in robot.coordinate_joints for _ in range(j.dof)])
    forces = np.linalg.lstsq(J.T[~motors], needed[~motors], rcond=1e-10)[0]
    _, sizes, directions = np.linalg.svd(J.T[~motors])
    free = directions[np.sum(sizes > 1e-9) :].T  # forces that joints without a motor do not feel
    rest = needed[motors] - J.T[motors] @ forces
    forces = forces + free @ np.linalg.lstsq(J.T[motors] @ free, rest, rcond=1e-10)[0]
    left = needed - J.T @ forces
    return np.where(motors, left, 0.0), float(np.abs(left[~motors]).max(initial=0.0))


@pytest.mark.parametrize("seed", range(16))
def test_inverse_dynamics_of_loops_gives_the_smallest_torques(seed):
    robot, q, qd, tau = held_tree(seed)
    qdd = value(robot, "constrained_forward_dynamics", q=q, qd=qd, tau=tau)
    for name in robot.joint_names:
        held = robot.with_constraints(robot.constraints, passive=[name])
        expected, missing = least_torques(held, q, qd, qdd)
        if missing < 1e-9:  # else no torques of the others make this motion
            found = value(held, "inverse_dynamics", q=q, qd=qd, qdd=qdd)
            assert_near(found, expected, CLOSE, np.abs(expected).max(), name)
    expected, _ = least_torques(robot, q, qd, qdd)
    found = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd)
    assert_near(found, expected, CLOSE, np.abs(expected).max(), "all motors")
    again = value(robot, "constrained_forward_dynamics", q=q, qd=qd, tau=found)
    assert_near(again, qdd, 1e-8, np.abs(qdd).max(), "the same motion")


@pytest.mark.parametrize("seed", range(0, 16, 3))
def test_impacts_lose_no_more_than_they_must(seed):
    """Velocities after a plastic impact are those nearest by kinetic energy, as Gauss and Carnot say."""
    robot, q, _, _ = held_tree(seed)
    qd = np.random.default_rng(seed).normal(size=robot.dof)
    J, M = value(robot, "constraint_jacobian", q=q), value(robot, "mass_matrix", q=q)
    after = value(robot, "impact", q=q, qd=qd, restitution=np.zeros(1))
    n, m = robot.dof, len(J)
    system = np.block([[M, -J.T], [J, np.zeros((m, m))]])
    assert_near(
        after, np.linalg.solve(system, np.r_[M @ qd, np.zeros(m)])[:n], CLOSE, np.abs(qd).max(), "impact"
    )
    back = value(robot, "impact", q=q, qd=qd, restitution=np.ones(1))
    assert_near(back @ M @ back, qd @ M @ qd, CLOSE, qd @ M @ qd, "an elastic impact keeps the energy")
