"""MJCF: what has no counterpart in MuJoCo's numbers, and everything that is refused. Numbers:
conformance/test_mujoco."""

import contextlib
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.formats.mjcf import reader as mjcf
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.model import Limits, Mimic

SOLID = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'


def read(body: str, head: str = "", tail: str = ""):
    return read_mjcf(
        f"<mujoco model='arm'>{head}<worldbody>{body}</worldbody>{tail}</mujoco>".encode(), "arm.xml"
    )


def hinge(attributes: str = "", head: str = ""):
    return read(f'<body name="a"><joint name="j" {attributes}/>{SOLID}</body>', head).moving_joints[0]


def test_names():
    model = read(
        f'<body name="a"><joint name="j"/><joint name="k" pos="1 0 0"/>{SOLID}'
        '<site name="a"/><site name="s"/></body>'
    )
    assert model.name == "arm"
    assert model.link_names == ("world", "a_j", "a_k", "a")
    assert model.joint_names == ("j", "k")
    assert [frame.name for frame in model.frames] == ["a_site", "s"]


def test_joint_terms():
    joint = hinge('armature=".1" damping=".2" frictionloss=".3"')
    assert (joint.rotor_inertia, joint.viscous_friction, joint.coulomb_friction) == (0.1, 0.2, (0.3, 0.3))
    off = '<option><flag damper="disable" frictionloss="disable"/></option>'
    joint = hinge('damping=".2" frictionloss=".3"', off)
    assert (joint.viscous_friction, joint.coulomb_friction) == (0.0, (0.0, 0.0))


def test_limits():
    assert hinge('range="-90 180"').limits == Limits(-math.pi / 2, math.pi)
    assert hinge('range="-1 2"', '<compiler angle="radian"/>').limits == Limits(-1.0, 2.0)
    assert hinge('range="-90 180" limited="false"').limits == Limits()
    assert hinge('range="0 90" limited="true"', '<compiler autolimits="false"/>').limits == Limits(
        0.0, math.pi / 2
    )
    assert hinge('type="slide" range="-1 2"').limits == Limits(-1.0, 2.0)
    assert hinge('actuatorfrcrange="-5 5"').limits.effort == 5.0


def test_the_main_class_may_have_another_name():
    assert hinge(head='<default class="top"><joint armature=".2"/></default>').rotor_inertia == 0.2
    assert hinge('class="top"', '<default class="top"><joint armature=".2"/></default>').rotor_inertia == 0.2


TWO = f'<body name="a"><joint name="j" ref="90"/>{SOLID}<body name="b"><joint name="k"/>{SOLID}</body></body>'


def test_a_linear_equality_is_kept_as_mimic_data():
    relation = '<equality><joint joint1="k" joint2="j" polycoef="0.5 2"/></equality>'
    model = read(TWO, tail=relation)
    assert model.moving_joints[1].mimic == Mimic("j", 2.0, 0.5 - 2.0 * math.pi / 2)
    inactive = '<equality><weld body1="a" body2="b" active="false"/></equality>'
    assert read(TWO, tail=inactive).moving_joints[1].mimic is None
    assert (
        read(TWO, head='<option><flag equality="disable"/></option>', tail=relation).moving_joints[1].mimic
        is None
    )


def test_what_does_not_belong_to_the_arm_is_left_out():
    tail = (
        '<actuator><motor joint="j" gear="50"/></actuator><contact><exclude body1="a" body2="b"/></contact>'
        '<sensor><jointpos joint="j"/></sensor><keyframe><key qpos="0 0"/></keyframe><custom/><asset/>'
        '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
    )
    assert read(TWO, tail=tail).dof == 2


MASSLESS = '<body name="a"><joint name="j"/>{}</body>'


@pytest.mark.parametrize(
    "inside",
    [
        "",
        '<geom size=".1" mass="0"/>',
        '<inertial pos="0 0 0" mass="1"/>',
        '<inertial pos="0 0 0" mass="0" diaginertia="1 1 1"/>',
        '<inertial pos="0 0 0" mass="1e-16" diaginertia="1 1 1"/>',
        f'<body name="b"><joint/>{SOLID}</body>',
    ],
)
def test_a_moving_body_without_mass_or_inertia_is_refused(inside):
    with pytest.raises(lw.ModelError, match=r'<body name="a">: it moves and has no mass or no inertia'):
        read(MASSLESS.format(inside))


