"""Gains, targets and limits of every controller change at run time: kernels, simulations and the command line."""

import os
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.control import CONTROLLERS, Gains, Reference, named
from linkwise.control.controller import LIMITS
from linkwise.embedded.entries import entries
from linkwise.embedded.entry import Options
from linkwise.simulate import simulate

PERIOD = 1e-3
DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
MORE = ("urdf/example-robot-data/ur10_robot.urdf", "urdf/example-robot-data/kinova.urdf")


def robots():
    """All bundled robots, some of example-robot-data where they are at hand, a floating base."""
    yield from map(lw.load, lw.robots())
    for path in MORE:
        if (DATA / path).exists():
            yield lw.load(DATA / path)


def made(name, robot, **options):
    law = CONTROLLERS[name]
    if law.has_frame:
        options["frame"] = robot.leaf_names[-1]
    return named(name, robot, frequency=8.0 if law.feedback else None, **options)


def drawn(robot, rng):
    """Measured state and reference."""
    q, q_d = (np.asarray(robot.random(rng=rng)) for _ in range(2))
    return q, rng.normal(size=robot.dof), q_d, *rng.normal(size=(2, robot.dof))


def on_numbers(law, values, state, memory=None):
    """Torques and fault of a law over Python floats, with settings by name."""
    values = dict(values)
    own = law.bound(values.pop(LIMITS).tolist()) if LIMITS in values else law
    gains = law.shaped({name: numbers.tolist() for name, numbers in values.items()})
    q, qd, *reference = (part.tolist() for part in state)
    memory = [0.1] * law.memory_size if memory is None else memory
    return own.commanded(law.links(), gains, q, qd, Reference(*reference), memory, PERIOD)


def test_every_controller_takes_its_settings_from_its_inputs_on_every_robot():
    """Over Python floats: values that are given count, and not those of the constructor."""
    rng = np.random.default_rng(1)
    for robot in robots():
        for name in CONTROLLERS:
            law, state = made(name, robot, torque_limits=50.0), drawn(robot, rng)
            other = {
                key: values * rng.uniform(0.8, 1.2, values.shape) for key, values in law.settings().items()
            }
            given = on_numbers(law, other, state)
            gains = {key: values for key, values in other.items() if key != LIMITS}
            fixed = made(name, robot, torque_limits=other.get(LIMITS, 50.0)).with_gains(**gains)
            wanted = on_numbers(fixed, fixed.settings() if not fixed.saturates else gains, state)
            np.testing.assert_array_equal(given.tau, wanted.tau, f"{name} of {robot.name}")
            if law.gains:
                assert (np.asarray(given.tau) != on_numbers(law, law.settings(), state).tau).any()


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_kernel_with_settings_is_that_with_constants(name):
    """Each law on another robot; limits that are infinite, too. Bits are the same where constants are not combined."""
    rng = np.random.default_rng(2)
    names = lw.robots()
    robot = lw.load(names[list(CONTROLLERS).index(name) % len(names)])
    for limits in (40.0, False):
        law = made(name, robot, torque_limits=limits)
        other = {key: values * rng.uniform(0.8, 1.2, values.shape) for key, values in law.settings().items()}
        tuned = law.kernel(PERIOD, tunable=True)
        assert [each for each, _ in tuned.inputs if each in other] == list(other)
        gains = {key: values for key, values in other.items() if key != LIMITS}
        bounds = other.get(LIMITS)
        plain = made(name, robot, torque_limits=False if bounds is None or not limits else bounds)
        plain = plain.with_gains(**gains).kernel(PERIOD)
        state = drawn(robot, rng)
        memory = [rng.normal(size=law.memory_size)] if law.memory_size else []
        found, wanted = tuned(*state, *memory, *other.values()), plain(*state, *memory)
        for a, b in zip(found, wanted, strict=True) if law.memory_size else [(found, wanted)]:
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
            assert law.has_frame or np.array_equal(a, b)


