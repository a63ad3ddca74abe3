"""The momentum observer: against an integration of its equations with another library, and on simulated pushes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

import linkwise as lw
from c_functions import call_c
from linkwise import control, motion
from linkwise.algorithms import coordinates, coriolis, equation
from linkwise.control.controller import Reference
from linkwise.control.momentum_observer import decay
from linkwise.control.task_space.felt import FeltWrench
from linkwise.functions.table import mechanism_of
from linkwise.scalar import sign
from linkwise.simulate import Moves, Plant, Push, simulate
from linkwise.simulate.loop import step_kernel
from strategies import robots, states_of

GAIN, PERIOD = 50.0, 1e-3


@pytest.fixture(scope="module")
def puma():
    return lw.load("puma560")


@pytest.fixture(scope="module")
def arm(smooth_arm):
    """The same with dry friction, which sticks, and rotors."""
    first, second = smooth_arm.joint_names
    return smooth_arm.with_parameters(
        {
            f"{first}.coulomb_friction": 1.5,
            f"{second}.coulomb_friction": 0.8,
            f"{first}.rotor_inertia": 0.3,
            f"{second}.rotor_inertia": 0.1,
        }
    )


@pytest.fixture(scope="module")
def smooth_arm():
    """Two joints with viscous friction and nothing that jumps."""
    arm = lw.load("two_link")
    first, second = arm.joint_names
    return arm.with_parameters(
        {
            **{f"{name}.coulomb_friction": 0.0 for name in (first, second)},
            f"{first}.viscous_friction": 0.4,
            f"{second}.viscous_friction": 0.2,
        }
    )


@pytest.mark.parametrize(
    ("name", "base"), [("puma560", "fixed"), ("stanford", "fixed"), ("two_link", "floating")]
)
def test_momentum_and_its_rate_are_those_of_the_matrices(name, base):
    robot = lw.load(name, base=base)
    links = mechanism_of(robot, base_parameters=base == "fixed")
    rng = np.random.default_rng(0)
    q, qd = robot.random(rng), rng.normal(size=robot.dof)
    p, carried = coordinates.momentum(links, list(q), list(qd))
    at, rates = links.grouped(q.tolist(), positions=True), links.grouped(qd.tolist())
    np.testing.assert_allclose(p, np.array(equation.mass_matrix(links, at)) @ qd, atol=1e-12)
    np.testing.assert_allclose(
        carried, np.array(coriolis.coriolis_matrix(links, at, rates)).T @ qd, atol=1e-12
    )


def test_decay_is_an_exponential_between_zero_and_one():
    for x, tolerance in ((0.0, 0.0), (0.04, 1e-11), (1.0, 1e-6), (8.0, 1e-6)):
        assert abs(decay(x) - math.exp(-x)) <= tolerance
    assert all(0.0 <= decay(x) < 1.0 for x in (1e-3, 10.0, 1e3, 1e6, 1e12))


def test_the_residual_is_that_of_the_equations_integrated_with_pinocchio(smooth_arm):
    """r = K (p − ∫ (τ + Cᵀq̇ − g − friction + r) dt − p(0)) in small steps, with M, C and g of another library."""
    pin = pytest.importorskip("pinocchio")
    from linkwise.bench.peers.built import pinocchio_model

    model = pinocchio_model(pin, smooth_arm)
    model.gravity.linear = np.array(smooth_arm.gravity)
    data = model.createData()
    viscous = np.array([joint.viscous_friction for joint in smooth_arm.moving_joints])
    torque = np.array([[3.0, -1.0], [-2.0, 2.0], [1.0, 0.5]])  # held for a tenth of a second each

    def moved(t):
        q = np.array([0.7 * np.sin(3 * t), 0.5 - 0.6 * np.cos(2 * t)])
        return q, np.array([2.1 * np.cos(3 * t), 1.2 * np.sin(2 * t)])

    fine, steps = 1e-4, 3000
    total, r, rows = np.zeros(2), np.zeros(2), []
    q, qd = moved(0.0)
    start = pin.crba(model, data, q) @ qd
    for k in range(steps):
        q, qd = moved(k * fine)
        if k % 20 == 0:
            rows.append(r)
        C = pin.computeCoriolisMatrix(model, data, q, qd)
        gravity = pin.computeGeneralizedGravity(model, data, q)
        now = torque[min(k // 1000, 2)] + C.T @ qd - gravity - viscous * qd
        total = total + fine * (now + r)
        q, qd = moved((k + 1) * fine)
        r = GAIN * (pin.crba(model, data, q) @ qd - total - start)
    t = np.arange(len(rows)) * 20 * fine
    q, qd = (np.array(x) for x in zip(*map(moved, t), strict=True))
    held = torque[np.minimum(np.maximum(np.arange(len(rows)) - 1, 0) // 50, 2)]
    found = control.MomentumObserver(smooth_arm, GAIN, rest_speed=0.0).over(q, qd, held, 20 * fine)
    size = np.abs(rows).max()
    assert size > 5.0
    np.testing.assert_allclose(found.external_torque, rows, atol=5e-3 * size)


def run(arm, push=None, reaction="stop", duration=0.6, observer=None):
    law = control.ComputedTorque(arm, control.Gains.from_frequency(20.0))
    observer = control.MomentumObserver(arm, GAIN, threshold=4.0) if observer is None else observer
    guarded = control.Guarded(law, observer, reaction=reaction)
    move = motion.quintic(np.zeros(2), [0.8, -0.7], 1.0)
    found = simulate(Plant(arm, push=push), guarded, move, duration=duration, step=PERIOD, record=("memory",))
    return found, guarded.observed(found.recorded["memory"])


def test_a_step_of_force_is_followed_with_the_time_constant(arm):
    """And a collision is found when the filter says so; the joints are moving, so that their friction is known."""
    force, begin = 12.0, 300
    push = Push(torque=[force, 0.0], begin=begin * PERIOD)
    found, seen = run(arm, push, reaction="none", duration=0.45)
    # the memory of a row is what the sample before has left
    t = (np.arange(450) - begin - 1) * PERIOD
    expected = np.where(t > 0, force * (1.0 - np.exp(-GAIN * t)), 0.0)
    np.testing.assert_allclose(seen.external_torque[:, 0], expected, atol=2e-3 * force)
    assert np.abs(seen.external_torque[:, 1]).max() < 2e-3 * force
    row = int(np.argmax(seen.collision[:, 0] > 0))
    latest = -math.log(1.0 - 4.0 / force) / GAIN  # 8 ms
    assert begin * PERIOD < found.t[row] <= begin * PERIOD + latest + 3 * PERIOD


def test_the_arm_stops_where_it_was_hit_and_stays_there(arm):
    push = Push(torque=[20.0, 0.0], begin=0.3, end=0.35)
    found, seen = run(arm, push)
    row = int(np.argmax(seen.collision[:, 0] > 0))
    assert 300 < row < 310
    assert (seen.collision[row:] == 1).all()
    hit, planned = found.q[row], found.reference[0][-1]
    assert np.abs(found.qd[-1]).max() < 0.05
    assert np.abs(found.q[-1] - hit).max() < 0.1 < np.abs(planned - hit).max()
    free, unseen = run(arm)
    assert not unseen.collision.any()
    assert np.abs(free.qd[-1]).max() > 0.5


@pytest.mark.parametrize("reaction", ["float", "reflex"])
def test_an_arm_that_floats_or_gives_way(arm, reaction):
    push = Push(torque=[10.0, 0.0], begin=0.3)
    found, seen = run(arm, push, reaction=reaction)
    stopped, _ = run(arm, push)
    assert seen.collision[-1] == 1
    assert found.q[-1, 0] > stopped.q[-1, 0] + 0.05


def test_a_function_is_a_reaction_too_and_every_loop_agrees(arm):
    def back(links, q, qd, external):
        return [5.0 * sign(r) for r in external]

    law = control.ComputedTorque(arm, control.Gains.from_frequency(20.0))
    observer = control.MomentumObserver(arm, GAIN, threshold=2.0, cutoff=200.0)
    guarded = control.Guarded(law, observer, reaction=back, delay=1)
    plant = Plant(arm, push=Push(wrench=[0, 0, 0, 5.0, -30.0, 0], begin=0.005))
    runs = [
        simulate(
            plant, guarded, [0.4, 0.4], q=[0.0, 0.1], duration=0.03, record=("memory",), fused=fused, delay=1
        )
        for fused in (True, False)
    ]
    assert guarded.observed(runs[0].recorded["memory"]).collision[-1] == 1
    assert set(np.abs(runs[0].tau[-1])) == {5.0}
    np.testing.assert_allclose(runs[1].recorded["memory"], runs[0].recorded["memory"], rtol=1e-9, atol=1e-9)


def test_no_false_alarm_in_long_random_motions_with_rests(puma):
    """Half a minute of moves with rests, where friction sticks: the model is exact, so nothing is found."""
    start, end = np.random.default_rng(3).uniform(-1.0, 1.0, (2, 24, 6))
    law = control.ComputedTorque(puma, control.Gains.from_frequency(15.0))
    guarded = control.Guarded(law, control.MomentumObserver(puma, GAIN, threshold=0.5), reaction="none")
    found = simulate(puma, guarded, Moves(start, end, 1.0), duration=1.3, record=("memory",))
    assert np.abs(found.tau).max() > 50.0
    seen = guarded.observed(found.recorded["memory"])
    assert np.abs(seen.external_torque).max() < 0.25
    assert not seen.collision.any()


@pytest.mark.parametrize(
    "law",
    [
        {"friction_speed": 0.1},
        {"load_friction": 0.1, "torque_offset": 0.7, "stiffness": 5.0},
        {"stribeck_friction": 0.5, "stribeck_speed": 0.1},
    ],
    ids=" ".join,
)
def test_every_law_of_the_joints_is_part_of_the_balance(arm, law):
    robot = arm.with_parameters({f"{arm.joint_names[0]}.{name}": value for name, value in law.items()})
    observer = control.MomentumObserver(robot, GAIN, threshold=0.05)
    found, seen = run(robot, None, "none", 1.2, observer=observer)
    assert np.abs(found.tau).max() > 10.0
    assert np.abs(seen.external_torque).max() < 0.01
    assert not seen.collision.any()


def test_a_wrench_at_the_tip_is_found(smooth_arm, puma):
    robot = puma.with_parameters({f"{name}.coulomb_friction": 0.0 for name in puma.joint_names})
    q = np.array([0.3, -0.6, 0.4, 0.5, 0.8, 0.2])
    wrench = np.array([0.4, -0.2, 0.3, 5.0, -8.0, 3.0])
    kernel = control.MomentumObserver(robot, GAIN, threshold=2.0).kernel(PERIOD)
    tau = robot.inverse_dynamics(
        q, np.zeros(6), np.zeros(6), wrench=wrench
    )  # the motors hold the arm against it
    memory = np.zeros(dict(kernel.inputs)["memory"])
    for _ in range(600):
        external, found, contact, collision, memory = kernel(q, np.zeros(6), tau, memory)
    np.testing.assert_allclose(external, robot.gravity_torques(q) - tau, atol=1e-9)
    np.testing.assert_allclose(found, wrench, rtol=1e-3, atol=1e-3)
    assert contact.any()
    assert collision == 1
    point = control.MomentumObserver(smooth_arm, GAIN, frame="tip", force_only=True)
    push = np.array([0.0, 0.0, 0.0, 2.0, 3.0, 0.0])
    tau = smooth_arm.inverse_dynamics([0.2, 0.9], [0.0, 0.0], [0.0, 0.0], wrench=push, wrench_frame="tip")
    seen = point.over(np.tile([0.2, 0.9], (600, 1)), np.zeros((600, 2)), np.tile(tau, (600, 1)), PERIOD)
    np.testing.assert_allclose(seen.wrench[-1], push, atol=1e-3)


def test_any_gain_is_stable(smooth_arm):
    q, qd = np.full((40, 2), 0.3), np.full((40, 2), 0.0)
    tau = np.tile(smooth_arm.gravity_torques(q[0]) - [1.0, -2.0], (40, 1))
    for gain in (1.0, 1e3, 1e6, 1e12):
        r = control.MomentumObserver(smooth_arm, gain).over(q, qd, tau, 0.01).external_torque
        assert (np.diff(np.abs(r), axis=0) >= -1e-12).all()
        assert (np.abs(r) <= [1.0 + 1e-9, 2.0 + 1e-9]).all()
    np.testing.assert_allclose(r[-1], [1.0, -2.0], rtol=1e-9)


def test_confirmation_and_broken_sensors(smooth_arm):
    q, qd = np.full((30, 2), 0.3), np.zeros((30, 2))
    tau = np.tile(smooth_arm.gravity_torques(q[0]), (30, 1))
    tau[10:13] += 100.0
    observer = control.MomentumObserver(smooth_arm, 500.0, threshold=20.0, confirm=0.1)
    quick = control.MomentumObserver(smooth_arm, 500.0, threshold=20.0)
    assert not observer.over(q, qd, tau, 0.01).contact.any()
    seen = quick.over(q, qd, tau, 0.01)
    assert np.argmax(seen.contact[:, 0]) == 10
    assert seen.contact[-1].tolist() == [0.0, 0.0]
    assert seen.collision[-1] == 1
    qd[20, 1] = np.nan
    assert quick.over(q, qd, np.tile(tau[0], (30, 1)), 0.01).collision[[19, 20], 0].tolist() == [0.0, 1.0]


def test_thresholds_from_a_recording_without_contact(smooth_arm):
    q, qd = np.full((30, 2), 0.3), np.zeros((30, 2))
    tau = smooth_arm.gravity_torques(q[0]) + np.outer(np.sin(np.arange(30.0)), [1.0, 0.1])
    usual = control.MomentumObserver(smooth_arm).threshold  # of a robot without effort limits
    assert (usual > 0.1).all()
    assert (usual < 5.0).all()
    observer = control.MomentumObserver(smooth_arm, 500.0, threshold=1e-3)
    calm = observer.calibrated(q, qd, tau, 0.01, margin=2.0)
    largest = np.abs(observer.over(q, qd, tau, 0.01).external_torque).max(axis=0)
    np.testing.assert_allclose(calm.threshold, 2.0 * largest)
    assert observer.over(q, qd, tau, 0.01).collision.any()
    assert not calm.over(q, qd, tau, 0.01).collision.any()


def test_it_is_c_with_the_same_bits(puma, tmp_path):
    kernel = control.MomentumObserver(puma, GAIN, threshold=4.0, cutoff=100.0).kernel(PERIOD)
    rng = np.random.default_rng(1)
    q, qd, tau = rng.normal(size=(3, 6))
    memory = kernel(q, qd, tau, np.zeros(dict(kernel.inputs)["memory"]))[-1]
    wanted = kernel(q + PERIOD * qd, qd, tau, memory)
    for ours, theirs in zip(call_c(kernel, tmp_path, q + PERIOD * qd, qd, tau, memory), wanted, strict=True):
        assert ours.tobytes() == np.asarray(theirs).tobytes()


def test_a_load_that_is_known_is_no_external_force(arm, tmp_path):
    """As an input of the observer's kernel and of a guarded controller's; the latter as C, too."""
    loaded = arm.with_payload(2.0, [0.1, 0.0, 0.0])
    payload = np.array([2.0, 0.2, 0, 0, 0, 0, 0, 0.02, 0, 0.02])
    observer = control.MomentumObserver(arm, GAIN)
    q, tau = np.array([0.3, 0.4]), loaded.gravity_torques([0.3, 0.4]) * 1.5
    kernel, wanted = (
        observer.kernel(PERIOD, inputs=("payload",)),
        control.MomentumObserver(loaded, GAIN).kernel(PERIOD),
    )
    state, qd = q, np.array([0.2, 0.1])
    memories = [np.zeros(observer.memory_size)] * 2
    for _ in range(3):
        found = kernel(state, qd, tau, payload, memories[0]), wanted(state, qd, tau, memories[1])
        memories = [found[0][-1], found[1][-1]]
        state = state + PERIOD * qd
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    assert np.abs(found[0][0]).max() > 0.1
    laws = [
        control.GravityPD(robot, control.Gains(30.0, 2.0), torque_limits=False) for robot in (arm, loaded)
    ]
    guarded = [control.Guarded(law, control.MomentumObserver(law.robot, GAIN, threshold=5.0)) for law in laws]
    with_input, fixed = guarded[0].kernel(PERIOD, inputs=("payload",)), guarded[1].kernel(PERIOD)
    given = (q, qd, q, qd, np.zeros(2), np.zeros(guarded[0].memory_size))
    np.testing.assert_allclose(with_input(*given, payload)[0], fixed(*given)[0], rtol=1e-9)
    for ours, theirs in zip(call_c(fixed, tmp_path, *given), fixed(*given), strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_what_is_refused(puma, smooth_arm):
    with pytest.raises(ValueError, match="gain: expected finite numbers above 0"):
        control.MomentumObserver(puma, -1.0)
    with pytest.raises(ValueError, match="threshold: expected one number or 6"):
        control.MomentumObserver(puma, threshold=[1.0, 2.0])
    with pytest.raises(ValueError, match="reaction: expected one of stop, float"):
        control.Guarded(control.Passive(puma), control.MomentumObserver(puma), reaction="flee")
    with pytest.raises(ValueError, match="its model has 2 joints, that of the law has 6"):
        control.Guarded(control.Passive(puma), control.MomentumObserver(smooth_arm))
    with pytest.raises(lw.LinkwiseError, match="cannot be told from external forces"):
        control.MomentumObserver(
            smooth_arm.with_constraints([lw.Point(smooth_arm.link_names[-1], [1.0, 0.0, 1.0])])
        )
    with pytest.raises(lw.LinkwiseError, match="a torque or a wrench"):
        Push()


def test_friction_is_known_only_of_joints_that_keep_their_direction():
    """Of a joint that is slow, or turns back between two samples, it lies between both limits: what is left of the
    external torque is the least that any of these explains."""
    rng, robot = np.random.default_rng(0), lw.load("puma560")
    observer = control.MomentumObserver(robot, rest_speed=0.05)
    forward, backward = np.array([joint.coulomb_friction for joint in robot.moving_joints]).T
    n, links, kinds = robot.dof, observer.links(), set()
    for _ in range(60):
        qd, old = (rng.choice([-1.0, 1.0], n) * rng.choice([0.01, 0.5], n) for _ in range(2))
        balance, tau = 10.0 * rng.normal(size=(2, n))
        zero = [0.0] * n
        found = observer._external(
            links, list(balance), list(tau), zero, list(robot.random(rng)), list(qd), list(old)
        )
        for k in range(n):
            ahead, back = min(qd[k], old[k]) > 0.05, max(qd[k], old[k]) < -0.05
            lowest = forward[k] if ahead else -backward[k]
            highest = -backward[k] if back else forward[k]
            free = balance[k] - tau[k]
            assert found[k] == pytest.approx(min(max(0.0, free + lowest), free + highest)), (qd[k], old[k])
            kinds.add((ahead, back, found[k] == 0.0))
    assert len(kinds) >= 4


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_torques_on_their_way_are_known(delay):
    """Torques that change in every sample reach the arm some samples later: nothing external is felt, by a guarded law
    and by laws that feel a wrench."""
    robot, h, rng = lw.load("two_link"), 1e-3, np.random.default_rng(3)
    links, step = mechanism_of(robot), step_kernel(robot)
    law = control.FeedForward(robot, torque_limits=False)
    guarded = control.Guarded(law, control.MomentumObserver(robot, 100.0, threshold=1e9), delay=delay)
    felt = FeltWrench(robot, robot.default_frame(), "observer", 100.0, delay)
    gains = {name: values.tolist() for name, values in guarded.gains.items()}
    own = {name: values.tolist() for name, values in felt.numbers().items()}
    memory, felt_memory = [0.0] * guarded.memory_size, [0.0] * felt.memory_size
    q, qd, line = np.array([0.3, -0.4]), np.zeros(2), [np.zeros(2)] * delay
    external, wrenches = [], []
    for _ in range(60):
        wanted = Reference(list(q), list(qd), rng.uniform(-20, 20, 2).tolist())
        found = guarded.commanded(links, gains, list(q), list(qd), wanted, memory, h)
        wrench, following = felt.felt(links, own, list(q), list(qd), felt_memory, h)
        memory, felt_memory = found.memory, felt.remembered(following, found.tau)
        line = [*line, np.array(found.tau)]
        q, qd = step(q, qd, line.pop(0), [h])
        external.append(np.abs(guarded.observed(np.array(memory)).external_torque).max())
        wrenches.append(np.abs(wrench).max())
    assert max(external) < 0.1  # of torques of 20 N·m; the step is of first order
    assert max(wrenches) < 0.5


def test_reactions_by_their_formulas():
    robot, rng = lw.load("puma560"), np.random.default_rng(5)
    links, law = mechanism_of(robot), control.named("gravity_pd", robot, frequency=5.0)
    q, qd, external, damping = rng.normal(size=(4, 6))
    damping = np.abs(damping)
    weight = robot.gravity_torques(q)
    for reaction, expected in (
        ("float", weight - damping * qd),
        ("reflex", weight - damping * qd + 2.0 * external),  # along the external torque: it gives way
    ):
        more = {"reflex_gain": 2.0} if reaction == "reflex" else {}
        made = control.Guarded(
            law, control.MomentumObserver(robot), reaction=reaction, damping=damping, **more
        )
        gains = {name: values.tolist() for name, values in made.gains.items()}
        tau = made._reacted(links, gains, q.tolist(), qd.tolist(), external.tolist())
        np.testing.assert_allclose(tau, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_a_guarded_law_holds_the_position_of_the_collision(base):
    """Sample by sample: the torques are those of the law, after a collision those of the law at rest before it."""
    robot, rng = lw.load("two_link", base=base), np.random.default_rng(6)
    if base == "floating":
        robot = robot.with_payload(1.0, inertia=(1.0, 1.0, 1.0), frame="base")
    law = control.named("computed_torque", robot, frequency=5.0)
    observer = control.MomentumObserver(robot, threshold=np.inf, confirm=0.0)
    guarded = control.Guarded(law, observer)
    links, n = law.links(), robot.dof
    gains = {name: values.tolist() for name, values in guarded.gains.items()}
    memory, held, last = [0.0] * guarded.memory_size, None, None
    for k in range(6):
        q = robot.integrate(robot.neutral, 0.3 * rng.normal(size=n)).tolist()
        qd = (0.5 * rng.normal(size=n)).tolist()
        wanted = robot.integrate(robot.neutral, 0.3 * rng.normal(size=n)).tolist()
        reference = Reference(wanted, rng.normal(size=n).tolist(), rng.normal(size=n).tolist())
        if k == 3:
            gains["contact_threshold"] = [1e-6] * n
            held = last
        found = guarded.commanded(links, gains, q, qd, reference, memory, PERIOD)
        aim = reference if held is None else Reference(held, [0.0] * n, [0.0] * n)
        expected = law.commanded(links, gains, q, qd, aim, [], PERIOD)
        np.testing.assert_allclose(found.tau, expected.tau, rtol=1e-12, atol=1e-9)
        memory, last = found.memory, q
        seen = guarded.observed(np.array(memory, float))
        assert seen.contact.tolist() == [float(held is not None)] * n
        assert seen.collision.tolist() == [float(held is not None)]


@given(robots(min_dof=1, max_dof=6, friction=True, tree=False))
@settings(max_examples=8, deadline=None)
def test_the_external_torque_of_joints_in_motion_is_what_friction_leaves(robot):
    """Dry friction and friction by load, in either direction."""
    rng = np.random.default_rng(robot.dof)
    robot = robot.with_parameters({f"{name}.load_friction": 0.2 for name in robot.joint_names})
    observer = control.MomentumObserver(robot, threshold=1.0)
    links, state = mechanism_of(robot), states_of(robot, 2)
    q, qd = state.q.tolist(), (rng.choice([-1.0, 1.0], robot.dof) * rng.uniform(0.5, 2.0, robot.dof)).tolist()
    external = 10.0 * rng.normal(size=robot.dof)
    M = np.array(coordinates.coefficients(links, q)[0], dtype=float)
    tau = coordinates.inverse_dynamics(links, q, qd, state.qdd.tolist())
    qdd = state.qdd + np.linalg.solve(M, external)
    smooth = coordinates.smooth_friction(links, q, qd)
    free = coordinates.inverse_dynamics(links, q, qd, qdd.tolist(), friction=False)
    balance = np.add(free, smooth, dtype=float).tolist()
    found = observer._external(links, balance, tau, smooth, q, qd, qd)
    np.testing.assert_allclose(np.array(found, float), external, atol=1e-8 * (1.0 + np.abs(balance).max()))