def test_what_is_fixed_to_a_body_counts_as_its_mass():
    assert read(MASSLESS.format(f'<body name="b">{SOLID}</body>')).dof == 1


def test_repeated_sections_add_up():
    """Later <option>, <flag> and <compiler> elements change what they name and nothing else."""
    head = (
        '<option gravity="1 2 3"/><option timestep=".1"><flag damper="disable"/></option>'
        '<compiler angle="radian"/><option><flag frictionloss="disable"/></option><compiler eulerseq="zyx"/>'
    )
    model = read(joint('damping="3" frictionloss="2" ref="1"'), head)
    (hinge,) = model.moving_joints
    assert model.gravity == (1, 2, 3)
    assert hinge.viscous_friction == 0.0
    assert hinge.coulomb_friction == (0.0, 0.0)
    assert hinge.origin.rotation[0, 0] == pytest.approx(math.cos(1.0))
    off = '<option><flag gravity="disable"/></option><option gravity="1 2 3"/>'
    assert read(joint(""), off).gravity == (0, 0, 0)
    assert read(joint(""), '<option density="1"/><option density="0"/>').dof == 1
    assert read(joint(""), '<compiler settotalmass="1"/><compiler settotalmass="-1"/>').dof == 1


def test_numbers_left_out_at_the_end_are_inherited():
    head = '<default><geom type="box" size="1 2 3"/></default>'
    box = read('<body name="a"><joint/><geom size="2"/></body>', head).links[-1].inertia
    assert box.mass == pytest.approx(1000 * 4 * 4 * 6)


def test_a_range_of_zeros_is_none():
    assert hinge('range="0 0"').limits.lower == -math.inf
    assert hinge('range="2 1"').limits.upper == math.inf
    assert hinge("", '<default><joint range="0 0"/></default>').limits.upper == math.inf


def test_a_site_may_be_given_by_its_ends():
    (site,) = read(
        f'<body name="a"><joint/>{SOLID}<site name="s" type="box" fromto="0 0 1 0 0 3"/></body>'
    ).frames
    assert site.pose.translation.tolist() == [0, 0, 2]


def joint(attributes):
    return f'<body name="a"><joint name="j" {attributes}/>{SOLID}</body>'


