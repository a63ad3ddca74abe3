"""The class Robot: shapes, precisions, names, errors, and that it never changes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise import Frame, Inertia, Joint, Link, Robot, Transform
from strategies import body, states_of

METHODS = {  # name: (inputs, shape of one state for n = 2)
    "inverse_dynamics": (3, (2,)),
    "forward_dynamics": (3, (2,)),
    "mass_matrix": (1, (2, 2)),
    "inverse_mass_matrix": (1, (2, 2)),
    "gravity_torques": (1, (2,)),
    "velocity_torques": (2, (2,)),
    "bias_torques": (2, (2,)),
    "coriolis_matrix": (2, (2, 2)),
    "christoffel": (1, (2, 2, 2)),
    "kinetic_energy": (2, ()),
    "potential_energy": (1, ()),
    "pose": (1, (4, 4)),
    "jacobian": (1, (6, 2)),
    "velocity": (2, (6,)),
    "regressor": (3, (2, 26)),
}
NAMES = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "regressor": ("q", "qd", "qdd"),
}


@pytest.fixture(scope="module")
def arm() -> Robot:
    return lw.load("two_link")


@pytest.fixture(scope="module")
def states(arm):
    return states_of(arm, 1, 12)


def inputs_of(method, states):
    names = NAMES.get(method, ("q", "qd"))[: METHODS[method][0]]
    return [getattr(states, name) for name in names]


# -- shapes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_leading_axes(arm, states, method):
    count, shape = METHODS[method]
    call = getattr(arm, method)
    given = inputs_of(method, states)
    flat = call(*given)
    assert flat.shape == (12, *shape)
    cube = call(*(x.reshape(2, 3, 2, 2) for x in given))
    assert np.array_equal(cube.reshape(flat.shape), flat)
    one = call(*(x[5] for x in given))
    assert np.shape(one) == shape
    assert np.array_equal(one, flat[5])
    none = call(*(x[:0] for x in given))
    assert none.shape == (0, *shape)
    assert call(*(x[:0].reshape(3, 0, 2) for x in given)).shape == (3, 0, *shape)
    if count > 1:  # broadcasting, as in NumPy
        first, *others = given
        table = call(first[:4, None], *(x[None, :3] for x in others))
        assert table.shape == (4, 3, *shape)
        for i in range(4):
            assert np.array_equal(table[i], call(np.broadcast_to(first[i], (3, 2)), *(x[:3] for x in others)))
        assert np.array_equal(call(first[0], *others), call(np.broadcast_to(first[0], (12, 2)), *others))


@pytest.mark.parametrize("method", METHODS)
def test_wrong_shapes_name_the_argument(arm, states, method):
    names = NAMES.get(method, ("q", "qd"))[: METHODS[method][0]]
    given = inputs_of(method, states)
    for k, name in enumerate(names):
        for wrong, shown in ((np.zeros(3), r"\(3,\)"), (np.zeros((12, 1)), r"\(12, 1\)"), (0.5, r"\(\)")):
            bad = [wrong if i == k else x for i, x in enumerate(given)]
            with pytest.raises(lw.ShapeError, match=rf"^{name}: expected shape \(\.\.\., 2\), got {shown}$"):
                getattr(arm, method)(*bad)


def test_batches_that_do_not_fit(arm):
    with pytest.raises(ValueError, match=r"do not broadcast together: q \(2, 2\), qd \(3, 2\), qdd \(2,\)"):
        arm.inverse_dynamics(np.zeros((2, 2)), np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(lw.ShapeError, match=r"^q: "):
        arm.mass_matrix([[1.0], [1.0, 2.0]])
    assert issubclass(lw.ShapeError, ValueError)
    assert issubclass(lw.ShapeError, lw.LinkwiseError)


def test_wrench_shapes(arm, states):
    q, qd, qdd = states.q, states.qd, states.qdd
    w = states.wrench
    each = arm.inverse_dynamics(q, qd, qdd, wrench=w)
    assert np.array_equal(arm.inverse_dynamics(q[3], qd[3], qdd[3], wrench=w[3]), each[3])
    assert arm.inverse_dynamics(q[0], qd[0], qdd[0], wrench=w).shape == (12, 2)  # one state, many wrenches
    with pytest.raises(lw.ShapeError, match=r"^wrench: expected shape \(\.\.\., 6\), got \(3,\)"):
        arm.inverse_dynamics(q, qd, qdd, wrench=np.zeros(3))
    with pytest.raises(lw.ShapeError, match=r"do not broadcast"):
        arm.inverse_dynamics(q, qd, qdd, wrench=w[:5])


# -- kinds of numbers -------------------------------------------------------------------------------------------------


def test_lists_and_whole_numbers(arm):
    wanted = arm.inverse_dynamics(np.array([1.0, 2.0]), np.array([0.0, 1.0]), np.array([3.0, -1.0]))
    for given in (
        ([1, 2], [0, 1], [3, -1]),
        ((1.0, 2.0), [0, 1.0], np.array([3, -1])),
        (np.array([1, 2], np.int8), np.array([False, True]), np.array([3, -1], np.float16)),
        (np.array([1, 2], np.float32), np.array([0, 1], np.float64), np.array([3, -1], np.float32)),
        (np.array([1, 2], np.float32), [0, 1], np.array([3, -1], np.float32)),
        (np.array([1.0, 2.0], ">f8"), np.array([0.0, 1.0], "<f8"), np.array([3.0, -1.0], np.longdouble)),
    ):
        found = arm.inverse_dynamics(*given)
        assert found.dtype == np.float64
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("method", METHODS)
def test_single_precision_only_when_all_are(arm, states, method):
    given = [x.astype(np.float32) for x in inputs_of(method, states)]
    found = getattr(arm, method)(*given)
    assert found.dtype == np.float32
    double = getattr(arm, method)(*(x.astype(float) for x in given))
    assert double.dtype == np.float64
    assert np.max(np.abs(found - double)) <= 1e-4 * max(1.0, np.max(np.abs(double)))
    one = getattr(arm, method)(*(x[0] for x in given))
    assert np.asarray(one).dtype == np.float32
    if len(given) > 1:
        assert getattr(arm, method)(*given[:-1], given[-1].astype(float)).dtype == np.float64


@pytest.mark.parametrize(
    "bad", [np.array([1j, 0]), ["a", "b"], np.array([None, None]), None, np.array([1.0, 2.0], dtype=object)]
)
def test_what_is_no_real_number_is_refused(arm, bad):
    rest = np.zeros(2)
    for _ in range(2):  # the second time by the shorter way
        with pytest.raises(TypeError, match=r"^qd: expected real numbers, got an array of"):
            arm.inverse_dynamics(rest, bad, rest)
        arm.inverse_dynamics(rest, rest, rest)


def test_layouts_in_memory(arm, states):
    """Transposed, strided, reversed, read-only, misaligned: the numbers count, not where they lie."""
    wanted = arm.mass_matrix(states.q)
    fortran = np.asfortranarray(states.q)
    wide = np.zeros((12, 5))
    wide[:, 1:5:2] = states.q
    raw = np.zeros(12 * 2 * 8 + 1, np.uint8)
    crooked = raw[1:].view(float).reshape(12, 2)
    crooked[...] = states.q
    frozen = states.q.copy()
    frozen.setflags(write=False)
    for given in (fortran, wide[:, 1:5:2], crooked, frozen, states.q[::-1][::-1], np.ma.array(states.q).data):
        assert np.array_equal(arm.mass_matrix(given), wanted)
    assert np.array_equal(arm.mass_matrix(states.q[::-1]), wanted[::-1])
    assert np.array_equal(
        arm.mass_matrix(np.broadcast_to(states.q[0], (7, 2))), np.broadcast_to(wanted[0], (7, 2, 2))
    )


# -- where results go -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_out(arm, states, method):
    given = inputs_of(method, states)
    wanted = getattr(arm, method)(*given)
    out = np.full_like(wanted, np.nan)
    assert getattr(arm, method)(*given, out=out) is out
    assert np.array_equal(out, wanted)
    holes = np.full((24, *wanted.shape[1:]), np.nan)
    part = holes[::2]
    assert getattr(arm, method)(*given, out=part) is part
    assert np.array_equal(part, wanted)
    assert np.isnan(holes[1::2]).all()
    one = np.empty(wanted.shape[1:])
    assert getattr(arm, method)(*(x[0] for x in given), out=one) is one
    assert np.array_equal(one, wanted[0])


def test_out_may_be_an_input(arm, states):
    wanted = arm.inverse_dynamics(states.q, states.qd, states.qdd)
    for k in range(3):
        given = [states.q.copy(), states.qd.copy(), states.qdd.copy()]
        assert arm.inverse_dynamics(*given, out=given[k]) is given[k]
        assert np.array_equal(given[k], wanted)
    shared = np.zeros((13, 2))
    shared[:12] = states.q
    arm.inverse_dynamics(shared[:12], states.qd, states.qdd, out=shared[1:])  # overlapping, shifted
    assert np.array_equal(shared[1:], wanted)


def test_wrong_out(arm, states):
    q, qd, qdd = states.q, states.qd, states.qdd
    with pytest.raises(lw.ShapeError, match=r"^out: expected shape \(12, 2\), got \(12, 3\)"):
        arm.inverse_dynamics(q, qd, qdd, out=np.empty((12, 3)))
    with pytest.raises(TypeError, match=r"^out: expected an array of float64, got float32"):
        arm.inverse_dynamics(q, qd, qdd, out=np.empty((12, 2), np.float32))
    with pytest.raises(TypeError, match=r"^out: expected a NumPy array, got list"):
        arm.inverse_dynamics(q, qd, qdd, out=[[0.0, 0.0]] * 12)
    frozen = np.zeros((12, 2))
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match=r"^out: the array is read-only"):
        arm.inverse_dynamics(q, qd, qdd, out=frozen)
    assert not frozen.any()


def test_inputs_are_left_alone(arm, states):
    kept = copy.deepcopy(states)
    for method in METHODS:
        result = getattr(arm, method)(*inputs_of(method, states))
        result[...] = 7.0  # results are new arrays of the caller's own
    for name in ("q", "qd", "qdd", "tau"):
        assert np.array_equal(getattr(states, name), getattr(kept, name))


@pytest.mark.parametrize("bad", [0, -1, 1.5])
def test_threads_are_counted_from_one(arm, states, bad):
    for q in (states.q, states.q[0]):
        with pytest.raises((ValueError, TypeError), match=r"^threads: expected"):
            arm.mass_matrix(q, threads=bad)


# -- robots without joints --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_robot_that_does_not_move(method):
    load = body(np.random.default_rng(0))
    mount = Joint("bolt", "fixed", "base", "block", Transform.from_rpy((1, 2, 3), (0.1, 0.2, 0.3)))
    block = Robot("block", [Link("base"), Link("block", load)], [mount])
    count, shape = METHODS[method]
    shape = tuple(0 if size in (2, 26) else size for size in shape)
    assert getattr(block, method)(*[np.zeros((3, 0))] * count).shape == (3, *shape)
    assert np.shape(getattr(block, method)(*[[]] * count)) == shape
    if method == "pose":
        assert np.allclose(block.pose([])[:3, 3], (1, 2, 3))
    if method.endswith("energy"):
        assert getattr(block, method)(*[[]] * count) == 0.0
    with pytest.raises(lw.ShapeError, match=r"q: expected shape \(\.\.\., 0\), got \(1,\)"):
        getattr(block, method)(*[np.zeros(1)] * count)
    for algorithm in block.algorithms("forward_dynamics"):
        assert block.forward_dynamics(*[np.zeros((3, 0))] * 3, algorithm=algorithm).shape == (3, 0)
    for derivatives in (block.inverse_dynamics_derivatives, block.forward_dynamics_derivatives):
        assert [matrix.shape for matrix in derivatives(*[np.zeros((3, 0))] * 3)] == [(3, 0, 0)] * 3


def test_history_and_filter_of_nothing():
    block = Robot("block", [Link("base")], [])
    assert block.conjugate_gradient([], [], []).converged
    assert block.filter([], [], []).inertia.shape == (0, 6, 6)


# -- names ------------------------------------------------------------------------------------------------------------


def test_unknown_names_list_the_valid_ones(arm):
    zero = np.zeros(2)
    for call, message in (
        (
            lambda: arm.inverse_dynamics(zero, zero, zero, algorithm="newton_eular"),
            "did you mean 'newton_euler'.*gibbs_appell",
        ),
        (
            lambda: arm.forward_dynamics(zero, zero, zero, algorithm="kalmann"),
            "did you mean 'kalman'.*conjugate_gradient",
        ),
        (lambda: arm.mass_matrix(zero, algorithm="crba"), "valid: compound_link, covariance, newton_euler"),
        (lambda: arm.inverse_mass_matrix(zero, algorithm="covariance"), "valid: kalman, compound_link"),
        (lambda: arm.algorithms("mass_matrx"), "did you mean 'mass_matrix'"),
        (lambda: arm.pose(zero, "tipp"), "did you mean 'tip'"),
        (lambda: arm.jacobian(zero, "nowhere"), "valid: .*tip"),
        (lambda: arm.velocity(zero, zero, "nowhere"), "has no frame 'nowhere'"),
        (
            lambda: arm.inverse_dynamics(zero, zero, zero, wrench=np.zeros(6), wrench_frame="hand"),
            "has no frame 'hand'",
        ),
        (lambda: arm.inverse_dynamics(zero, zero, zero, wrench_frame="hand"), "has no frame 'hand'"),
        (lambda: arm.kernel("inverse_dynamics", frame="hand"), "has no frame 'hand'"),
        (lambda: arm.lock({"joint7": 0.0}), "no moving joint 'joint7'"),
        (lambda: arm.with_payload(1.0, frame="hand"), "has no frame 'hand'"),
        (lambda: arm.with_parameters({"link1.mass": 1.0}), "no parameter 'link1.mass'; .*link1.m"),
    ):
        with pytest.raises(lw.UnknownNameError, match=message):
            call()
    assert issubclass(lw.UnknownNameError, ValueError)


def two_hands() -> Robot:
    links = [
        Link("base"),
        Link("left", Inertia.from_com(1, (0.1, 0, 0), (1, 1, 1))),
        Link("right", Inertia.from_com(1, (0, 0.1, 0), (1, 1, 1))),
    ]
    joints = [
        Joint("a", "revolute", "base", "left"),
        Joint("b", "revolute", "base", "right", axis=(0.0, 1.0, 0.0)),
    ]
    return Robot("two_hands", links, joints, frames=[Frame("palm", "left", Transform.along((0, 0, 1), 0.2))])


def test_several_leaves_are_listed():
    robot = two_hands()
    zero = np.zeros(2)
    for call in (
        lambda: robot.pose(zero),
        lambda: robot.jacobian(zero),
        lambda: robot.velocity(zero, zero),
        lambda: robot.inverse_dynamics(zero, zero, zero, wrench=np.zeros(6)),
        lambda: robot.forward_dynamics(zero, zero, zero, wrench=np.zeros(6)),
        lambda: robot.forward_dynamics(zero, zero, zero, wrench=np.zeros(6), algorithm="conjugate_gradient"),
        lambda: robot.with_payload(1.0),
    ):
        with pytest.raises(ValueError, match=r"2 leaves; name the frame: one of left, right"):
            call()
    assert robot.pose(zero, "palm")[2, 3] == 0.2
    robot.inverse_dynamics(zero, zero, zero)  # no wrench, no question


def test_a_frame_may_be_any_link_or_named_frame(arm):
    q = np.array([0.3, -0.7])
    for frame in arm.frame_names:
        assert arm.pose(q, frame).shape == (4, 4)
        assert arm.jacobian(q, frame=frame).shape == (6, 2)
    assert np.array_equal(arm.pose(q, arm.base), np.eye(4))
    assert not arm.jacobian(q, arm.base).any()
    assert not arm.velocity(q, q, arm.base).any()
    assert np.array_equal(arm.pose(q), arm.pose(q, arm.default_frame()))


# -- immutable, equal, storable ---------------------------------------------------------------------------------------


def test_a_robot_does_not_change(arm):
    for name in ("name", "links", "joints", "gravity", "frames", "reduced", "dof", "new", "inverse_dynamics"):
        with pytest.raises(AttributeError, match="robots are immutable; use with_"):
            setattr(arm, name, 1)
    with pytest.raises(AttributeError, match="immutable"):
        del arm.name
    with pytest.raises(ValueError, match="read-only"):
        arm.joints[0].origin.rotation[0, 0] = 2.0
    with pytest.raises(AttributeError):
        arm.joints[0].axis = (1.0, 0.0, 0.0)
    assert isinstance(arm.links, tuple)
    assert isinstance(arm.joints, tuple)


def test_a_robot_does_not_change_by_its_results(arm):
    before = arm.content()
    arm.parameters[:] = 0.0  # the caller's own array
    changed = [
        arm.with_gravity((0, 0, 0)),
        arm.lock({"joint1": 0.1}),
        arm.with_payload(1.0),
        arm.with_parameters({"link1.m": 5.0}),
    ]
    assert arm.content() == before
    assert len({arm, *changed}) == 5
    assert all(isinstance(robot, Robot) for robot in changed)


def test_nothing_computed_for_a_robot_is_used_for_another(arm):
    q, zero = np.array([0.4, 0.9]), np.zeros(2)
    for _ in range(3):
        old = arm.gravity_torques(q)
    light = arm.with_gravity((0.0, 0.0, -1.62))
    assert np.allclose(light.gravity_torques(q), old * 1.62 / 9.81, rtol=1e-12)
    heavy = arm.with_payload(3.0)
    assert np.max(np.abs(heavy.gravity_torques(q) - old)) > 1.0
    assert np.array_equal(arm.gravity_torques(q), old)
    assert np.array_equal(arm.inverse_dynamics(q, zero, zero), old)


def test_equality_and_hash(arm):
    again = lw.load("two_link")
    assert again == arm
    assert again is not arm
    assert hash(again) == hash(arm)
    assert {arm: 1}[again] == 1
    for other in (
        arm.with_gravity((0, 0, -9.8)),
        arm.with_parameters({"link1.m": 1.5}),
        lw.load("puma560"),
        "two_link",
        None,
    ):
        assert arm != other
    again.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))  # what was computed does not count
    assert again == arm
    assert arm.with_gravity(arm.gravity) == arm


@pytest.mark.parametrize("name", ["two_link", "puma560"])
def test_pickle_and_copy(name):
    robot = lw.load(name)
    s = states_of(robot, 1)
    for _ in range(2):
        tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)  # with compiled code in hand
    for twin in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot), copy.copy(robot)):
        assert twin == robot
        assert type(twin) is Robot
        assert hash(twin) == hash(robot)
        assert twin.parameter_labels == robot.parameter_labels
        assert np.array_equal(twin.inverse_dynamics(s.q, s.qd, s.qdd), tau)


def test_repr(arm):
    assert repr(arm) == "<Robot 'two_link': 2 joints>"
    assert "puma560" in str(lw.load("puma560"))


def test_methods_keep_their_documentation(arm):
    """Units and shapes in every public docstring, before and after the first call."""
    zero = np.zeros(2)
    for method, (count, _) in METHODS.items():
        doc = getattr(Robot, method).__doc__
        assert doc
        assert "shape (" in doc
        for _ in range(2):
            getattr(arm, method)(*[zero] * count)
        assert (getattr(arm, method).__doc__ or "").strip().startswith(doc.strip()[:20])


KINDS = {
    "half": np.ones(2, np.float16),
    "long double": np.ones(2, np.longdouble),
    "integers": np.ones(2, np.int8),
    "booleans": np.ones(2, bool),
}
REFUSED = {
    "masked": np.ma.masked_array([1.0, 2.0], mask=[0, 1]),
    "masked without a mask": np.ma.masked_array([1.0, 2.0]),
    "complex": np.ones(2, complex),
    "objects": np.array([1.0, 2.0], object),
    "text": np.array(["1", "2"]),
    "times": np.array(["2020-01-01", "2020-01-02"], "M8[D]"),
    "bytes of two, as bfloat16 has": np.zeros(2, "V2"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_other_real_numbers_are_converted(kind):
    """To float64: what is computed is as exact as the numbers allow."""
    robot = lw.load("two_link")
    one = np.ones(2)
    for _ in range(3):  # calls take a shorter way from the second one on
        found = robot.inverse_dynamics(KINDS[kind], one, one)
        assert found.dtype == np.float64
        assert np.array_equal(found, robot.inverse_dynamics(one, one, one))


@pytest.mark.parametrize("kind", REFUSED)
def test_what_would_be_computed_wrongly_is_refused_by_name(kind):
    robot = lw.load("two_link")
    one, bad = np.ones(2), REFUSED[kind]
    for _ in range(3):
        with pytest.raises(lw.DtypeError, match="qd: "):
            robot.inverse_dynamics(one, bad, one)
        with pytest.raises(lw.DtypeError, match="tau: "):
            robot.forward_dynamics(one, one, bad)
    if kind.startswith("masked"):
        with pytest.raises(lw.DtypeError, match="out: expected a NumPy array, got MaskedArray"):
            robot.inverse_dynamics(one, one, one, out=bad)


def test_a_robot_without_moving_joints_computes_nothing_or_says_so():
    robot = lw.load("two_link")
    still = robot.lock(dict.fromkeys(robot.joint_names, 0.1))
    none = np.zeros(0)
    for function in (still.inverse_dynamics, still.forward_dynamics, still.regressor):
        assert function(none, none, none).size == 0
    for function in (still.gravity_torques, still.mass_matrix, still.inverse_mass_matrix, still.christoffel):
        assert function(none).size == 0
        assert function(np.zeros((5, 0))).shape[0] == 5
    assert still.pose(none).shape == (4, 4)
    assert still.jacobian(none).shape == (6, 0)
    assert still.kinetic_energy(none, none) == 0.0
    assert still.centroidal_matrix(none).shape == (6, 0)
    for function in (still.center_of_mass, still.com_jacobian):
        with pytest.raises(lw.ModelError, match="no joint of two_link moves"):
            function(none)


@pytest.mark.parametrize("bad", [10**400, "x", None, 1j])
def test_numbers_of_a_changed_robot_are_numbers(bad):
    robot = lw.load("two_link")
    with pytest.raises(lw.LinkwiseError):
        robot.with_gravity(bad)
    with pytest.raises((lw.LinkwiseError, TypeError)):
        robot.with_parameters(bad)


def test_links_that_are_not_there_are_named():
    with pytest.raises(lw.LinkwiseError, match="two_link has no link 'nowhere'"):
        lw.load("two_link").carrier("nowhere")
