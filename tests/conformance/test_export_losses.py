"""What other programs see in saved files: Pinocchio and MuJoCo compute our torques, but for what ``save`` names."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engines import DATA, Pinocchio

import linkwise as lw
from linkwise.formats.losses import Loss, losses
from linkwise.functions import arrays
from linkwise.functions.table import Setting, function_named
from linkwise.joint_laws import LAWS
from linkwise.joint_laws.plain import plain_friction
from linkwise.model.model import STANDARD_GRAVITY
from linkwise.model.motors import plain_friction_of_motors

FRICTION = ("friction", "coulomb_friction", "viscous_friction")
NO_TORQUE = ("frame", "passive", "limits", "velocity", "effort", "mimic")
TOLERANCE = 1e-9  # relative to the largest torque


def arm(**changes) -> lw.Robot:
    """A random arm whose second joint has these numbers."""
    bare = lw.random_robot(3, 4, joints="RP", friction=False, rotor=False)
    joints = [replace(j, **changes) if j.name == bare.joint_names[1] else j for j in bare.joints]
    return lw.Robot.from_model(bare._with(joints=joints))


def with_law(law) -> lw.Robot:
    if law.name == "coulomb_friction":
        return arm(coulomb_friction=(0.4, 0.7))
    if law.name in ("rotor_inertia", "viscous_friction"):
        return arm(**{law.name: 0.3})
    if law.name == "world_rotor_inertia":
        floating = lw.load("panda", base="floating")
        root = floating.joint_names[0]
        return floating.with_parameters({f"{root}.rotor_inertia": 0.3, f"{root}.world_rotor_inertia": 0.3})
    return arm(terms={parameter.name: 0.2 + 0.1 * k for k, parameter in enumerate(law.parameters)})


def with_motor() -> lw.Robot:
    bare = arm()
    first, second, *_ = bare.joint_names
    motor = lw.Motor("m", {first: 1.0, second: -0.5}, 0.3, 0.7, (0.5, 0.5), {"stiffness": 2.0}, 0.1)
    return bare.with_motors([motor])


def with_joint_type(kind: str) -> lw.Robot:
    bare = lw.random_robot(5, 3, joints="R", friction=False, rotor=False)
    changes = {"type": kind, "pitch": 0.1 if kind == "helical" else 0.0, "limits": lw.Limits()}
    joints = [replace(j, **changes) if j.name == bare.joint_names[1] else j for j in bare.joints]
    return lw.Robot.from_model(bare._with(joints=joints))


ROBOTS = {
    **{name: lambda name=name: lw.load(name) for name in lw.robots()},
    **{law.name: lambda law=law: with_law(law) for law in LAWS},
    "motor": with_motor,
    "gravity": lambda: lw.load("ur10e", gravity=(1.0, 2.0, 3.0)),
    "floating": lambda: lw.load("panda", base="floating"),
    "planar": lambda: lw.load("panda", base="planar"),
    "payload": lambda: lw.load("panda").with_payload(2.0, (0.1, 0.0, 0.05), np.eye(3) * 0.01),
    "ball": lambda: with_joint_type("ball"),
    "helical": lambda: with_joint_type("helical"),
    "continuous": lambda: with_joint_type("continuous"),
    "constraint": lambda: lw.load("two_link").with_constraints([lw.Point("tip", (1.0, 0.0, 0.0))]),
}
FILES = sorted((DATA / "mjcf").glob("*/*.xml"))[::9] + sorted((DATA / "urdf").glob("*.urdf"))[::9]


def torques(robot: lw.Robot, q, qd, qdd) -> np.ndarray:
    row = function_named("inverse_dynamics")
    found = arrays.run_on_arrays(row, Setting(robot), row.default, {"q": q, "qd": qd, "qdd": qdd})
    return next(iter(found.values()))


def as_stated(robot: lw.Robot, lost: list[Loss]) -> lw.Robot:
    """The robot without the terms that are said to be lost, and no others."""
    joints = {joint.name: joint for joint in robot.joints}
    gravity = robot.gravity
    for loss in lost:
        name = loss.where.removeprefix("joint ").strip("'")
        if loss.term == "gravity":
            gravity = STANDARD_GRAVITY
        elif loss.term == "motor":
            robot, motors = robot.with_motors(()), robot.motors
            joints = {joint.name: joint for joint in robot.joints}
            for each in robot.joint_names:
                damping, friction = plain_friction_of_motors(motors, each)
                own = joints[each]
                more = own.coulomb_friction[0] + friction, own.coulomb_friction[1] + friction
                joints[each] = replace(
                    own, viscous_friction=own.viscous_friction + damping, coulomb_friction=more
                )
        elif loss.term == "constraint":
            robot = robot.with_constraints([])
        elif loss.where.startswith("motor") or loss.term in NO_TORQUE:
            continue
        elif loss.term in ("friction", "coulomb_friction") and "becomes" in loss.text:
            damping, friction = plain_friction(joints[name])
            plain = {"viscous_friction": damping, "coulomb_friction": (friction, friction)}
            rest = {k: v for k, v in joints[name].terms.items() if "friction" not in k and "speed" not in k}
            joints[name] = replace(joints[name], **plain, terms=rest)
        else:
            law = next(law for law in LAWS if law.name == loss.term)
            for each in law.settable():
                joints[name] = law.changed(joints[name], each, 0.0)
    return lw.Robot.from_model(robot._with(joints=[joints[j.name] for j in robot.joints], gravity=gravity))


def close(ours, theirs) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * max(1.0, float(np.abs(theirs).max())))


def loaded(source) -> lw.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        if not isinstance(source, Path):
            return ROBOTS[source]()
        try:
            return lw.load(source, mimic="independent")
        except lw.ModelError as error:
            pytest.skip(str(error))


def saved(robot: lw.Robot, target: Path) -> bool:
    """Whether the format can describe the robot; else the error names another format."""
    try:
        robot.save(target)
    except lw.ModelError as error:
        if "save the robot as" not in str(error):
            raise
        return False
    return True


@pytest.mark.parametrize("source", [*ROBOTS, *FILES], ids=lambda source: str(source).replace(str(DATA), ""))
def test_pinocchio_computes_our_torques_but_for_what_is_said_to_be_lost(source, tmp_path):
    pin = pytest.importorskip("pinocchio")
    robot = loaded(source)
    target = tmp_path / "arm.urdf"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not saved(robot, target):
            return
    said = [str(w.message) for w in caught if issubclass(w.category, lw.ExportWarning)]
    lost = losses(robot, ".urdf")
    assert said == [f"{target}, as other programs read it: {loss}" for loss in lost]
    if lost:
        with pytest.raises(lw.ModelError, match="strict"):
            robot.save(tmp_path / "strict.urdf", strict=True)
        assert not (tmp_path / "strict.urdf").exists()
    else:
        robot.save(tmp_path / "strict.urdf", strict=True)
    try:
        model = pin.buildModelFromUrdf(str(target))
    except ValueError:
        assert any(loss.term == "type" for loss in lost)
        return
    assert not any(loss.term == "type" for loss in lost)
    if not robot.dof:
        return
    seen = as_stated(robot.with_mimics(False) if robot.dof != model.nv else robot, lost)
    peer = Pinocchio.of(pin, model, seen)
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = seen.random(rng)
        qd, qdd = rng.normal(size=(2, seen.dof))
        rub = np.array(model.damping) * (peer.rates(q) @ qd) + np.array(model.friction) * np.sign(
            peer.rates(q) @ qd
        )
        close(torques(seen, q, qd, qdd), peer.inverse_dynamics(q, qd, qdd) + peer.rates(q).T @ rub)


@pytest.mark.parametrize(
    "name", [n for n in ROBOTS if n not in ("helical", "gravity_compensation", "constraint")]
)
def test_mujoco_computes_our_torques_but_for_what_is_said_to_be_lost(name, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    from test_mujoco import as_mujoco

    robot = loaded(name)
    target = tmp_path / "arm.xml"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not saved(robot, target):
            return
    lost = losses(robot, ".xml")
    assert len([w for w in caught if w.category is lw.ExportWarning]) == len(lost)
    peer = mujoco.MjModel.from_xml_path(str(target))
    seen = as_stated(robot, [loss for loss in lost if loss.term not in FRICTION])
    peer.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(peer)
    # Coulomb friction is a constraint there: its numbers are compared, and the rest without it
    joints = [j for j in robot.coordinate_joints for _ in range(j.dof)]
    close([plain_friction(j)[1] for j in joints], peer.dof_frictionloss)
    plain = [
        replace(j, coulomb_friction=(0.0, 0.0), viscous_friction=plain_friction(j)[0], terms=springs(j))
        for j in seen.joints
    ]
    seen = lw.Robot.from_model(seen._with(joints=plain))
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = seen.random(rng)
        qd, qdd = rng.normal(size=(2, seen.dof))
        data.qpos[:], turn, bias = as_mujoco(seen, q, qd)
        data.qvel[:], data.qacc[:] = turn @ qd, turn @ qdd + bias
        mujoco.mj_inverse(peer, data)
        close(torques(seen, q, qd, qdd), turn.T @ data.qfrc_inverse)


def springs(joint) -> dict[str, float]:
    """The terms of a joint that are no friction."""
    return {k: v for k, v in joint.terms.items() if not k.endswith(("friction", "speed", "distance"))}


def test_every_law_is_stated_by_name_and_value():
    """A law that a format has no words for is lost, also one that is added later."""
    for law in LAWS:
        if law.name in ("viscous_friction", "coulomb_friction"):
            continue
        robot = with_law(law)
        said = [str(loss) for loss in losses(robot, ".urdf")]
        joint = robot.joint_names[0 if law.name == "world_rotor_inertia" else 1]
        assert any(joint in line and law.parameters[0].text in line for line in said), (law.name, said)
    assert losses(with_law(LAWS[3]), ".toml") == []
