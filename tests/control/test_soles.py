"""Soles in whole-body control: cones of wrenches against forces of points, and forces that make the wrenches."""

import numpy as np
import pytest
from scipy.optimize import nnls
from test_whole_body import legged, on_numbers

from linkwise import control
from linkwise.control.whole_body.limits import wrench_of
from linkwise.solve.cones import facets

RECTANGLE = ((0.1, 0.06, -0.02), (0.1, -0.06, -0.02), (-0.1, 0.06, -0.02), (-0.1, -0.06, -0.02))


def rays(sole):
    """Wrenches of forces along the edges of the pyramids, as columns."""
    edges = np.kron(np.eye(len(sole.points)), sole.pyramid_edges())
    return wrench_of(sole.points, sole.radius, sole.axes()) @ edges


def test_a_cone_of_wrenches_has_those_of_forces_inside_the_pyramids_and_no_others():
    """Against least squares with forces that are not negative, for random soles and wrenches on both sides."""
    rng = np.random.default_rng(1)
    soles = [control.Support("sole", RECTANGLE), control.Support("sole", RECTANGLE, facets=5, inside=False)]
    for corners in (3, 4, 5):
        points = 0.1 * rng.normal(size=(corners, 3))
        soles.append(control.Support("sole", points, normal=(0.2, 0.1, 1.0), friction=0.4))
    assert len(soles[0].cone) == 16  # Caron et al., 2015
    for sole in soles:
        G, C, seen = rays(sole), sole.cone, set()
        assert (C @ G).max() < 1e-9
        for _ in range(60):
            few = rng.uniform(size=G.shape[1]) * (rng.uniform(size=G.shape[1]) < 0.3)
            wrench = G @ few + 0.3 * rng.normal(size=6) * np.array([0.05, 0.05, 0.05, 1.0, 1.0, 1.0])
            inside = bool((C @ wrench).max() <= 0.0)
            assert inside == (nnls(G, wrench)[1] < 1e-9)
            seen.add(inside)
        assert seen == {True, False}
        for row in C:  # every facet is needed: without it the cone is larger
            assert np.linalg.matrix_rank(G[:, np.abs(row @ G) < 1e-9], tol=1e-7) == 5


def test_facets_of_a_simple_cone():
    found = facets(
        np.array([[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, -1.0, 1.0], [0.1, 0.1, 1.0]])
    )
    wanted = np.array([[x, y, -1.0] for x in (-1.0, 1.0) for y in (-1.0, 1.0)]) / np.sqrt(3.0)
    assert sorted(map(tuple, found.round(12))) == sorted(map(tuple, wanted.round(12)))


def biped(method=None, iterations=40, **limits):
    tasks = [
        control.CenterOfMassTask(frequency=0.0),
        control.PoseTask("body", "turn", weight=0.4, frequency=0.0),
        control.PostureTask(weight=0.05, frequency=0.0),
        control.ForceTask(weight=1e-3),
    ]
    soles = [control.Support(f"foot{k}", RECTANGLE, friction=0.6, **limits) for k in range(2)]
    return control.WholeBody(legged(5, 2, 6), tasks, supports=soles, iterations=iterations, method=method)


def state_of(law, seed):
    """(q, qd, targets) with soles that are nearly level and wanted accelerations that some cannot hold."""
    rng, robot = np.random.default_rng(seed), law.robot
    q = robot.integrate(robot.neutral, 0.15 * rng.normal(size=robot.dof))
    targets = np.zeros(law.input_shapes()["targets"])
    for task, parts in zip(law.tasks, law.target_slices(), strict=True):
        if isinstance(task, control.ForceTask):
            targets[parts[0].stop - 1] = 60.0
            continue
        targets[parts[2]] = 1.5 * rng.normal(size=parts[2].stop - parts[2].start)
        if isinstance(task, control.PoseTask):
            targets[parts[0].stop - 1] = 1.0
        if task.posture:
            targets[parts[0]] = q
    return q, 0.2 * rng.normal(size=robot.dof), targets


