"""Controllers with numbers that are not finite: torques stay finite and within limits, and the fault is reported."""

import itertools

import numpy as np
import pytest

import linkwise as lw
from linkwise import control
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import Program

PERIOD = 1e-3
BAD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 3e30)
HARMLESS = (-0.0, 5e-324, -1e-310)


def guarded(robot, **options):
    law = control.named("computed_torque", robot, frequency=10.0, torque_limits=7.0)
    return control.Guarded(law, control.MomentumObserver(robot), **options)


def laws(robot):
    """Every controller with limits."""
    found = {name: control.named(name, robot, torque_limits=7.0, **({"frequency": 10.0} if law.feedback else {}))
             for name, law in control.CONTROLLERS.items() if name != "passive"}  # fmt: skip
    found |= {
        f"guarded, {reaction}": guarded(robot, reaction=reaction) for reaction in ("stop", "reflex", "none")
    }
    return found


def inputs_of(kernel, rng):
    return {name: 0.0 * rng.uniform(size=size) if name == "memory" else rng.uniform(-1, 1, size)
            for name, size in kernel.inputs}  # fmt: skip


def interpreted(kernel, state):
    program = kernel.program()
    if isinstance(program, Program):
        return interpret.run(program, *state)
    arrays = {name: x for (name, _), x in zip(kernel.inputs, state, strict=True)}
    arrays |= {name: np.empty(shape, state[0].dtype) for name, shape in kernel.outputs}
    interpret.run_nest(program, arrays)
    return [arrays[name] for name, _ in kernel.outputs]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("robot", ["two_link", "stanford"])
def test_torques_are_finite_and_limited_for_every_bad_number_in_every_input(robot, dtype):
    robot = lw.load(robot)
    for name, law in laws(robot).items():
        kernel = law.kernel(PERIOD, dtype=dtype, fault=True)
        good = inputs_of(kernel, np.random.default_rng(5))
        places = [(key, k) for key, values in good.items() for k in range(len(values))]
        rows = [(key, k, x) for (key, k), x in itertools.product(places, BAD)]
        batch = {key: np.repeat(values[None], len(rows), 0).astype(dtype) for key, values in good.items()}
        with np.errstate(over="ignore"):
            for row, (key, k, x) in enumerate(rows):
                batch[key][row, k] = x
        found = dict(zip((key for key, _ in kernel.outputs), kernel(*batch.values()), strict=True))
        assert (np.abs(found["tau"]) <= np.float32(7.0)).all(), name
        assert np.isin(found["fault"], (0.0, 1.0)).all(), name
        assert np.isfinite(found.get("next_memory", np.zeros(1))).all() or "guarded" in name, name
        read = [row for row, (key, _, x) in enumerate(rows) if key in ("q", "qd") and not np.isfinite(x)]
        if name != "feed_forward":  # it reads nothing
            assert found["fault"][read].all(), name
        row = len(rows) // 2
        state = [values[row] for values in batch.values()]
        for values, expected in zip(interpreted(kernel, state), found.values(), strict=True):
            np.testing.assert_array_equal(values, expected[row])


def test_numbers_that_are_finite_are_no_fault():
    robot = lw.load("puma560")
    for name, law in laws(robot).items():
        kernel = law.kernel(PERIOD, fault=True)
        good = inputs_of(kernel, np.random.default_rng(6))
        for x in HARMLESS:
            good["q"][1] = good["qd"][0] = good["q_d"][2] = x
            fault = kernel(*good.values())[-1]
            assert fault == 0.0, name


def test_the_fault_is_an_output_on_request_alone():
    robot = lw.load("two_link")
    law = control.named("tracking", robot, frequency=10.0)
    zeros = np.zeros((5, 2))
    assert law.kernel(PERIOD)(*zeros).shape == (2,)
    tau, fault = law.kernel(PERIOD, fault=True)(*zeros)
    assert (tau.shape, fault.shape) == ((2,), (1,))
    with pytest.raises(lw.LinkwiseError, match="fault"):
        law.kernel(PERIOD, fault="yes")


def test_an_integral_survives_a_bad_reading():
    robot = lw.load("two_link")
    law = control.named("integral_tracking", robot, frequency=10.0).kernel(PERIOD, fault=True)
    state = np.random.default_rng(1).uniform(-1, 1, (5, 2))
    memory = np.array([0.3, -0.2])
    bad = state.copy()
    bad[0, 1] = np.nan
    tau, following, fault = law(*bad, memory)
    assert fault == 1.0
    np.testing.assert_array_equal(tau, 0.0)
    np.testing.assert_array_equal(following, memory)


def test_a_bad_reading_stops_a_guarded_controller_where_it_was():
    """Later readings are good again: the arm is held where the last good one was, and the stop stays."""
    robot = lw.load("two_link")
    law = guarded(robot)
    kernel = law.kernel(PERIOD, fault=True)
    rng = np.random.default_rng(2)
    here, far = rng.uniform(-1, 1, (2, 2))
    rest, memory = np.zeros(2), np.zeros(law.memory_size)

    def sample(q, reference):
        nonlocal memory
        tau, memory, fault = kernel(q, rest, reference, rest, rest, memory)
        assert np.isfinite(memory).all()
        return tau, fault[0], law.observed(memory).collision[0]

    assert sample(here, here)[1:] == (0.0, 0.0)
    for _ in range(3):
        tau, *said = sample(np.array([np.nan, 0.0]), far)
        assert said == [1.0, 1.0]
        np.testing.assert_allclose(tau, np.clip(robot.gravity_torques(here), -7, 7), atol=1e-12)
    tau, *said = sample(here + 0.01, far)
    assert said == [0.0, 1.0]
    hold = control.named("computed_torque", robot, frequency=10.0, torque_limits=7.0).kernel(PERIOD)
    np.testing.assert_allclose(tau, hold(here + 0.01, rest, here, rest, rest), atol=1e-12)


