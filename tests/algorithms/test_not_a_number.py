"""A NaN reaches every output that depends on it, and no other state; infinities likewise; nothing is raised."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise import Joint, Link, Robot, Transform
from strategies import body, states_of


@pytest.fixture(scope="module", autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def forked() -> Robot:
    """Two arms on one base, of three and two joints, the first with a fork: much does not depend on much."""
    rng = np.random.default_rng(3)
    links, joints = [Link("base")], []
    for k, (parent, kind) in enumerate(
        [
            ("base", "revolute"),
            ("link0", "prismatic"),
            ("link0", "revolute"),
            ("base", "revolute"),
            ("link3", "revolute"),
        ]
    ):
        axis = rng.normal(size=3)
        x, y, z = (axis / np.linalg.norm(axis)).tolist()
        origin = Transform.from_rpy(rng.uniform(-0.4, 0.4, 3), rng.uniform(-3, 3, 3))
        joints.append(
            Joint(
                f"joint{k}",
                kind,
                parent,
                f"link{k}",
                origin,
                axis=(x, y, z),
                rotor_inertia=0.1,
                viscous_friction=0.3,
            )
        )
        links.append(Link(f"link{k}", body(rng)))
    return Robot("forked", links, joints)


ROBOT = forked()
CALLS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "mass_matrix": ("q",),
    "inverse_mass_matrix": ("q",),
    "gravity_torques": ("q",),
    "velocity_torques": ("q", "qd"),
    "bias_torques": ("q", "qd"),
    "coriolis_matrix": ("q", "qd"),
    "kinetic_energy": ("q", "qd"),
    "potential_energy": ("q",),
    "pose": ("q",),
    "jacobian": ("q",),
    "velocity": ("q", "qd"),
    "regressor": ("q", "qd", "qdd"),
}
SELECTABLE = {"inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "gravity_torques"}
CASES = [
    (function, algorithm)
    for function in CALLS
    for algorithm in (ROBOT.algorithms(function) if function in SELECTABLE else [None])
]
FIRST_ARM = {0, 1, 2}  # joints; the other two move the second arm
# Where an input drops out only because terms cancel (the torque of a leaf does not depend on its own speed), a NaN
# remains; it must keep to its arm.
CANCELLING = {"velocity_torques", "bias_torques", "coriolis_matrix", "velocity", "regressor"}


def call(function, algorithm, given):
    options = {"frame": "link2"} if function in ("pose", "jacobian", "velocity") else {}
    if algorithm is not None:
        options["algorithm"] = algorithm
    return getattr(ROBOT, function)(*(given[name] for name in CALLS[function]), **options)


def dependence(function, algorithm, given, name, k):
    """Which outputs change when one input does (a change of generic size, so none vanishes by chance)."""
    before = call(function, algorithm, given)
    moved = {key: value.copy() for key, value in given.items()}
    moved[name][..., k] += 0.321
    return np.abs(call(function, algorithm, moved) - before) > 1e-10 * np.max(np.abs(before))


@pytest.mark.parametrize(("function", "algorithm"), CASES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_reaches_what_depends_on_it(function, algorithm, bad):
    s = states_of(ROBOT, 5, 4)
    given = {"q": s.q, "qd": s.qd, "qdd": s.qdd, "tau": s.tau}
    clean = call(function, algorithm, given)
    assert np.isfinite(clean).all()
    iterated = "gradient" in str(
        algorithm
    )  # one number measures the whole residual, so the state stands or falls as one
    for name in CALLS[function]:
        for k in range(ROBOT.dof):
            spoiled = {key: value.copy() for key, value in given.items()}
            spoiled[name][1, k] = bad
            found = call(function, algorithm, spoiled)
            for state in (0, 2, 3):
                assert np.array_equal(found[state], clean[state]), (
                    f"{name}[{k}] of state 1 reaches state {state}"
                )
            touched = dependence(function, algorithm, given, name, k)[1]
            spoilt = ~np.isfinite(found[1])
            where = f"{name}[{k}]"
            if np.isinf(
                bad
            ):  # infinitely far out, inertia is infinite and its inverse zero: other numbers, no wrong ones
                assert (spoilt | (found[1] != clean[1]))[touched].all(), (
                    f"{where} does not reach all that depends on it"
                )
                continue
            assert np.isnan(found[1][touched]).all(), f"{where} does not reach all that depends on it"
            if iterated:
                assert spoilt.all()
            elif function not in CANCELLING:
                assert not spoilt[~touched].any(), f"{where} reaches more than depends on it"
                assert np.array_equal(found[1][~touched], clean[1][~touched])
            elif function == "velocity":
                assert k in FIRST_ARM or not spoilt.any()
            else:
                other = [i for i in range(ROBOT.dof) if (i in FIRST_ARM) != (k in FIRST_ARM)]
                assert np.array_equal(found[1][other], clean[1][other]), f"{where} reaches the other arm"


@pytest.mark.parametrize("algorithm", ROBOT.algorithms("inverse_dynamics"))
def test_of_one_state_alone(algorithm):
    s = states_of(ROBOT, 5)
    q = s.q.copy()
    q[0] = np.nan
    tau = ROBOT.inverse_dynamics(q, s.qd, s.qdd, algorithm=algorithm)
    assert np.isnan(tau[:3]).all()
    assert np.array_equal(tau[3:], ROBOT.inverse_dynamics(s.q, s.qd, s.qdd, algorithm=algorithm)[3:])


def test_wrench():
    """A wrench on one hand is not felt by the other arm."""
    s = states_of(ROBOT, 5, 2)
    w = s.wrench.copy()
    w[1, 1] = np.nan  # a moment: a force at the origin of joint4 is not felt by it
    for algorithm in ROBOT.algorithms("inverse_dynamics"):
        clean = ROBOT.inverse_dynamics(
            s.q, s.qd, s.qdd, wrench=s.wrench, wrench_frame="link4", algorithm=algorithm
        )
        found = ROBOT.inverse_dynamics(s.q, s.qd, s.qdd, wrench=w, wrench_frame="link4", algorithm=algorithm)
        assert np.array_equal(np.isnan(found), [[False] * 5, [False] * 3 + [True] * 2])
        assert np.array_equal(found[0], clean[0])
        assert np.array_equal(found[1, :3], clean[1, :3])


def test_coulomb_friction_of_an_unknown_speed_is_unknown():
    robot = lw.random_robot(1, 2, friction=True)
    qd = np.array([[np.nan, 0.0], [0.0, 1.0]])
    zero = np.zeros(2)
    rub = robot.inverse_dynamics(zero, qd, zero) - robot.inverse_dynamics(zero, qd, zero, friction=False)
    assert np.isnan(rub[0, 0])
    Y = robot.regressor(zero, qd, zero)
    labels = list(robot.parameter_labels)
    for kind in ("viscous_friction", "coulomb_friction_forward", "coulomb_friction_backward"):
        column = labels.index(f"joint1.{kind}")
        assert np.isnan(Y[0, 0, column])
        assert Y[1, 0, column] == 0.0


def test_history_of_a_state_that_is_no_number():
    s = states_of(ROBOT, 1)
    s.tau[2] = np.nan
    found = ROBOT.conjugate_gradient(s.q, s.qd, s.tau)
    assert np.isnan(found.qdd).all()
    assert not found.converged
    assert found.count == 0
    parts = ROBOT.acceleration_parts(s.q, s.qd, s.tau)
    assert np.isnan(parts[0]).any()
    assert np.isfinite(parts[1]).all()
    assert np.isfinite(parts[2]).all()
    filtered = ROBOT.filter(s.q, s.qd, s.tau)
    assert np.isfinite(filtered.inertia).all()
    assert np.isnan(filtered.qdd).any()


def test_overflow_is_no_singularity():
    """Finite inputs whose squares are not: no number comes out, and no wrong reason either."""
    s = states_of(ROBOT, 1)
    for algorithm in ROBOT.algorithms("forward_dynamics"):
        found = ROBOT.forward_dynamics(s.q, 1e200 * s.qd, s.tau, algorithm=algorithm)
        assert not np.isfinite(found).all()