REFUSED = [
    (joint('stiffness="3 1"'), "<joint name=\"j\">: stiffness='3 1': only linear springs"),
    (joint('springdamper="0 1"'), "expected two positive numbers"),
    (joint('damping="1 2"'), "only damping linear in the speed"),
    (joint('damping="x"'), "'x' is not a finite number"),
    (joint('axis="0 0 0"'), "axis: the vector has no direction"),
    (joint('axis="0 0"'), "expected 3 numbers, got 2"),
    (joint('range="1 2 3"'), "expected 2 numbers, got 3"),
    (joint('limited="true"'), "attribute 'range' is missing"),
    (joint('limited="maybe"'), "expected one of true, false, auto"),
    (joint('limited="true" range="2 1"'), "the lower one first"),
    (joint('limited="true" range="0 0"'), "the lower one first"),
    (joint('type="ball" range="-1 30"'), "the first number is 0 for a ball joint"),
    (f'<body name="a"><joint type="ball"/><joint/>{SOLID}</body>', "followed by another rotation"),
    (f'<body name="a"><freejoint/><joint/>{SOLID}</body>', "7 degrees of freedom; a body can have 6"),
    (f'<body name="a">{"<joint/>" * 7}{SOLID}</body>', "7 degrees of freedom"),
    (joint('group="1.5"'), "'1.5' is not a whole number"),
    (joint('dampng="1"'), "unknown attribute 'dampng'; did you mean 'damping'?"),
    (joint('class="nowhere"'), "no default class 'nowhere'"),
    (joint('armature="-1"'), "rotor inertia -1 is negative"),
    (joint('armature="nan"'), "is not a finite number"),
    (
        f'<body name="a" gravcomp="1"><joint actuatorgravcomp="true"/><joint axis="1 0 0"/>{SOLID}</body>',
        '<body name="a">: gravcomp=',
    ),
    (
        f'<body name="a" quat="1 0 0 0" euler="0 0 0"><joint/>{SOLID}</body>',
        "'quat' and 'euler' exclude each other",
    ),
    (f'<body name="a" quat="0 0 0 0"><joint/>{SOLID}</body>', "all four numbers are zero"),
    (f'<body name="a" position="0 0 0"><joint/>{SOLID}</body>', "unknown attribute 'position'"),
    (f'<body name="a"><joint/><plugin plugin="x"/>{SOLID}</body>', "plugins are not supported"),
    (f'<body name="a"><joint/>{SOLID}{SOLID}</body>', "<body> has 2 of them; at most one is allowed"),
    (f'<body name="a"><joint/>{SOLID}<bdy/></body>', "unknown element in <body>; did you mean 'body'?"),
    (
        f'<body name="a"><joint/>{SOLID}</body><body name="a"><joint/>{SOLID}</body>',
        "the body of line 1 has this name already",
    ),
    (
        '<body name="a"><joint/><geom type="mesh" mesh="m"/></body>',
        "<geom> of <body name=\"a\">: no mesh 'm'; the file has none",
    ),
    ('<body name="a"><joint/><geom type="box" size="1 1"/></body>', "a box needs 3 numbers, got 2"),
    ('<body name="a"><joint/><geom size="-1"/></body>', "expected positive numbers"),
    ('<body name="a"><geom size="1" mass="-1"/></body>', "mass='-1': it cannot be negative"),
    ('<geom size="1" density="-1"/>', "density='-1': it cannot be negative"),
    ('<body name="a"><joint/><inertial mass="1" diaginertia="1 1 1"/></body>', "attribute 'pos' is missing"),
    (
        '<body name="a"><joint/><inertial pos="0 0 0" diaginertia="1 1 1"/></body>',
        "attribute 'mass' is missing",
    ),
    (
        '<body name="a"><joint/><inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/></body>',
        "mass -1 is negative",
    ),
    (
        '<body name="a"><joint/>'
        '<inertial pos="0 0 0" mass="1" fullinertia="1 1 1 0 0 0" quat="1 0 0 0"/></body>',
        "fullinertia excludes",
    ),
    ("<joint/>", "the world has no joints"),
    ('<include file="other.xml"/>', "<include>: file 'other.xml' cannot be read: No such file"),
    ('<include file="/etc/passwd"/>', "expected a path relative to the folder"),
    ('<include file="../other.xml"/>', "lies outside the folder of the main file"),
    ('<replicate count="0"/>', "expected a positive number of copies"),
    ('<replicate count="2" number="3"/>', "unknown attribute 'number'"),
    (
        f'<body name="a"><joint/>{SOLID}<body name="b"><freejoint/>{SOLID}</body></body>',
        "a free joint must be the only",
    ),
    ('<body name="a"><flexcomp/></body>', "<flexcomp> of"),
]


@pytest.mark.parametrize(("body", "expected"), REFUSED)
def test_refused_in_a_body(body, expected):
    with pytest.raises(lw.ModelError) as error:
        read(body)
    assert str(error.value).startswith("arm.xml")
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        ('<compiler coordinate="global"/>', "", "global coordinates"),
        ('<compiler angle="degrees"/>', "", "angle='degrees': expected one of degree, radian"),
        ('<compiler eulerseq="xy"/>', "", "expected three of the letters"),
        ('<option density="-1"/>', "", "density='-1': it cannot be negative"),
        ('<option density="1"/><compiler fusestatic="true"/>', "", "fusestatic in a fluid"),
        ('<option><flag gravity="off"/></option>', "", "expected one of enable, disable"),
        ("<optin/>", "", "<optin>: unknown element in <mujoco>; did you mean 'option'?"),
        ('<option gravty="0 0 0"/>', "", "<option>: unknown attribute 'gravty'; did you mean 'gravity'?"),
        ('<option><flag gravty="disable"/></option>', "", "<flag>: unknown attribute 'gravty'"),
        (
            '<compiler autolimits="false"/><default><joint range="1 2"/></default>',
            "",
            "range without limited, which is needed where the <compiler> has autolimits='false'",
        ),
        ("<option><flag/><flag/></option>", "", "<option> has 2 of them; at most one is allowed"),
        ('<compiler angel="radian"/>', "", "unknown attribute 'angel'; did you mean 'angle'?"),
        ('<default><geom densty="1"/></default>', "", "unknown attribute 'densty'; did you mean 'density'?"),
        ("<default><joint/><joint/></default>", "", "<default> has 2 of them"),
        ('<default><default class="x"/><default class="x"/></default>', "", "a second default class 'x'"),
        ('<default><geom contype="x"/></default>', "", "'x' is not a finite number"),
        ("", '<sensor><jointpos jont="j"/></sensor>', "unknown attribute 'jont'; did you mean 'joint'?"),
        ("", '<actuator><motor joint="j" class="x"/></actuator>', "no default class 'x'"),
        (
            "",
            '<equality><connect body1="a" body2="nowhere" anchor="0 0 0"/></equality>',
            "no body 'nowhere'",
        ),
        ("", '<equality><joint joint1="k" joint2="x"/></equality>', "no joint 'x'"),
        ("", '<equality><joint joint1="k" joint2="j" polycoef="0 1 2"/></equality>', "only linear relations"),
        (
            "",
            '<tendon><fixed name="t" stiffness="1" springlength="0 1"/></tendon>',
            "<fixed name=\"t\">: springlength='0 1'",
        ),
        (
            '<default><tendon armature="1"/></default>',
            '<tendon><spatial name="t"/></tendon>',
            "armature='1' of such a tendon",
        ),
        ("", '<actuator><motor name="m" joint="j" armature="1"/></actuator>', '<motor name="m">: armature'),
        (
            '<default><general damping="1"/></default>',
            '<actuator><motor joint="j"/></actuator>',
            "damping of an actuator",
        ),
        ("", "<deformable><flex/></deformable>", "deformable bodies"),
        ("", '<include file="x"/>', "cannot be read"),
    ],
)
def test_refused_elsewhere(head, tail, expected):
    with pytest.raises(lw.ModelError) as error:
        read(TWO, head, tail)
    assert expected in str(error.value)