def test_limits_and_gains_that_cannot_be_are_faults():
    robot = lw.load("two_link")
    state = drawn(robot, np.random.default_rng(3))
    for name in CONTROLLERS:
        law = made(name, robot)
        kernel = law.kernel(PERIOD, tunable=True, fault=True)
        memory = [np.zeros(law.memory_size)] if law.memory_size else []
        for setting in law.settings():
            for bad in (np.nan, -1.0) if setting == LIMITS else (np.nan, np.inf):
                values = {key: np.where(np.isinf(v), 1e30, v) for key, v in law.settings().items()}
                values[setting] = np.array([bad, *values[setting][1:]])
                tau, *_, fault = kernel(*state, *memory, *values.values())
                if law.has_frame and fault == 0.0:  # a gain of a direction in which the tool cannot move
                    assert np.isfinite(tau).all(), (name, setting, bad)
                    continue
                assert fault == 1.0, (name, setting, bad)
                assert not tau.any(), (name, setting, bad)
        if law.saturates:
            values = law.settings() | {LIMITS: np.array([0.3, 0.2])}
            tau, *_, fault = kernel(*state, *memory, *values.values())
            assert fault == 0.0
            assert (np.abs(tau) <= [0.3, 0.2]).all()


def test_matrices_of_gains():
    """A diagonal matrix is the vector; a full one couples joints: v = q̈_d − K_d ė − K_p e."""
    robot, rng = lw.load("puma560"), np.random.default_rng(4)
    q, qd, q_d, qd_d, qdd_d = state = drawn(robot, rng)
    square = rng.normal(size=(6, 6))
    K = square @ square.T + 6 * np.eye(6)
    diagonal, full = Gains(np.diag([90.0] * 6), 20.0), Gains(K, 20.0)
    plain = control.Tracking(robot, Gains(90.0, 20.0), torque_limits=False).kernel(PERIOD)(*state)
    law = control.Tracking(robot, diagonal, torque_limits=False)
    np.testing.assert_allclose(law.kernel(PERIOD)(*state), plain, rtol=1e-12)
    tuned = law.kernel(PERIOD, tunable=True)
    settings = law.settings() | {"kp": K.ravel(), LIMITS: np.full(6, 1e30)}
    found = tuned(*state, *settings.values())
    v = qdd_d - 20.0 * (qd - qd_d) - K @ (q - q_d)
    np.testing.assert_allclose(found, robot.inverse_dynamics(q, qd, v, friction=False), rtol=1e-9, atol=1e-9)
    fixed = control.Tracking(robot, full, torque_limits=False).kernel(PERIOD)(*state)
    np.testing.assert_array_equal(found, fixed)
    for size in range(1, 7):  # stiff along one direction alone: other eigenvalues are zero but for rounding
        along = np.random.default_rng(size).normal(size=(6, 1))
        Gains(1e4 * along @ along.T, 1.0)
    for bad, message in ((-K, "negative eigenvalues"), (K[:3], "square"), (K * np.nan, "finite")):
        with pytest.raises(ValueError, match=message):
            Gains(bad, 1.0)
    with pytest.raises(ValueError, match="unstable"):
        control.IntegralTracking(robot, Gains(K, 1.0, 1e4))


def test_selection_and_axes_are_constants_unless_they_are_to_be_settings():
    """Four kinds of kernels give one torque; a law in another one keeps its constants; each selection has its code."""
    rng = np.random.default_rng(4)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for robot in map(lw.load, ("two_link", "puma560", "panda")):
        state, torques = drawn(robot, rng), []
        for selection in ([0, 0, 0, 0, 0, 1], [0, 1, 0, 1, 0, 0]):
            given = {"selection": selection, "task_axes": turn, "force_target": 5.0, "force_gain": 0.5}
            laws = [control.HybridForceMotion(robot, run_time_selection=k, **given) for k in (False, True)]
            assert {"selection", "task_axes"}.isdisjoint(laws[0].settings())
            assert {"selection", "task_axes"} <= set(laws[1].settings())
            found = []
            for law in laws:
                memory = 0.1 * np.ones(law.memory_size)
                for tunable in (False, True):
                    settings = law.settings().values() if tunable else ()
                    found.append(law.kernel(PERIOD, tunable=tunable)(*state, memory, *settings)[0])
            np.testing.assert_allclose(found, [found[0]] * 4, rtol=1e-12, atol=1e-12 * np.abs(found).max())
            torques.append(found[0])
        assert (torques[0] != torques[1]).any()
    law = control.HybridForceMotion(robot, selection=[0, 0, 0, 0, 0, 1], force_target=5.0)
    for other in (control.Avoiding(law), control.Guarded(law, control.MomentumObserver(robot))):
        assert "selection" not in other.settings()
        found = other.kernel(PERIOD)(*state, np.zeros(other.memory_size))[0]
        np.testing.assert_allclose(found, law.kernel(PERIOD)(*state, np.zeros(law.memory_size))[0], rtol=1e-9)
    both = control.Switched({"push": law, "move": law.with_gains(selection=0.0)}, duration=1e-9)
    memory = np.zeros(both.memory_size)
    for name in both.laws:
        chosen = both.selecting(name)
        assert not [key for key in chosen.settings() if key.endswith(("selection", "task_axes"))]
        tau, _ = chosen.kernel(PERIOD, tunable=True)(*state, memory, *chosen.settings().values())
        own = both.laws[name].kernel(PERIOD)(*state, np.zeros(law.memory_size))[0]
        np.testing.assert_allclose(tau, own, rtol=1e-9, atol=1e-9 * np.abs(own).max())


