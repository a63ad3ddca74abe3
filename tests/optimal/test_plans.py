"""Plans of predictive control and the safe stop: one rule each for Python, the real-time loop and C packages."""

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from c_functions import c_function
from linkwise.compiler.emit import c
from linkwise.control import Gains
from linkwise.control.safe_stop import stop_kernel, stop_kernel_with_settings
from linkwise.embedded import Options
from linkwise.embedded.entries import entries
from linkwise.optimal import Predictive
from linkwise.optimal.iteration import REPORT as OF_ITERATIONS
from linkwise.optimal.predictive import plans
from linkwise.realtime import TwoRatePrograms
from linkwise.realtime.predictive import PredictivePrograms
from linkwise.realtime.program import static_function
from strategies import robots

HORIZON, STEP = 4, 0.03
"""Of the plans of random robots."""


@given(st.integers(1, 9), st.integers(1, 3), st.floats(-1.0, 12.0), st.integers(0, 99))
@settings(max_examples=60)
def test_a_plan_some_steps_later(rows, size, steps, seed):
    """Against NumPy's interpolation of every column."""
    table = np.random.default_rng(seed).normal(size=(rows, size))
    later = np.asarray(plans.shifted(table, steps), dtype=float)
    at = np.arange(rows) + max(steps, 0.0)
    expected = np.stack([np.interp(at, np.arange(rows), column) for column in table.T], axis=1)
    np.testing.assert_allclose(later, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(np.asarray(plans.shifted(table, np.nan), dtype=float), table)
    np.testing.assert_array_equal(np.asarray(plans.shifted(table, 0.0), dtype=float), table)


def verdict(report, states, new_states, torques, gains):
    """(usable, next regularisation), written as its sentence says."""
    used = new_states if report["step"] > 0.0 else states
    finite = all(np.isfinite(part).all() for part in (used, torques, gains))
    belongs = report["step"] > 0.0 or report["gap"] <= plans.CLOSED
    mu = report["regularisation"]
    usable = bool(finite and belongs and report["sound"] > 0.5 and np.isfinite(mu))
    return usable, mu if usable or mu < plans.STUBBORN else 0.0


def test_when_a_plan_counts():
    """All combinations of steps, gaps, soundness, regularisation, and a number that is not finite in any place."""
    rng = np.random.default_rng(3)
    shapes = {"new_states": (3, 2), "new_torques": (2, 1), "gains": (2, 1, 2)}
    counts = {True: 0, False: 0}
    for _ in range(400):
        made = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        states = rng.normal(size=(3, 2))
        report = dict.fromkeys(OF_ITERATIONS, 0.0) | {
            "step": rng.choice([0.0, 0.25, 1.0]),
            "gap": rng.choice([0.0, 0.09, 0.11, np.nan]),
            "regularisation": rng.choice([0.0, 0.5, 2.0, np.nan], p=[0.4, 0.3, 0.25, 0.05]),
            "sound": rng.choice([0.0, 0.75, 1.0], p=[0.2, 0.3, 0.5]),
        }
        if rng.random() < 0.4:
            part = [*made.values(), states][rng.integers(4)]
            part.flat[rng.integers(part.size)] = rng.choice([np.nan, np.inf, -np.inf])
        made["report"] = np.array([report[name] for name in OF_ITERATIONS])
        usable, mu = verdict(report, states, made["new_states"], made["new_torques"], made["gains"])
        plan = plans.judged(made, states)
        after = dict(zip(plans.REPORT, np.asarray(plan["report"], dtype=float), strict=True))
        assert (after["usable"] > 0.5) == usable
        if np.isfinite(mu):
            assert after["regularisation"] == mu
        kept = made["new_states"] if report["step"] > 0.0 else states
        np.testing.assert_array_equal(np.asarray(plan["new_states"], dtype=float), kept)
        counts[usable] += 1
    assert min(counts.values()) > 50


def same_bits(kernel, in_c, given):
    """Outputs of a kernel, which its C gives bit by bit."""
    expected = kernel(*given)
    outputs = expected if isinstance(expected, tuple) else (expected,)
    for (name, _), ours, of_c in zip(kernel.outputs, outputs, in_c(*given), strict=True):
        if name == "fault":  # what the function in C returns
            continue
        np.testing.assert_array_equal(np.asarray(ours), of_c, err_msg=name)
    return outputs


@given(robots(1, 3), st.integers(0, 99))
@settings(max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_one_rule_for_plans_in_python_the_runtime_and_packages(tmp_path_factory, robot, seed):
    """The C of packages gives the bits of the Python controller; the real-time loop is made of the same functions."""
    folder, n = tmp_path_factory.mktemp("plans"), robot.dof
    controller = Predictive(robot, horizon=HORIZON, step=STEP, torque_limits=np.full(n, 50.0))
    packaged = entries(robot, ["mpc"], Options(horizon=HORIZON, step=STEP, torque_limits=np.full(n, 50.0)))
    plan, torques = packaged[0].kernel, packaged[1].kernel
    plan_in_c, torques_in_c = c_function(plan, folder), c_function(torques, folder)
    rng = np.random.default_rng(seed)
    for values in zip(*packaged[0].states(8).values(), strict=True):
        outputs = same_bits(plan, plan_in_c, values)
        for ours, of_package in zip(controller.kernel(*values), outputs, strict=True):
            np.testing.assert_array_equal(ours, of_package)
        row = [rng.normal(size=size) for _, size in torques.inputs[:-2]]
        given = [*row, np.full(n, -50.0), np.full(n, 50.0)]
        np.testing.assert_array_equal(
            same_bits(torques, torques_in_c, given)[0], controller._feedback(*given)[0]
        )
    text = PredictivePrograms(controller.problem, frequency=10.0).source()
    for kernel, name in ((plan, "next_plan"), (torques, "plan_torques")):
        own = static_function(c.source(kernel.program("float64"), function_name=name), name)
        assert own in text, name


@given(robots(1, 4), st.integers(0, 99))
@settings(max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_one_safe_stop_for_the_runtime_and_packages(tmp_path_factory, robot, seed):
    """The function of packages, with constants, and that of the real-time loop, with settings: the same torques."""
    folder, n = tmp_path_factory.mktemp("stop"), robot.dof
    rng = np.random.default_rng(seed)
    limits, gains, duration = np.full(n, 30.0), Gains(100.0, 20.0), 0.4
    general = stop_kernel_with_settings(robot)
    in_c = c_function(general, folder)
    assert (
        static_function(c.source(general.program("float64")), "safe_stop") in TwoRatePrograms(robot).source()
    )
    fastest = np.minimum(robot.velocity_limits, 3e38)
    for mode in ("hold", "ramp"):
        packaged = stop_kernel(robot, gains, mode, duration, torque_limits=limits)
        for time in (-0.1, 0.0, 0.13, 0.27, 0.4, 0.9, np.nan):
            state = [np.array([time]), *rng.uniform(-1.0, 1.0, (4, n)), np.array([float(time != 0.13)])]
            if time == 0.27:
                state[3][0] = np.nan  # a reading that is no number: the model alone
            known = [
                np.full(n, 100.0),
                np.full(n, 20.0),
                np.array([duration]),
                np.array([float(mode == "ramp")]),
            ]
            (tau,) = same_bits(general, in_c, [*state, *known, fastest, limits])
            np.testing.assert_allclose(tau, packaged(*state), rtol=1e-9, atol=1e-9)
            assert (np.abs(tau) <= limits).all()
            assert mode == "hold" or 0.0 < time < duration or time <= 0.0 or (tau == 0.0).all()
    none = general(*state[:-1], np.ones(1), *known[:2], np.zeros(1), np.zeros(1), fastest, limits)
    assert np.isfinite(none).all()  # a stop of no duration