def test_a_free_body_whose_frame_mujoco_would_move_is_refused():
    for head, joint in (
        ('<compiler alignfree="true"/>', "<freejoint/>"),
        ('<compiler alignfree="true"/>', '<joint type="free"/>'),
        ("", '<freejoint align="true"/>'),
    ):
        with pytest.raises(lw.ModelError, match=r"<(free)?joint> of .*align: MuJoCo would move"):
            read(f'<body name="a">{joint}<inertial pos="1 0 0" mass="1" diaginertia="1 1 1"/></body>', head)
        inner = f'<body name="b"><joint/>{SOLID}</body>'
        assert read(f'<body name="a">{joint}{SOLID}{inner}</body>', head).dof == 7
    assert (
        read(f'<body name="a"><freejoint align="false"/>{SOLID}</body>', '<compiler alignfree="true"/>').dof
        == 6
    )


def test_not_mjcf():
    with pytest.raises(
        lw.ModelError, match=r"arm.xml:1: <robot.*the root element of an MJCF file is <mujoco>"
    ):
        read_mjcf(b"<robot name='x'/>", "arm.xml")
    with pytest.raises(lw.ModelError, match="document type"):
        read_mjcf(b'<!DOCTYPE m [<!ENTITY x "y">]><mujoco/>', "arm.xml")