def test_every_joint_may_have_its_own_gain_of_the_observer():
    """The torque after a sample with another one depends on each of them; equal ones are one gain."""
    rng, robot = np.random.default_rng(5), lw.load("puma560")
    states, gains = [drawn(robot, rng) for _ in range(2)], np.linspace(10.0, 60.0, robot.dof)
    alike = np.full(robot.dof, 30.0)
    changed = [np.where(np.arange(robot.dof) == k, 2.0 * gains, gains) for k in range(robot.dof)]
    for kind, options in (
        (control.HybridForceMotion, {"selection": [1.0] * 6, "force_target": 5.0, "force_gain": 0.5}),
        (control.CartesianAdmittance, {}),
    ):
        torques = []
        for gain in (30.0, alike, gains, *changed):
            law = kind(robot, observer_gain=gain, **options)
            own = law.settings()["observer_gain"]
            np.testing.assert_array_equal(own, gain if np.ptp(gain) else [30.0])
            found = []
            for tunable in (False, True):
                settings, memory = law.settings().values() if tunable else (), np.zeros(law.memory_size)
                for state in states:
                    tau, memory = law.kernel(PERIOD, tunable=tunable)(*state, memory, *settings)[:2]
                found.append(tau)
            np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
            torques.append(found[0])
        np.testing.assert_array_equal(torques[1], torques[0])
        assert all(np.abs(tau - torques[2]).max() > 1e-9 for tau in torques[3:]), kind


def test_packages_take_the_selection_at_run_time_unless_it_is_given():
    robot = lw.load("two_link")
    for gains, fixed in (({}, False), ({"selection": [0, 0, 0, 1, 0, 0]}, True)):
        (entry,) = entries(robot, ["hybrid_force_motion"], Options(gains=gains))
        assert ("selection" not in entry.settings) is fixed


def test_simulations_vary_matrices_and_torque_limits():
    robot = lw.load("two_link")
    law = control.Tracking(robot, Gains(np.diag([60.0, 60.0]), 15.0), torque_limits=80.0)
    kp = np.array([[60.0, 0.0, 0.0, 60.0], [60.0, -20.0, -20.0, 60.0]])
    limits = np.array([[80.0, 80.0], [30.0, 20.0]])
    found = simulate(
        robot,
        law,
        np.array([0.5, -0.5]),
        q=np.zeros(2),
        duration=0.3,
        vary={"kp": kp, "torque_limits": limits},
    )
    for k in range(2):
        own = control.Tracking(robot, Gains(kp[k].reshape(2, 2), 15.0), torque_limits=limits[k])
        alone = simulate(robot, own, np.array([0.5, -0.5]), q=np.zeros(2), duration=0.3)
        np.testing.assert_array_equal(found.q[k], alone.q)
        assert (np.abs(found.tau[k]) <= limits[k]).all()
    stepped = simulate(
        robot,
        law,
        np.array([0.5, -0.5]),
        q=np.zeros(2),
        duration=0.02,
        vary={"torque_limits": limits},
        fused=False,
    )
    fused = simulate(
        robot, law, np.array([0.5, -0.5]), q=np.zeros(2), duration=0.02, vary={"torque_limits": limits}
    )
    np.testing.assert_allclose(stepped.q, fused.q, rtol=1e-12)


def test_other_gains_in_python():
    robot = lw.load("two_link")
    law = named("computed_torque", robot, frequency=[10.0, 8.0])
    np.testing.assert_array_equal(law.gains["kp"], [100.0, 64.0])
    other = law.with_gains(kp=[1.0, 2.0])
    assert other.gains["kp"].tolist() == [1.0, 2.0]
    assert law.gains["kp"][0] == 100.0
    for values, message in (
        ({"kq": 1.0}, "no gain 'kq'; valid: kp, kd"),
        ({"kp": [1.0, 2.0, 3.0]}, "expected one number or shape"),
        ({"kp": np.nan}, "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            law.with_gains(**values)
    with pytest.raises(ValueError, match="unstable"):
        named("integral_tracking", robot, frequency=5.0).with_gains(ki=1e6)
