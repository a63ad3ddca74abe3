"""Sensors, drives, delays, variations: each flaw does what it says and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, motion
from linkwise.functions.table import mechanism_of
from linkwise.simulate import Drives, Plant, Push, Sensors, simulate

HOME = np.array([0.2, -0.3, 0.4])


@pytest.fixture(scope="module")
def arm():
    """Three joints of a PUMA 560, its friction included: small, so that its kernels compile quickly."""
    return lw.load("puma560").lock({"wrist_roll": 0.1, "wrist_bend": 0.3, "flange": 0.0})


@pytest.fixture(scope="module")
def controller(arm):
    return control.ComputedTorque(arm, control.Gains.from_frequency(12.0), torque_limits=False)


@pytest.fixture(scope="module")
def move():
    return motion.quintic(HOME, HOME + 0.4, 0.3)


FLAWS = {
    "none": Plant,
    "noise": lambda arm: Plant(arm, sensors=Sensors(position_noise=1e-4, velocity_noise=[1e-3, 2e-3, 0.0])),
    "encoders": lambda arm: Plant(arm, sensors=Sensors.encoders(200, [62.6, 107.8, 53.7], cutoff=200.0)),
    "drives": lambda arm: Plant(arm, drives=Drives(torque_per_volt=[12.0, 15.0, 8.0])),
    "all": lambda arm: Plant(
        arm,
        breakaway=1.2,
        sensors=Sensors(position_noise=1e-4, resolution=1e-3, velocity="difference", cutoff=300.0),
        drives=Drives(torque_per_volt=12.0, bits=None),
    ),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_the_fused_loop_is_the_python_loop(arm, controller, move, flaw):
    plant = FLAWS[flaw](arm)
    options = {"duration": 0.06, "step": 1e-3, "control_period": 2e-3, "delay": 1, "seed": 3}
    record = ("command", "q_measured", "qd_measured")
    q = HOME + np.random.default_rng(0).normal(size=(3, 3)) * 0.05
    fused = simulate(plant, controller, move, q=q, record=record, **options)
    python = simulate(plant, controller, move, q=q, record=record, fused=False, **options)
    for name in ("q", "qd", "tau", "final_q"):
        np.testing.assert_allclose(getattr(fused, name), getattr(python, name), atol=1e-9, err_msg=name)
    for name in record:
        np.testing.assert_allclose(fused.recorded[name], python.recorded[name], atol=1e-9, err_msg=name)


def test_a_robot_alone_and_in_any_batch_moves_by_the_same_bits(arm, controller, move):
    plant = FLAWS["all"](arm)
    q = HOME + np.random.default_rng(1).normal(size=(11, 3)) * 0.05
    together = simulate(plant, controller, move, q=q, duration=0.05, threads=1)
    threaded = simulate(plant, controller, move, q=q, duration=0.05, threads=2)
    np.testing.assert_array_equal(together.q, threaded.q)
    alone = simulate(plant, controller, move, q=q[0], duration=0.05)
    np.testing.assert_array_equal(alone.q, together.q[0])
    few = simulate(plant, controller, move, q=q[:3], duration=0.05)
    np.testing.assert_array_equal(few.tau, together.tau[:3])


def test_noise_is_a_function_of_the_seed(arm, controller, move):
    plant = FLAWS["noise"](arm)
    runs = [
        simulate(plant, controller, move, duration=0.2, seed=seed, record=("q_measured", "qd_measured"))
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(runs[0].q, runs[1].q)
    assert (runs[0].q[-1] != runs[2].q[-1]).all()
    drawn = runs[0].recorded["q_measured"] - runs[0].q
    assert drawn.std() == pytest.approx(1e-4, rel=0.1)
    speeds = runs[0].recorded["qd_measured"] - runs[0].qd
    np.testing.assert_allclose(speeds.std(axis=0)[:2], [1e-3, 2e-3], rtol=0.2)
    assert (speeds[:, 2] == 0.0).all()


def test_encoders_measure_whole_counts(arm, controller, move):
    """200 counts per motor turn and a gear of 62.6: half a milliradian per count."""
    found = simulate(
        FLAWS["encoders"](arm), controller, move, duration=0.3, record=("q_measured", "qd_measured")
    )
    count = 2 * np.pi / (200 * np.array([62.6, 107.8, 53.7]))
    counts = found.recorded["q_measured"] / count
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-6)
    assert np.abs(found.recorded["q_measured"] - found.q).max() <= count.max() / 2 * (1 + 1e-9)
    moving = slice(50, 250)
    np.testing.assert_allclose(found.recorded["qd_measured"][moving], found.qd[moving], atol=0.5)


def test_voltages_are_limited_and_in_steps(arm, move):
    plant = Plant(arm, drives=Drives(torque_per_volt=[12.0, 15.0, 8.0], volts=10.0, bits=12))
    found = simulate(
        plant,
        control.ConstantTorque(arm, [500.0, -500.0, 8 * 1.2345]),
        move,
        duration=0.01,
        record=("command",),
    )
    step = 20 / 2**12
    np.testing.assert_allclose(found.tau[0], [12 * (10 - step), -150.0, 8 * step * round(1.2345 / step)])
    np.testing.assert_allclose(found.recorded["command"][0], [500.0, -500.0, 8 * 1.2345])


def test_a_delay_shifts_the_torques(arm, controller, move):
    for delay in (1, 3):
        found = simulate(arm, controller, move, duration=0.03, delay=delay, record=("command",))
        assert (found.tau[:delay] == 0.0).all()
        np.testing.assert_array_equal(found.tau[delay:], found.recorded["command"][:-delay])


def test_a_delay_makes_a_stiff_loop_unstable(arm):
    stiff = control.ComputedTorque(arm, control.Gains.from_frequency(150.0), torque_limits=False)
    frictionless = arm.with_parameters({label: 0.0 for label in arm.parameter_labels if "friction" in label})
    stiff = control.ComputedTorque(frictionless, control.Gains.from_frequency(150.0), torque_limits=False)
    prompt = simulate(frictionless, stiff, HOME, duration=0.5, q=HOME + 0.01)
    late = simulate(frictionless, stiff, HOME, duration=0.5, q=HOME + 0.01, delay=5)
    assert np.abs(prompt.error[-1]).max() < 1e-4
    assert not np.abs(late.error[-1]).max() < 0.1


def test_slower_control_on_the_same_integrator(arm, controller, move):
    """Four integration steps per sample in a loop are four calls of one step each with the same torque."""
    found = simulate(arm, controller, move, duration=0.04, step=1e-3, control_period=4e-3)
    assert len(found.t) == 10
    by_hand = simulate(
        arm, control.ConstantTorque(arm, found.tau[0]), duration=4e-3, step=1e-3, q=found.q[0], qd=found.qd[0]
    )
    np.testing.assert_allclose(found.q[1], by_hand.final_q, rtol=1e-14)


def test_gains_friction_and_payload_differ_from_robot_to_robot(arm, move):
    controller = control.Tracking(arm, control.Gains.from_frequency(10.0), torque_limits=False)
    kp = np.array([[50.0, 60.0, 70.0], [100.0, 100.0, 100.0]])
    mass, com = 1.5, np.array([0.02, 0.0, 0.1])
    ten = lw.Inertia.from_com(mass, com, (0.01, 0.01, 0.01)).parameters
    payload = np.array([np.zeros(10), ten])
    viscous = np.array([[1.0], [9.0]])
    vary = {"kp": kp, "payload": payload, "shoulder.viscous_friction": viscous}
    together = simulate(arm, controller, move, duration=0.05, q=HOME, vary=vary)
    assert together.q.shape == (2, 50, 3)
    for k in range(2):
        robot = arm.with_parameters({"shoulder.viscous_friction": float(viscous[k, 0])})
        if k == 1:
            robot = robot.with_payload(mass, com, (0.01, 0.01, 0.01))
        own = control.Tracking(arm, control.Gains(kp[k], 20.0), torque_limits=False)
        alone = simulate(robot, own, move, duration=0.05, q=HOME)
        np.testing.assert_allclose(together.q[k], alone.q, atol=1e-12)


def test_a_python_function_controls(arm, controller, move):
    def law(t, q, qd, reference):
        v = reference[2] - 24.0 * (qd - reference[1]) - 144.0 * (q - reference[0])
        joints = arm.moving_joints
        coulomb = [
            np.where(s > 0, j.coulomb_friction[0], np.where(s < 0, -j.coulomb_friction[1], 0.0))
            for j, s in zip(joints, reference[1], strict=True)
        ]
        viscous = [j.viscous_friction for j in joints]
        return arm.inverse_dynamics(q, qd, v, friction=False) + coulomb + viscous * qd

    python = simulate(arm, law, move, duration=0.05, q=HOME + 0.01)
    traced = simulate(arm, controller, move, duration=0.05, q=HOME + 0.01)
    np.testing.assert_allclose(python.q, traced.q, atol=1e-10)


def test_single_precision(arm, controller, move):
    double = simulate(arm, controller, move, duration=0.1, q=HOME)
    single = simulate(arm, controller, move, duration=0.1, q=HOME, dtype="float32")
    assert single.q.dtype == np.float32
    np.testing.assert_allclose(single.q, double.q, atol=1e-4)


def test_a_nan_stays_with_its_robot(arm, controller, move):
    q = np.tile(HOME, (9, 1))
    q[4, 1] = np.nan
    found = simulate(arm, controller, move, duration=0.01, q=q)
    clean = simulate(arm, controller, move, duration=0.01, q=HOME)
    others = np.arange(9) != 4
    assert np.isnan(found.final_q[4]).any()
    assert (found.q[others] == clean.q).all()


def test_large_robots_are_stepped_from_python():
    chain = lw.planar_chain(18)
    found = simulate(chain, control.Passive(chain), duration=3e-3, q=np.full(18, 0.1))
    qdd = chain.forward_dynamics(np.full(18, 0.1), np.zeros(18), np.zeros(18))
    np.testing.assert_allclose(found.qd[1], 1e-3 * qdd, rtol=1e-3, atol=1e-7)


def test_rows_stand_for_one_moment(arm, controller, move):
    found = simulate(arm, controller, move, duration=0.05, every=7)
    assert found.q.shape == (8, 3)
    np.testing.assert_allclose(found.t, np.arange(0, 50, 7) * 1e-3)
    np.testing.assert_array_equal(found.reference[0], move.at(found.t).q)
    law = controller.kernel(1e-3)
    np.testing.assert_allclose(
        found.tau[3], law(found.q[3], found.qd[3], *(part[3] for part in found.reference)), rtol=1e-12
    )
    nothing = simulate(arm, controller, move, duration=0.0)
    assert nothing.q.shape == (0, 3)
    np.testing.assert_array_equal(nothing.final_q, HOME)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duration": 0.0105}, "duration: expected a whole number of control periods"),
        ({"step": -1e-3}, "step: expected finite numbers above 0"),
        ({"control_period": 1.5e-3}, "control_period: expected a whole number of steps"),
        ({"integrator": "rk5"}, "integrator: no 'rk5'; did you mean 'rk4'"),
        ({"record": ("speed",)}, "record: no 'speed'"),
        ({"vary": {"kx": [1.0]}}, "vary: no 'kx'"),
        ({"vary": {"kp": [1.0]}}, r"vary: kp needs shape \(..., 3\)"),
        ({"q": [0.0, 1.0]}, r"q: expected shape \(..., 3\)"),
        ({"delay": 1, "continuous": True}, "continuous=True"),
        ({"every": 0}, "every: expected a whole number from 1 on, got 0"),
        ({"every": 2.5}, "every: expected a whole number from 1 on, got 2.5"),
        ({"delay": -1}, "delay: expected a whole number from 0 on"),
        ({"duration": float("nan")}, "duration: expected finite"),
        ({"duration": float("inf")}, "duration: expected finite"),
        ({"duration": -1.0}, "duration: expected finite numbers from 0 on"),
        ({"duration": 1e300}, "duration: expected a whole number"),
        ({"duration": "long"}, "duration: expected numbers"),
        ({"step": 0.0}, "step: expected"),
        ({"step": float("nan")}, "step: expected"),
        ({"control_period": float("nan")}, "control_period: expected"),
        ({"control_period": 0.0}, "control_period: expected a whole number of steps"),
        ({"vary": {"kp": [1.0, float("nan"), 1.0]}}, "vary: kp: expected finite numbers from 0 on"),
        ({"vary": {"kd": [1.0, -1.0, 1.0]}}, "vary: kd: expected finite numbers from 0 on"),
        ({"vary": {"payload": [-1.0] + [0.0] * 9}}, "vary: payload: mass"),
        ({"vary": {"payload": [1.0, float("inf")] + [0.0] * 8}}, "vary: payload: expected finite"),
        ({"vary": {"link1.m": [-1.0]}}, "vary: link1.m: expected finite numbers from 0 on"),
        ({"vary": {"waist.rotor_inertia": [-1.0]}}, "vary: waist.rotor_inertia: expected"),
        ({"vary": {"step": [0.0]}}, "vary: step: expected finite numbers above 0"),
        ({"vary": {"breakaway": [0.5]}}, "vary: breakaway: expected finite numbers from 1 on"),
        ({"q": ["a", "b", "c"]}, "q: expected numbers"),
        ({"torque_limits": 3.0}, "torque_limits: those of a controller"),
    ],
)
def test_bad_input_is_named(arm, controller, move, options, message):
    with pytest.raises(ValueError, match=message):
        simulate(arm, controller, move, **{"duration": 0.01, **options})


def test_other_things_that_do_not_fit_are_named(arm, controller, move):
    with pytest.raises(ValueError, match="its model has 7 joints"):
        simulate(arm, control.Passive(lw.load("panda")), move, duration=0.01)
    with pytest.raises(ValueError, match="a trajectory of 3 joints, got one of 1"):
        simulate(arm, controller, motion.quintic([0.0], [1.0], 1.0), duration=0.01)
    with pytest.raises(ValueError, match="reference: expected a trajectory or positions"):
        simulate(arm, controller, [0.0, 1.0], duration=0.01)
    with pytest.raises(ValueError, match="no reference"):
        _ = simulate(arm, control.Passive(arm), duration=0.01).error
    with pytest.raises(ValueError, match="breakaway"):
        Plant(arm, breakaway=0.5)
    with pytest.raises(ValueError, match="velocity: expected"):
        Sensors(velocity="guess")
    with pytest.raises(ValueError, match="or a function, got 3"):
        simulate(arm, 3.0, move, duration=0.01)
    with pytest.raises(ValueError, match="position_noise"):
        simulate(
            Plant(arm, sensors=Sensors(position_noise=[1.0, -1.0, 1.0])), controller, move, duration=0.01
        )


def test_somebody_elses_controller_is_never_mistaken_for_another(arm, move):
    """Two laws of one name that differ in a number: the code of the first must not serve the second."""

    def law(torque):
        class Push(control.Controller):
            def control(self, links, gains, q, qd, reference, memory, period):
                return [torque] * 3, []

        return Push(arm, {}, torque_limits=False)

    for torque in (1.0, 2.0):
        assert (simulate(arm, law(torque), move, duration=2e-3).tau == torque).all()
        zero = np.zeros(3)
        assert (law(torque).kernel(1e-3)(zero, zero, zero, zero, zero) == torque).all()


def test_a_joint_that_moves_nothing_is_named():
    links = [lw.Link("base"), lw.Link("arm", lw.Inertia.from_com(1, (0.3, 0, 0), (1, 1, 1))), lw.Link("tip")]
    joints = [lw.Joint("elbow", "revolute", "base", "arm"), lw.Joint("wrist", "revolute", "arm", "tip")]
    robot = lw.Robot("loose", links, joints)
    with pytest.raises(lw.SingularError, match="joint 'wrist' moves no inertia"):
        simulate(robot, control.Passive(robot), q=[0.1, 0.2], duration=0.01)


# -- one piece at a time ----------------------------------------------------------------------------------------------


def test_sensors_on_numbers():
    sensors = Sensors(position_noise=[0.1, 0.0], velocity_noise=[0.0, 0.2], resolution=[0.5, 0.0])
    values = sensors.numbers(2, 0.01)
    q, qd, memory = sensors.measured(values, [1.0, 1.3], [2.0, 3.0], (), 0.01, [2.0, 5.0, 7.0, -1.0])
    assert q == pytest.approx([1.0, 1.3])  # 1.2 counted in halves; without noise and counts
    assert qd == pytest.approx([2.0, 2.8])
    assert memory == []
    quick = Sensors(velocity="difference")
    assert quick.numbers(1, 0.01)["filter_gain"].tolist() == [1.0]
    filtered = Sensors(velocity="difference", cutoff=50.0)
    gain = 1 - np.exp(-0.5)
    values = filtered.numbers(1, 0.01)
    assert values["filter_gain"][0] == pytest.approx(gain)
    q, qd, memory = filtered.measured(values, [1.02], [99.0], [1.0, 0.5], 0.01, [])
    assert q == [1.02]
    assert qd == pytest.approx([0.5 + gain * (2.0 - 0.5)])
    assert memory == [*q, *qd]


def test_the_memory_of_encoders_starts_at_rest_on_a_count():
    start = np.array([[0.74, 0.74], [-0.2, 0.1]])
    counted = Sensors(resolution=[0.5, 0.0], velocity="difference").memory(start)
    np.testing.assert_allclose(counted, [[0.5, 0.74, 0, 0], [0.0, 0.1, 0, 0]])
    np.testing.assert_array_equal(
        Sensors(velocity="difference").memory(start), np.c_[start, np.zeros((2, 2))]
    )
    assert Sensors(resolution=0.5).memory(start).shape == (2, 0)


def test_which_flaws_sensors_have():
    assert not Sensors().noisy
    assert Sensors(position_noise=[0.0, 1e-3]).noisy
    assert Sensors(velocity_noise=1e-3).noisy
    assert Sensors(velocity_noise=[0.0, 1e-3]).noisy
    assert not Sensors(resolution=1e-3).noisy
    assert Sensors(resolution=[0.0, 1e-3]).counts
    assert not Sensors(position_noise=1e-3).counts


def test_drives_on_numbers():
    drives = Drives(torque_per_volt=[2.0, 4.0], volts=10.0, bits=3)  # steps of 2.5 V
    values = drives.numbers(2)
    assert values["volt_step"].tolist() == [2.5]
    assert drives.driven(values, [2.0 * 3.6, 4.0 * -100.0]) == [5.0, -40.0]
    assert drives.driven(values, [2.0 * 100.0, 4.0 * 1.2]) == [15.0, 0.0]  # one step less above
    smooth = Drives(torque_per_volt=2.0, volts=5.0, bits=None)
    assert smooth.driven(smooth.numbers(1), [100.0]) == [10.0]
    assert smooth.driven(smooth.numbers(1), [-100.0]) == [-10.0]
    assert smooth.driven(smooth.numbers(1), [3.3]) == [3.3]
    assert Drives().driven({}, [1.0, 2.0]) == [1.0, 2.0]
    assert Drives().ideal
    assert not smooth.ideal


def test_a_delay_is_a_line(arm, controller):
    from linkwise.simulate.loop import ClosedLoop
    from linkwise.simulate.reference import source_of

    loop = ClosedLoop(Plant(arm), controller, source_of(HOME, 3), "rk4", False, False, 2)
    sent, line = loop._delayed([7.0, 8.0, 9.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert sent == [1.0, 2.0, 3.0]
    assert line == [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]


def test_differences_of_positions_are_taken_over_a_period_of_the_controller(arm, controller, move):
    """Four steps long; the filter is that of the same period: v + (1 − exp(−ω T)) (Δq/T − v)."""
    period, cutoff = 4e-3, 150.0
    plant = Plant(arm, sensors=Sensors(velocity="difference", cutoff=cutoff))
    found = simulate(
        plant,
        controller,
        move,
        duration=0.1,
        step=1e-3,
        control_period=period,
        record=("q_measured", "qd_measured"),
    )
    q, qd = found.recorded["q_measured"], found.recorded["qd_measured"]
    slope = np.diff(q, axis=0) / period
    expected = qd[:-1] + (1.0 - np.exp(-cutoff * period)) * (slope - qd[:-1])
    np.testing.assert_allclose(qd[1:], expected, atol=1e-9)
    assert np.abs(qd).max() > 0.5


def test_pushes_come_at_their_time_under_controllers_in_python():
    """No torque from a function of Python, and compiled: the same motion, before, during and after the push."""
    arm = lw.random_robot(5, 3, friction=True)
    plant = Plant(arm, push=Push(torque=[3.0, -2.0, 1.0], begin=0.05, end=0.11))
    options = {"duration": 0.2, "step": 0.002, "q": np.zeros(3), "qd": np.zeros(3), "warn": False}
    compiled, free = (simulate(each, control.Passive(arm), **options) for each in (plant, arm))
    python = simulate(plant, lambda t, q, qd, reference: np.zeros(3), **options)
    np.testing.assert_allclose(python.q, compiled.q, atol=1e-12)
    apart = np.abs(free.q - compiled.q).max(axis=-1)
    begun = round(0.05 / 0.002)
    assert (apart[: begun + 1] == 0.0).all()
    assert apart[begun + 10] > 1e-4
    # a period that begins at the end of a push has none: the last one is as long as the others
    links = mechanism_of(arm)
    push, values = plant.push, {name: x.tolist() for name, x in plant.push.numbers(3).items()}
    for time, factor in ((0.0499, 0.0), (0.05, 1.0), (0.1099, 1.0), (0.11, 0.0), (0.2, 0.0)):
        found = push.torques(links, arm, values, [0.0] * 3, time)
        assert found == [factor * x for x in (3.0, -2.0, 1.0)]