WHOLE = f"""<mujoco model="arm"><compiler angle="radian" eulerseq="zyx"/><option gravity="0 0 -9.8"/>
<default><joint damping="1"/><default class="x"><geom type="box" size="1 1 1"/></default></default>
<worldbody><body name="a" pos="0 0 1" euler="0.1 0.2 0.3" childclass="x">
<joint name="j" axis="1 0 1" ref="0.1"/><joint name="k" type="slide" range="-1 1"/>
<geom density="100" quat="1 0 0 1"/><site name="s" zaxis="1 0 0"/>
<frame pos="1 0 0"><body name="b"><joint name="l" pos="0 0 .1" armature=".1"/>{SOLID}</body></frame></body>
</worldbody><equality><joint joint1="j" joint2="k" polycoef="0 2"/></equality>
<tendon><fixed name="t"/></tendon></mujoco>"""


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_in_words(data):
    """Cut something out, or put something else there: never another exception."""
    whole = WHOLE.encode()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 40, len(whole))))
    filling = data.draw(
        st.sampled_from([b"", b"0", b"-1", b"1e999", b"nan", b"[", b'"', b"<", b"x", b"\xff", b"\n"])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        with contextlib.suppress(lw.ModelError):
            read_mjcf(whole[:start] + filling + whole[end:], "arm")


def test_what_is_wrong_with_an_attached_model_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(mjcf, "MOST_ATTACHED", 20)
    text = (
        '<mujoco><asset><model name="m" file="{file}"/></asset><worldbody><body name="a"><joint/>'
        '<attach model="{model}" body="{body}" prefix="p"/></body></worldbody></mujoco>'
    )
    (tmp_path / "robot").mkdir()
    inner = "<mujoco><worldbody><body name='b'><joint/><geom size='.1'/></body></worldbody></mujoco>"
    for place in ("kid.xml", "robot/kid.xml"):
        (tmp_path / place).write_text(inner)
    main = tmp_path / "robot" / "main.xml"
    copies = "".join(f'<attach model="m" body="b" prefix="{k}"/>' for k in range(21))
    (tmp_path / "robot" / "many.xml").write_text(
        '<mujoco><asset><model name="m" file="kid.xml"/></asset>'
        f'<worldbody><body name="b">{copies}</body></worldbody></mujoco>'
    )
    for names, message in (
        ({"file": "kid.xml", "model": "n", "body": "b"}, "no <model> 'n'"),
        ({"file": "kid.xml", "model": "m", "body": "c"}, "no body 'c' in .*kid.xml"),
        ({"file": "none.xml", "model": "m", "body": "b"}, "file 'none.xml' cannot be read"),
        ({"file": "../kid.xml", "model": "m", "body": "b"}, "outside the folder"),
        ({"file": "main.xml", "model": "m", "body": "a"}, "more than 10 times"),
        ({"file": "kid.xml", "model": "m", "body": "b"}, "it moves and has no mass"),
        ({"file": "many.xml", "model": "m", "body": "b"}, "more than 20 models are attached"),
    ):
        main.write_text(text.format(**names))
        with pytest.raises(lw.ModelError, match=message):
            lw.load(main)


THREE = (
    f'<body name="a"><joint name="i"/>{SOLID}<body name="b"><joint name="j" axis="1 0 0"/>{SOLID}'
    f'<body name="c"><joint name="k" axis="0 1 0"/>{SOLID}</body></body></body><body name="still"/>'
)


def test_a_joint_that_stands_first_in_two_equalities():
    pairs = (("j", ".1 2"), ("k", ".2 4"))
    equality = "".join(f'<joint joint1="i" joint2="{other}" polycoef="{poly}"/>' for other, poly in pairs)
    equality = f"<equality>{equality}</equality>"
    robot = read(THREE, "", equality).with_coupled_mimics()
    assert robot.joint_names == ("j",)
    i, _, k = robot.followed
    assert (i.multiplier, k.multiplier) == (2.0, 0.5)
    assert k.offset == pytest.approx((0.1 - 0.2) / 4)
    twice = '<equality><joint joint1="i" joint2="j"/><joint joint1="i" joint2="j"/></equality>'
    with pytest.raises(lw.ModelError, match="joint 'i' follows itself"):
        read(THREE, "", twice).with_coupled_mimics()


def test_what_holds_parts_that_cannot_move_is_left_out():
    equality = '<equality><weld body1="still"/><connect body1="a" body2="c" anchor="0 0 0"/></equality>'
    assert len(read(THREE, "", equality).constraints) == 1


def test_a_joint_that_is_held_still_is_as_good_as_locked():
    model = read(THREE, "", '<equality><joint joint1="k" polycoef=".3"/></equality>')
    robot = lw.Robot.from_model(model)
    held, locked = robot.with_coupled_mimics(), robot.lock({"k": 0.3})
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 2))
    assert held.joint_names == locked.joint_names == ("i", "j")
    tau = locked.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(held.inverse_dynamics(q, qd, qdd), tau, rtol=1e-12)
    np.testing.assert_allclose(held.forward_dynamics(q, qd, tau), qdd, rtol=1e-10)
    with pytest.raises(lw.ModelError, match="holds joint 'i' still"):
        read(f'<body><joint name="i"/>{SOLID}</body>', "", '<equality><joint joint1="i"/></equality>')


def test_constraints_between_sites_that_share_their_names_with_bodies():
    body = (
        f'<body name="a"><joint name="i"/>{SOLID}<site name="b" pos="1 0 0"/></body>'
        f'<body name="b"><joint name="j" axis="1 0 0"/>{SOLID}<site name="s" pos="0 1 0"/></body>'
    )
    (held,) = read(body, "", '<equality><connect site1="b" site2="s"/></equality>').constraints
    assert [frame for frame, _ in held.ends()] == ["b_site", "s"]
    with pytest.raises(lw.ModelError, match="no site 'a'"):
        read(body, "", '<equality><weld site1="a" site2="s"/></equality>')
