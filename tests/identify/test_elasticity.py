"""Elastic joints on simulated arms with springs: stiffness found, rigid joints not, resonances in residuals."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise import identify
from linkwise.cli import main
from linkwise.control import Gains, GravityPD
from linkwise.identify import IdentificationError, Log, elastic_joints, elasticity, resonances
from linkwise.motion import FourierSeries
from linkwise.simulate import simulate

pytest.importorskip("clarabel")

SECONDS = 8.0
SPRINGS = {
    "joint1": lw.Elastic(2000.0, damping=0.05, motor_inertia=0.5),
    "joint2": lw.Elastic(800.0, damping=0.02, motor_inertia=0.2),
}
FRICTION = {"joint1.viscous_friction": 0.4, "joint1.coulomb_friction": 0.6, "joint2.coulomb_friction": 0.3}
KP, KD = np.array([3000.0, 800.0]), np.array([120.0, 25.0])


@pytest.fixture(scope="module")
def recorded(arm) -> tuple[Log, np.ndarray]:
    """(log with positions of the motors, positions of the links) of the elastic arm."""
    elastic = arm.with_parameters(FRICTION).with_elastic_joints(SPRINGS)
    sine, cosine = np.random.default_rng(1).normal(size=(2, 5, 2)) * 0.5 / np.arange(1, 6)[:, None]
    wide = [np.insert(x, [1, 2], 0.0, axis=1) for x in (sine, cosine)]
    law = GravityPD(elastic, Gains(*(np.insert(x, [1, 2], 0.0) for x in (KP, KD))), torque_limits=False)
    motion = FourierSeries(np.zeros(4), *wide, SECONDS)
    run = simulate(elastic, law, motion, duration=SECONDS, step=5e-4, every=4)
    rng = np.random.default_rng(0)
    motors, tau = run.q[:, [0, 2]], run.tau[:, [0, 2]]
    tau = tau + 0.02 * np.sqrt((tau**2).mean(axis=0)) * rng.normal(size=tau.shape)
    noise = 2e-5 * rng.normal(size=(2, *motors.shape))
    return Log(run.t, motors + noise[0], tau, name="elastic"), motors + run.q[:, [1, 3]] + noise[1]


@pytest.fixture(scope="module")
def found(arm, recorded):
    return elastic_joints(arm, *recorded)


def test_stiffness_is_found_by_two_regressions(found):
    for joint in found.joints:
        true = SPRINGS[joint.name]
        assert joint.elastic
        assert joint.lower < true.stiffness < joint.upper < 1.1 * joint.lower
        assert joint.by_torque <= joint.stiffness <= joint.by_deflection < 1.03 * joint.by_torque
        assert joint.motor_inertia == pytest.approx(true.motor_inertia, rel=0.1)
    assert "joint1 is elastic" in found.words()[0]


def test_the_links_need_the_torques_of_the_springs(arm, found, recorded):
    """A third way: what the known links need is what the springs carry."""
    log, links = recorded
    signals = identify.condition(replace(log, q=links))
    motors = identify.condition(log, cutoff=signals.cutoff)
    needed = signals.filtered(arm.inverse_dynamics(signals.q, signals.qd, signals.qdd))
    deflection = signals.filtered(motors.q - signals.q)
    for k, joint in enumerate(found.joints):
        slope = np.polyfit(deflection[:, k], needed[:, k], 1)[0]
        assert slope == pytest.approx(joint.stiffness, rel=0.05)


def test_the_found_springs_make_an_elastic_robot(found):
    robot = found.with_springs()
    stiffness = {pair.motor.name: pair.stiffness for pair in robot.elastic_joints}
    assert stiffness == pytest.approx({name: each.stiffness for name, each in SPRINGS.items()}, rel=0.05)


def test_rigid_joints_have_a_bound(arm, recorded):
    log, _ = recorded
    again = log.q + 3e-5 * np.random.default_rng(5).normal(size=log.q.shape)
    found = elastic_joints(arm, log, again)
    assert not found.elastic
    assert all(1e5 < joint.lower < 1e8 for joint in found.joints)
    assert "stiffer than" in found.words()[0]
    same = elastic_joints(arm, log, log.q)
    assert "are the same" in same.words()[0]


def test_torques_behind_the_gears(arm, recorded, found):
    log, links = recorded
    carried = 2000.0 * (log.q - links)
    behind = elastic_joints(arm, replace(log, tau=carried, sensed="joint"), links)
    assert [joint.stiffness for joint in behind.joints] == pytest.approx([2000.0, 2000.0], rel=0.01)


def test_a_resonance_is_seen_in_what_a_rigid_model_leaves(arm, recorded):
    log, _ = recorded
    rigid = identify.identify(arm, log, friction="coulomb")
    (seen,) = resonances(rigid.robot, rigid.validation)
    q = np.median(log.q, axis=0)
    swings = np.linalg.eigvals(np.linalg.solve(arm.mass_matrix(q), np.diag([2000.0, 800.0])))
    assert seen.frequency == pytest.approx(np.sqrt(swings.min()) / (2 * np.pi), rel=0.25)
    assert seen.stiffness < SPRINGS[seen.name].stiffness  # the other joint gives way as well
    j = arm.joint_names.index(seen.name)
    swinging = rigid.robot.mass_matrix(q)[j, j] - rigid.robot.coordinate_joints[j].rotor_inertia
    assert seen.stiffness == pytest.approx((2 * np.pi * seen.frequency) ** 2 * swinging)
    assert "oscillates at" in seen.words()


def test_a_rigid_arm_has_none(arm, record):
    found = identify.identify(arm, record(seed=2, noise=0.02), friction="coulomb")
    assert resonances(found.robot, found.validation) == []


def test_by_command(arm, recorded, tmp_path, capsys):
    log, links = recorded
    path = tmp_path / "log.csv"
    columns, header = np.column_stack([log.t, log.q, log.tau, links]), "t,q1,q2,tau1,tau2,link1,link2"
    np.savetxt(path, columns, delimiter=",", header=header, comments="")
    assert main(["elastic", "two_link", str(path), "--link-positions", "link{}"]) == 0
    assert "joint2 is elastic" in capsys.readouterr().out
    assert main(["elastic", "two_link", str(path)]) == 0
    assert "oscillates at" in capsys.readouterr().out
    assert main(["elastic", "two_link", str(path), "--link-positions", "nothing{}"]) == 2
    assert "nothing" in capsys.readouterr().err


def test_positions_of_another_shape_are_refused(arm, recorded):
    with pytest.raises(IdentificationError, match="positions of the links"):
        elastic_joints(arm, recorded[0], recorded[1][:-1])


def test_spectra_are_taken_at_even_times():
    """Even times leave samples as they are; others are interpolated."""
    even = np.linspace(0.0, 1.0, 201)
    uneven = even + 0.3 / 200.0 * np.sin(7.0 * np.pi * even)

    def waves(t):
        return np.stack([np.sin(9.0 * t), np.cos(4.0 * t)], axis=1)

    rough = waves(even) + np.random.default_rng(0).normal(size=(201, 2))
    assert (elasticity._evenly(even, rough) == rough).all()
    assert np.abs(waves(uneven) - waves(even)).max() > 5e-3
    np.testing.assert_allclose(elasticity._evenly(uneven, waves(uneven)), waves(even), atol=1e-5)