def test_wrenches_of_soles_give_the_solution_that_forces_of_their_points_give():
    """The same problem with the forces of all points as unknowns: a largest force that is never reached asks for
    them."""
    law, points = biped(), biped(largest=1e5)
    assert (law.rows.unknowns, points.rows.unknowns) == (12, 24)
    robot, reached, compared = law.robot, 0, 0
    for seed in range(8):
        stance = (0.0, 1.0) if seed == 2 else (1.0, 1.0)
        q, qd, targets = state_of(law, seed)
        found = on_numbers(law, q, qd, targets, np.array(stance))
        for force, foot in zip(found["forces"], np.repeat(stance, 4), strict=True):
            C, c = law.supports[0].pyramid()
            assert (C @ force - c <= 1e-9).all()
            assert foot or (force == 0.0).all()
        J, pushed = [], []
        for k, sole in enumerate(law.supports):
            R = robot.pose(q, sole.frame)[:3, :3]
            J.append(np.kron(np.eye(2), R.T) @ robot.jacobian(q, sole.frame))
            own = found["forces"][4 * k : 4 * k + 4].ravel()
            pushed.append(wrench_of(sole.points, sole.radius, sole.axes()) @ own)
        given = found["tau"] + np.vstack(J).T @ np.concatenate(pushed)
        needed = robot.mass_matrix(q) @ found["qdd"] + robot.bias_torques(q, qd)
        assert np.abs(given - needed).max() < 1e-8 * (1.0 + np.abs(needed).max())
        other = on_numbers(points, q, qd, targets, np.array(stance))
        if max(found["report"].max(), other["report"].max()) < 1e-5:  # else one of them is not solved
            scale = np.abs(other["tau"]).max()
            np.testing.assert_allclose(found["tau"], other["tau"], rtol=0.0, atol=1e-6 * scale)
            reached, compared = reached + found["active"][24:].sum(), compared + 1
    assert compared >= 3
    assert reached >= 2


def test_the_interior_point_method_solves_every_state_with_soles():
    """The active-set method solves those with cones of wrenches, but not all with limits of the points: more of them
    are active at once than what they limit has directions."""
    law, with_limits = biped(), biped(largest=1e5)
    surely, points = biped("interior_point", 20), biped("interior_point", 20, largest=1e5)
    solved = 0
    for seed in range(12):
        q, qd, targets = state_of(law, seed)
        stance = np.array((0.0 if seed % 3 == 2 else 1.0, 1.0))
        sure, other = (each.solve(q, qd, targets, stance=stance)[0] for each in (surely, points))
        assert max(float(sure.residual), float(other.residual)) < 1e-8
        tolerance = {"rtol": 0.0, "atol": 2e-5 * np.abs(sure.tau).max()}
        np.testing.assert_allclose(other.tau, sure.tau, **tolerance)
        found = law.solve(q, qd, targets, stance=stance)[0]
        assert found.status == "solved"
        assert float(found.residual) < 1e-6
        np.testing.assert_allclose(found.tau, sure.tau, **tolerance)
        found = with_limits.solve(q, qd, targets, stance=stance)[0]
        if float(found.residual) < 1e-7:
            solved += 1
            np.testing.assert_allclose(found.tau, sure.tau, **tolerance)
    assert solved >= 3


def test_methods_are_checked():
    with pytest.raises(control.TaskError, match="method: expected one of active_set, interior_point"):
        biped("simplex")
    law = biped()
    tasks = [*law.tasks[:3], control.ForceTask(weight=1e-3, level=2)]
    with pytest.raises(control.TaskError, match="active_set solves tasks of one level, these have 2"):
        control.WholeBody(law.robot, tasks, supports=law.supports, method="active_set")
    assert control.WholeBody(law.robot, tasks, supports=law.supports).method == "interior_point"
    assert biped("interior_point").key() != law.key()


def test_several_levels_have_the_same_solution_with_wrenches_and_with_forces_of_points():
    """The interior-point method."""
    errors = []
    for law in (biped(), biped(largest=1e5)):
        tasks = [*law.tasks[:3], control.ForceTask(weight=1e-3, level=2)]
        strict = control.WholeBody(law.robot, tasks, supports=law.supports, iterations=25)
        found = on_numbers(strict, *state_of(law, 2))
        assert found["report"].max() < 1e-6
        errors.append(found["errors"])
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-6)
