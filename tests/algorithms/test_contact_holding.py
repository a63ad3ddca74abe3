"""Constraints as stiff measurements beside the same constraints eliminated from the matrix of the contacts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw
from four_legs import four_legs
from linkwise.algorithms import coupling, factorised
from linkwise.algorithms.contact import effort, filtered, law, solver
from linkwise.functions.table import mechanism_of

STATES = 24
OF_THE_MATRIX = solver.Effort(8, 10, 1, (*(8 * (1e-3,)), 1e-6, 1e-9), 1e-12)
"""Constraints are eliminated from the matrix of the contacts."""


def legs() -> lw.Robot:
    """A body with four legs of three joints, whose joints rub and have flat feet: one leg follows another one sideways,
    and two are tied together at the hips."""
    feet = [
        lw.Contact(f"knee{leg}", points=[(x, y, -0.2) for x in (-0.03, 0.03) for y in (-0.02, 0.02)])
        for leg in range(4)
    ]
    robot = four_legs()
    robot = robot.with_parameters({f"{name}.coulomb_friction": 0.3 for name in robot.joint_names[1:]})
    tied = [
        lw.Coupling("side1", "side0", -1.0),
        lw.Point("hip2", "hip3", offset=(0, -0.1, -0.1), position=(0, 0.1, -0.1)),
    ]
    return robot.with_constraints(tied).with_contacts(feet)


def states(robot: lw.Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nearly closed, moving in all coordinates, most feet at the ground."""
    rng = np.random.default_rng(0)
    q = np.tile(robot.neutral, (STATES, 1))
    q[:, 3:6] = 0.02 * rng.normal(size=(STATES, 3))
    bent = {"side": 0.0, "hip": 0.3, "knee": -0.6}
    q[:, 7:] = [bent[joint.name[:-1]] for joint in robot.coordinate_joints[1:]]
    q[:, 7:] += 1e-6 * rng.normal(size=(STATES, robot.nq - 7))
    q[:, 2] -= np.median(robot.contact_gaps(q), axis=1)
    qd = 0.1 * rng.normal(size=(STATES, robot.dof))
    return q, qd, rng.normal(size=(STATES, robot.dof))


def rows(values) -> np.ndarray:
    """A row for every state."""
    return np.ascontiguousarray(np.array([np.broadcast_to(x, STATES) for x in values]).T)


def step(robot: lw.Robot, how: effort.Effort, given_states=None) -> law.Stepped:
    links, scene = mechanism_of(robot, slide=True, base_parameters=False), law.scene_of(robot)
    q, qd, tau = (np.ascontiguousarray(each.T) for each in given_states or states(robot))
    given = law.Given(
        0.002, [each.friction for each in scene.candidates], [np.zeros(STATES)] * len(scene.candidates)
    )
    with np.errstate(all="ignore"):
        return law.step(
            links,
            coupling.expanded(links, list(q), positions=True),
            coupling.expanded(links, list(qd)),
            coupling.expanded(links, list(tau), forces=True),
            scene,
            given,
            how,
        )


def test_robots_with_constraints_and_many_rows_move_as_with_the_matrix_of_all_rows():
    robot = legs()
    links, scene = mechanism_of(robot, slide=True, base_parameters=False), law.scene_of(robot)
    many = effort.chosen(scene, links)
    assert many.filtered is not None
    assert links.coupled
    assert scene.held
    here, there = step(robot, many), step(robot, OF_THE_MATRIX)
    assert np.max(here.residual) < 1e-6
    solved = np.asarray(there.residual) < 1e-7
    assert solved.sum() >= 3  # the matrix has a fixed number of steps
    moved, others = rows(here.qd), rows(there.qd)
    scale = np.abs(others).max(axis=1)
    assert (np.abs(moved - others).max(axis=1) / scale)[solved].max() < 2e-5
    # what is held comes back by a fifth of its error in a step, whatever touches
    before = robot.constraint_errors(states(robot)[0])
    np.testing.assert_allclose(robot.constraint_errors(rows(here.q)), 0.8 * before, atol=1e-7)


def test_flat_feet_of_robots_with_few_rows_and_constraints_are_solved():
    feet = [
        lw.Contact(f"knee{leg}", points=[(x, y, -0.2) for x in (-0.03, 0.03) for y in (-0.02, 0.02)])
        for leg in range(2)
    ]
    follows = lw.Coupling("side1", "side0", -1.0)
    tied = lw.Point("hip2", "hip3", offset=(0, -0.1, -0.1), position=(0, 0.1, -0.1))
    for held in ([follows], [tied]):
        robot = four_legs().with_constraints(held).with_contacts(feet)
        chosen = effort.chosen(law.scene_of(robot), mechanism_of(robot, slide=True, base_parameters=False))
        assert np.max(step(robot, chosen).residual) < 1e-6


