"""A robot as data: order, frames, lumping, and the ways to a new robot."""

import math
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, UnknownNameError
from linkwise.model import Frame, Inertia, Joint, Limits, Link, Mimic, Model, Transform


def body(mass: float, x: float = 0.0) -> Inertia:
    return Inertia.from_com(mass, (x, 0, 0), (0.1, 0.2, 0.25))


def hand() -> Model:
    """A shoulder, then a wrist that carries a fixed flange with a camera and, on a second branch, a slide."""
    return Model(
        "hand",
        [
            Link("base", body(9)),
            Link("arm", body(2, 0.5)),
            Link("palm", body(1, 0.1)),
            Link("flange", body(0.5)),
            Link("slide", body(0.3)),
        ],
        [
            Joint(
                "grip", "prismatic", "palm", "slide", Transform.from_rpy((0, 0, 0.2)), axis=(1.0, 0.0, 0.0)
            ),
            Joint(
                "wrist",
                "revolute",
                "arm",
                "palm",
                Transform.from_rpy((1, 0, 0)),
                mimic=Mimic("shoulder", 2.0),
            ),
            Joint("bolts", "fixed", "palm", "flange", Transform.from_rpy((0, 0, 0.1), (0, 0, math.pi / 2))),
            Joint(
                "shoulder",
                "continuous",
                "base",
                "arm",
                axis=(0.0, 1.0, 0.0),
                rotor_inertia=0.4,
                coulomb_friction=(1.0, 1.0),
            ),
        ],
        frames=[Frame("camera", "flange", Transform.from_rpy((0.3, 0, 0)))],
    )


def test_parents_come_before_children():
    model = hand()
    assert model.base == "base"
    assert model.joint_names == ("shoulder", "wrist", "grip")
    assert model.dof == 3
    assert model.link_names == ("base", "arm", "palm", "flange", "slide")
    assert model.frame_names == (*model.link_names, "camera")


def test_leaves_and_the_default_frame():
    with pytest.raises(UnknownNameError, match=r"hand has 2 leaves; name the frame: one of flange, slide"):
        hand().default_frame()
    chain = Model("c", [Link("a"), Link("b")], [Joint("j", "revolute", "a", "b")])
    assert chain.default_frame() == "b"


def test_frames_are_found_behind_fixed_joints():
    number, pose = hand().locate("camera")
    assert number == 1
    np.testing.assert_allclose(pose.translation, [0, 0.3, 0.1], atol=1e-15)
    assert hand().locate("base")[0] == -1
    with pytest.raises(UnknownNameError, match=r"hand has no frame 'camra'; did you mean 'camera'\?"):
        hand().locate("camra")


def test_fixed_links_are_lumped():
    arm, palm, slide = hand().bodies()
    assert arm == body(2, 0.5)
    assert slide == body(0.3)
    assert palm.mass == 1.5
    np.testing.assert_allclose(palm.first_moment, [0.1, 0, 0.05], atol=1e-15)
    np.testing.assert_allclose(
        np.diag(palm.matrix_about_origin), [0.3 + 0.005, 0.3 + 0.01 + 0.005, 0.5 + 0.01]
    )


def test_a_robot_cannot_be_changed():
    model = hand()
    with pytest.raises(AttributeError, match="robots are immutable"):
        model.gravity = (0, 0, 0)
    with pytest.raises(AttributeError, match="robots are immutable"):
        del model.name


def test_equality_hash_and_pickle():
    model = hand()
    assert model == hand()
    assert hash(model) == hash(hand())
    assert pickle.loads(pickle.dumps(model)) == model
    assert model != model.with_gravity((0, 0, -1))
    assert model.with_gravity((0, 0, -1)).gravity == (0, 0, -1)