def test_a_guarded_controller_that_never_saw_a_state_gives_no_torques_and_holds_the_first_one():
    robot = lw.load("two_link")
    law = guarded(robot)
    kernel = law.kernel(PERIOD, fault=True)
    rest, memory, here = np.zeros(2), np.zeros(law.memory_size), np.array([0.4, -0.7])
    for _ in range(2):
        tau, memory, fault = kernel(np.full(2, np.inf), rest, here, rest, rest, memory)
        assert fault == 1.0
        np.testing.assert_array_equal(tau, 0.0)
    tau, memory, fault = kernel(here, rest, -here, rest, rest, memory)
    assert (fault, law.observed(memory).collision) == (0.0, 1.0)
    np.testing.assert_allclose(tau, np.clip(robot.gravity_torques(here), -7, 7), atol=1e-12)


def test_the_observer_of_momentum_reports_a_bad_reading_and_starts_again():
    robot = lw.load("two_link")
    observer = control.MomentumObserver(robot, confirm=0.05)
    q = np.repeat(np.array([[0.3, 0.2]]), 6, axis=0)
    rest = np.zeros((6, 2))
    tau = robot.gravity_torques(q)
    q[2, 0] = np.nan
    seen = observer.over(q, rest, tau, PERIOD)
    np.testing.assert_array_equal(seen.collision[:, 0], [0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(seen.contact[2], 1.0)
    assert not np.isfinite(seen.external_torque[2]).all()
    np.testing.assert_allclose(seen.external_torque[[0, 1, 3, 4, 5]], 0.0, atol=1e-9)


def arm_with_point_masses(tip):
    """A joint about z that carries inertia, then joints about z and y that carry a mass ``tip``: where the last
    one is at zero this point lies on the axis of the one before."""
    masses = (1.0, 0.0, tip)
    links, joints = [lw.Link("base")], []
    for k, axis in enumerate(((0, 0, 1), (0, 0, 1), (0, 1, 0))):
        own = (0.01, 0.01, 0.01) if k == 0 else (0, 0, 0)
        links.append(lw.Link(f"link {k}", lw.Inertia.from_com(masses[k], (0, 0, 0.2), own)))
        joints.append(lw.Joint(f"joint {k}", "revolute", links[k].name, links[-1].name, axis=axis))
    tool = lw.Frame("tool", "link 2", lw.Transform.from_rpy((0.0, 0.0, 0.3)))
    return lw.Robot("points", links, joints, frames=[tool])


def test_a_singular_mass_matrix_is_named_by_laws_that_need_its_inverse():
    always, sometimes = arm_with_point_masses(0.0), arm_with_point_masses(1.0)
    inverted = ("cartesian_impedance", "operational_space", "cartesian_admittance", "hybrid_force_motion")
    for name in (*inverted, "whole_body_tracking"):
        with pytest.raises(lw.SingularError, match="joint 'joint 2' moves no inertia"):
            control.named(name, always, frequency=10.0)
    q, rest = np.array([[0.1, 0.2, 0.7], [0.1, 0.2, 0.0]]), np.zeros(3)
    for level in (1, 2):
        tasks = [control.PointTask("tool"), control.PostureTask(level=level)]
        with pytest.raises(lw.SingularError, match="joint 'joint 2' moves no inertia"):
            control.WholeBody(always, tasks)
        law = control.WholeBody(sometimes, tasks)
        targets = law.targets(q + 0.1)
        assert law.solve(q[0], rest, targets[0])[0].residual < 1e-6
        with pytest.raises(lw.SingularError, match="joint 'joint 1' moves no inertia"):
            law.solve(q, rest, targets)
        solution, _ = law.solve(np.full(3, np.nan), rest, targets[0])
        assert np.isnan(solution.tau).all()
        assert solution.gave_way() == list(law.task_names)


def test_a_task_that_no_motor_moves_and_weights_of_zero_leave_numbers():
    """The origin of the last link lies where all axes meet."""
    robot = arm_with_point_masses(1.0)
    q, rest = np.array([0.1, 0.2, 0.7]), np.zeros(3)
    for level in (1, 2):
        law = control.WholeBody(robot, [control.PointTask("link 2"), control.PostureTask(level=level)])
        solution, _ = law.solve(q, rest, law.targets(q + 0.1))
        np.testing.assert_allclose(solution.qdd, 10.0, rtol=1e-6)
        assert solution.residual < 1e-6
        gains = law.default_gains * np.array([0.0, 1.0, 1.0])
        solution, _ = law.solve(q, rest, law.targets(q + 0.1), gains=gains)
        np.testing.assert_allclose(solution.tau, 0.0, atol=1e-9)
        assert solution.gave_way() == ["posture"]