def test_turning_friction_of_robots_with_constraints_holds():
    body = lw.Link("body", lw.Inertia.from_com(2.0, (0, 0, 0), (0.02, 0.02, 0.02)))
    arm = lw.Link("arm", lw.Inertia.from_com(0.5, (0.1, 0, 0), (1e-3, 2e-3, 2e-3)))
    joint = lw.Joint("hinge", "revolute", "body", "arm", lw.Transform.from_rpy((0, 0, 0.1)), (0, 0, 1))
    robot = lw.Robot("top", [body, arm], [joint]).with_base("floating")
    robot = robot.with_constraints([lw.Weld("arm", "body", lw.Transform.from_rpy((0, 0, 0.1)))])
    spinning = robot.with_contacts([lw.Contact("body", radius=0.1, friction=0.5, torsional_friction=0.01)])
    q, qd = spinning.neutral, np.zeros(7)
    q[2], qd[2] = 0.1, 2.0
    _, after, impulse = spinning.contact_step(q, qd, np.zeros(7))
    assert after[2] < 2.0  # it slows
    assert abs(after[6]) < 1e-8  # and the hinge stays
    np.testing.assert_allclose(impulse[0, 2], 2.5 * 9.81 * 0.002, rtol=0.2)


def test_factors_of_other_matrices_than_those_of_trees():
    rng = np.random.default_rng(1)
    half = rng.normal(size=(6, 6)) * (rng.uniform(size=(6, 6)) < 0.4) + 3.0 * np.eye(6)
    full = half @ half.T
    matrix = [[0.0 if x == 0.0 else float(x) for x in row] for row in full]
    inner = factorised.filled(matrix)
    assert sum(map(len, inner)) < 15  # some are zero
    links = mechanism_of(legs(), slide=True, base_parameters=False)
    L, inverse = factorised.factorise(links, matrix, inner)
    right = rng.normal(size=6)
    x = factorised.inward(links, L, right, inner)
    x = factorised.outward(links, L, [a * b for a, b in zip(x, inverse, strict=True)], inner)
    np.testing.assert_allclose(full @ x, right, atol=1e-12)


def test_loops_that_are_not_closed_keep_the_momentum():
    robot = legs().with_gravity((0.0, 0.0, 0.0))
    q, qd, _ = states(robot)
    q[:, 2] += 5.0
    q[:, 7:] += 0.05 * np.random.default_rng(2).normal(size=q[:, 7:].shape)
    still = np.zeros_like(qd)
    stepped = step(robot, effort.REDUNDANT[1e-6], (q, still, still))
    assert np.abs(rows(stepped.qd)).max() > 1.0  # the loop closes
    after = rows(stepped.qd)  # along the axes of the end
    turned = Rotation.from_quat(q[:, 3:7]).inv() * Rotation.from_quat(rows(stepped.q)[:, 3:7])
    after[:, 3:6] = turned.apply(after[:, 3:6])
    np.testing.assert_allclose(robot.centroidal_momentum(q, after), 0.0, atol=1e-12)


def test_steps_that_are_far_off_are_not_taken(monkeypatch):
    """The residual at which the next step starts is at most ``wildest`` times the last one, and the best is found."""
    robot = legs()
    links = mechanism_of(robot, slide=True, base_parameters=False)
    schedule = effort.chosen(law.scene_of(robot), links).filtered
    assert schedule == replace(effort.REDUNDANT[1e-6].filtered, wildest=effort.WILDEST)
    growths: list[float] = []
    places: list[int] = []
    loop, solve = filtered.while_loop, filtered.solve

    def placed(problem, stiff, *given):
        places.append(
            4 + 3 * len(stiff) + len(problem.M)
        )  # the number after count, ε, best, falls, p, v, w, best p
        return solve(problem, stiff, *given)

    def watched(active, body, state, uneven=False):
        def seen(*values):
            after = body(*values)
            before, now = (np.broadcast_to(each[places[-1]], STATES) for each in (values, after))
            growths.extend(np.sqrt(now / before)[np.broadcast_to(active(*values), STATES)])
            return after

        return loop(active, seen, state, uneven)

    monkeypatch.setattr(filtered, "while_loop", watched)
    monkeypatch.setattr(filtered, "solve", placed)
    q, qd, tau = states(robot)
    most = []
    for wildest in (1e30, effort.WILDEST):
        growths.clear()
        how = effort.Effort(filtered=replace(schedule, wildest=wildest))
        found = step(robot, how, (q, 20.0 * qd, 50.0 * tau))
        assert np.max(found.residual) < 1e-6
        most.append(max(growths))
    assert most[0] > 2.0 * effort.WILDEST, "some steps are far off"
    assert most[1] < effort.WILDEST * (1.0 + 1e-9)


def test_impulses_are_never_worse_than_those_at_the_start(monkeypatch):
    robot, how = legs(), effort.STIFF[1e-6]
    starts: list[list] = []

    def first(problem, stiff, least, free, schedule, start, _moved_by):
        starts.append(start[0])
        return list(start[0])

    monkeypatch.setattr(filtered, "solve", first)
    wanted = step(robot, how)
    for wrong in (1e6, np.nan):
        monkeypatch.setattr(
            filtered, "solve", lambda *given, wrong=wrong: [wrong + 0.0 * x for x in starts[0]]
        )
        found = step(robot, how)
        np.testing.assert_array_equal(found.residual, wanted.residual)
        np.testing.assert_array_equal(rows(found.qd), rows(wanted.qd))
