"""Accelerations and forces of frames that the ground holds (``optimal.touching``) on plain numbers, beside NumPy."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import optimal
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.optimal.touching import Columns, Pattern, Touching


@pytest.mark.parametrize("flags", [(1, 1, 1), (1, 0, 1), (0, 1, 0), (0, 0, 0)])
def test_accelerations_forces_and_their_derivatives(flags):
    rng = np.random.default_rng(2)
    W, J = rng.normal(size=(5, 6)), rng.normal(size=(3, 5))
    M, net, rates, held = W @ W.T, rng.normal(size=5), rng.normal(size=3), np.array(flags) > 0
    system = Touching(*objects(M, net, J, rates, flags))
    # M q̈ − Jᵀ f = net and J q̈ = −γ in the rows that are held; other forces are zero
    A = J[held]
    inverse = np.linalg.inv(np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]]))
    for own_net, own_rates in ((net, rates), (rng.normal(size=5), rng.normal(size=3))):
        expected = inverse @ np.concatenate([own_net, -own_rates[held]])
        force = np.zeros(3)
        force[held] = expected[5:]
        qdd, found = (x.astype(float) for x in system.factors.solved(*objects(own_net, own_rates)))
        np.testing.assert_allclose(qdd, expected[:5], atol=1e-9)
        np.testing.assert_allclose(np.where(held, found, 0.0), force, atol=1e-9)
    np.testing.assert_array_equal(system.qdd, system.factors.solved(*objects(net, rates))[0])


def test_factors_are_zero_where_the_pattern_says_so():
    # a base (links 0, 1) with two branches (2, 3 and 4, 5) whose ends touch
    moved = [{0, 1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, {2, 3}, {3}, {4, 5}, {5}]
    pattern = Pattern(moved, [3, 3, 5])
    rng = np.random.default_rng(1)
    related = np.array([[bool(a & b) for b in moved] for a in moved])
    M = np.where(related, 0.1 * rng.normal(size=(6, 6)), 0.0)
    M = M + M.T + 3.0 * np.eye(6)
    J = np.where([[body in own for own in moved] for body in (3, 3, 5)], rng.normal(size=(3, 6)), 0.0)
    made = Touching(*objects(M, np.ones(6), J, np.zeros(3), np.ones(3))).factors
    again = pattern.factors(*pattern.numbers(made))
    found = again.solved(*objects(np.ones(6), np.ones(3)))
    for a, b in zip(found, made.solved(*objects(np.ones(6), np.ones(3))), strict=True):
        np.testing.assert_array_equal(a, b)
    assert pattern.groups() == [
        Columns(0, 2, ((0, 9),)),
        Columns(2, 2, ((0, 4), (6, 2))),
        Columns(4, 2, ((0, 2), (4, 2), (8, 1))),
        Columns(6, 2, ((0, 9),)),
        Columns(8, 2, ((0, 4), (6, 2))),
        Columns(10, 2, ((0, 2), (4, 2), (8, 1))),
    ]


def test_an_entry_that_the_pattern_leaves_out_is_an_error():
    pattern = Pattern([{0}, {1}], [0], still=[1])
    pattern.checked([[1.0, 2.0, 1.0, 0.0], [0.0, 2.0, 0.0, 1.0], [1.0, 2.0, 1.0, 0.0]])
    with pytest.raises(AssertionError):
        pattern.checked([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]])
    made = Touching(*objects(np.eye(2) + 0.5, np.ones(2), np.eye(2)[:1], np.zeros(1), np.ones(1))).factors
    with pytest.raises(AssertionError):
        pattern.numbers(made)


def test_branches_of_one_shape_are_one_group():
    moved = [{0, 1, 2, 3, 4, 5, 6}, {1, 2}, {2}, {3, 4}, {4}, {5, 6}, {6}]
    groups = Pattern(moved, [2, 4, 6], still=[0]).groups()
    # the first branch lies beside the base, so that its rows are fewer pieces
    assert groups[1] == Columns(3, 2, ((0, 1), (3, 2), (8, 1)), 2, 2, (0, 2, 1))
    columns = [g.first + t * g.shift + j for g in groups for t in range(g.count) for j in range(g.columns)]
    assert columns == list(range(1, 14))
    assert groups[1].rows(1) == [slice(0, 1), slice(5, 7), slice(9, 10)]


def objects(*arrays):
    """Arrays of Python's numbers."""
    return [np.array(np.asarray(x, float).tolist(), object) for x in arrays]


@pytest.mark.parametrize("hold", ["velocity", "acceleration"])
def test_a_base_that_is_moved_along_changes_nothing(hold):
    """Derivatives by its position are left out: they are round-off."""
    robot = lw.quadruped(friction=None)
    feet = [f"foot{leg}" for leg in range(4)]
    schedule = optimal.ContactSchedule(feet, np.ones((4, 4)), hold=hold)
    problem = optimal.Problem(
        robot, horizon=4, step=0.02, costs=[optimal.Effort(1.0)], contacts=schedule, torque_limits=False
    )
    dynamics, rows = problem.dynamics, robot.dof + 12
    assert dynamics.pattern.still == (3, 4, 5)
    sizes = {"x": problem.ns, "qdd": robot.dof, "force": 12}

    def by_position(x, qdd, force):
        slopes = dynamics.contact_slopes(x, qdd, force)
        return {"slopes": [row[3:6] for part in slopes for row in part]}

    def build(dtype):
        return trace(by_position, sizes, {"slopes": (rows, 3)}, name="slopes", dtype=dtype)

    kernel = Kernel("slopes", sizes.items(), {"slopes": (rows, 3)}.items(), "float64", build, None)
    rng = np.random.default_rng(4)
    given = [rng.normal(size=(5, size)) for size in sizes.values()]
    given[0][:, 3:7] /= np.linalg.norm(given[0][:, 3:7], axis=1)[:, None]
    assert np.abs(np.asarray(kernel(*given))).max() < 1e-11