def test_lock():
    model = hand().lock({"shoulder": math.pi / 2})
    assert model.joint_names == ("wrist", "grip")
    assert model.carrier("arm")[0] == -1
    np.testing.assert_allclose(model.carrier("arm")[1].rotation @ [1, 0, 0], [0, 0, -1], atol=1e-15)
    assert hand().dof == 3
    with pytest.raises(UnknownNameError, match=r"no moving joint 'sholder'; did you mean 'shoulder'\?"):
        hand().lock({"sholder": 0})
    for position in (math.nan, math.inf):
        with pytest.raises(ModelError, match=r"lock: position of joint 'wrist': expected a .*number"):
            hand().lock({"wrist": position})


def test_a_joint_follows_one_other():
    arm = lw.load("panda")
    first, second, third, *_ = arm.joint_names
    twice = [lw.Coupling(third, first, 0.5), lw.Coupling(third, second, 0.5)]
    with pytest.raises(ModelError, match=f"'{third}' would follow both '{first}' and '{second}'"):
        arm.with_constraints(twice)
    coupled = arm.with_constraints(twice[:1])
    assert coupled.with_constraints(()).joint_names == coupled.joint_names  # followers go on following


def test_motion_of_a_joint():
    slide = next(joint for joint in hand().joints if joint.name == "grip")
    np.testing.assert_allclose(slide.motion(0.5).translation, [0.5, 0, 0.2])
    turn = Joint("j", "revolute", "a", "b", Transform.from_rpy((1, 0, 0)), axis=(0.0, 0.0, 1.0))
    np.testing.assert_allclose(turn.motion(math.pi / 2).matrix @ [1, 0, 0, 1], [1, 1, 0, 1])
    assert turn.limits == Limits()


def test_payload():
    loaded = hand().with_payload(2.0, (0.1, 0, 0), (0.01, 0.01, 0.01), frame="camera")
    before, after = hand().bodies()[1], loaded.bodies()[1]
    assert after.mass == before.mass + 2
    # the camera is at (0, 0.3, 0.1) and its x is the palm's y
    np.testing.assert_allclose(np.array(after.first_moment) - before.first_moment, [0, 0.8, 0.2], atol=1e-15)
    assert hand().with_payload(2.0, frame="base") == hand()


def test_parameters_and_labels():
    model = hand()
    labels = model.parameter_labels
    values = dict(zip(labels, model.parameters, strict=True))
    assert labels[:4] == ("arm.m", "arm.hx", "arm.hy", "arm.hz")
    assert values["palm.m"] == 1.5
    assert values["shoulder.rotor_inertia"] == 0.4
    assert values["shoulder.coulomb_friction"] == 1.0
    again = model.with_parameters(model.parameters * 2)
    np.testing.assert_array_equal(again.parameters, model.parameters * 2)
    assert model.with_parameters(model.parameters) == model


def test_some_parameters_by_label():
    model = hand().with_parameters({"slide.m": 3.0, "shoulder.viscous_friction": 0.5})
    values = dict(zip(model.parameter_labels, model.parameters, strict=True))
    assert (values["slide.m"], values["shoulder.viscous_friction"], values["arm.m"]) == (3.0, 0.5, 2.0)
    with pytest.raises(UnknownNameError, match=r"no parameter 'slide\.mass'; did you mean"):
        hand().with_parameters({"slide.mass": 3.0})
    with pytest.raises(ModelError, match=r"with_parameters: expected shape \(39,\), got \(3,\)"):
        hand().with_parameters([1, 2, 3])


def test_friction_by_direction():
    model = hand().with_parameters({"shoulder.coulomb_friction_forward": 2.0})
    assert model.asymmetric_friction
    shoulder = model.moving_joints[0]
    assert shoulder.coulomb_friction == (2.0, 1.0)
    assert "shoulder.coulomb_friction_backward" in model.parameter_labels
    same = model.with_parameters({"shoulder.coulomb_friction": 3.0})
    assert same.moving_joints[0].coulomb_friction == (3.0, 3.0)
