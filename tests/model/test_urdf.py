"""URDF as it is found in the wild: what is read, what is tolerated with a warning, and what is refused."""

import math
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from linkwise.errors import ModelError, ModelWarning
from linkwise.formats.urdf.reader import read_urdf
from linkwise.model import Inertia, Limits, Mimic, Model
from linkwise.model.transform import Transform

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
needs_data = pytest.mark.skipif(not (DATA / "urdf").is_dir(), reason=f"no robot files at {DATA / 'urdf'}")

INERTIA = '<inertia ixx="0.1" ixy="0.01" ixz="0.02" iyy="0.2" iyz="0.03" izz="0.25"/>'
INERTIAL = f'<inertial><origin xyz="0.1 0.2 0.3"/><mass value="2"/>{INERTIA}</inertial>'
LIMIT = '<limit effort="5" velocity="2" lower="-1" upper="1"/>'


def arm(
    *,
    joint: str = '<axis xyz="0 0 1"/>' + LIMIT,
    kind: str = "revolute",
    inertial: str = INERTIAL,
    extra: str = "",
    robot: str = 'name="arm"',
) -> str:
    """A robot of two links and one joint."""
    return (
        f'<robot {robot}>\n<link name="base"/>\n<link name="tip">{inertial}</link>\n'
        f'<joint name="elbow" type="{kind}"><parent link="base"/><child link="tip"/>\n{joint}</joint>\n'
        f"{extra}</robot>"
    )


def read(text: str | bytes, *, quiet: bool = True) -> Model:
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("error")
        return read_urdf(text.encode() if isinstance(text, str) else text, "arm.urdf")


# -- what is read -------------------------------------------------------------------------------------------


def test_a_plain_arm():
    model = read(arm(joint=f'<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0 0 1"/>{LIMIT}'))
    assert (model.name, model.link_names, model.joint_names) == ("arm", ("base", "tip"), ("elbow",))
    joint = model.joints[0]
    assert joint.axis == (0, 0, 1)
    assert joint.limits == Limits(-1, 1, 2, 5)
    assert joint.origin.translation.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(joint.origin.rotation, Transform.from_rpy(rpy=(0.1, 0.2, 0.3)).rotation)
    assert model.links[0].inertia == Inertia()
    assert model.links[1].inertia == Inertia.from_com(2, (0.1, 0.2, 0.3), (0.1, 0.01, 0.02, 0.2, 0.03, 0.25))
    assert model.gravity == (0, 0, -9.81)


def test_a_turned_inertial():
    turned = f'<inertial><origin rpy="0 0 {math.pi / 2}"/><mass value="2"/>{INERTIA}</inertial>'
    assert read(arm(inertial=turned)).links[1].inertia.parameters == pytest.approx(
        (2, 0, 0, 0, 0.2, -0.01, -0.03, 0.1, 0.02, 0.25), abs=1e-15
    )


def test_dynamics_are_friction():
    joint = read(arm(joint=LIMIT + '<dynamics damping="0.5" friction="0.25"/>')).joints[0]
    assert (joint.viscous_friction, joint.coulomb_friction, joint.rotor_inertia) == (0.5, (0.25, 0.25), 0.0)
    joint = read(arm(joint=LIMIT + '<dynamics friction="0.25"/>')).joints[0]
    assert (joint.viscous_friction, joint.coulomb_friction) == (0.0, (0.25, 0.25))


def test_a_mimic_joint_keeps_its_coordinate():
    second = (
        '<link name="finger"/>'
        '<joint name="follower" type="prismatic"><parent link="tip"/><child link="finger"/>'
        f'<mimic joint="elbow" multiplier="-2" offset="0.5"/>{LIMIT}</joint>'
    )
    model = read(arm(extra=second))
    assert model.dof == 2
    assert model.joints[1].mimic == Mimic("elbow", -2.0, 0.5)


@pytest.mark.parametrize("mimic", ['<mimic joint="nobody"/>', '<mimic joint="elbow"/>'])
def test_a_relation_to_nothing_is_dropped(mimic):
    with pytest.warns(ModelWarning, match=r"no other moving joint; the relation is dropped"):
        assert read(arm(joint=LIMIT + mimic), quiet=False).joints[0].mimic is None


def test_defaults_of_missing_elements():
    model = read(arm(joint=LIMIT, inertial=""))
    assert model.joints[0].axis == (1, 0, 0)
    np.testing.assert_array_equal(model.joints[0].origin.matrix, np.eye(4))
    assert model.links[1].inertia.is_zero


@pytest.mark.parametrize(
    "axis", ["0 0 2", "0 3 4", "1 1 1", "1e-200 0 1e-200", "1e300 1e300 0", "0 0 -1e-320", "-0.6 0 0.8"]
)
def test_axes_are_normalised(axis):
    x, y, z = read(arm(joint=f'<axis xyz="{axis}"/>{LIMIT}')).joints[0].axis
    given = np.array([float(v) for v in axis.split()])
    assert math.hypot(x, y, z) == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(
        np.array([x, y, z]), given / np.abs(given).max() / np.linalg.norm(given / np.abs(given).max())
    )


def test_a_unit_axis_keeps_its_digits():
    assert read(arm(joint=f'<axis xyz="0.7071067811865476 0 0.7071067811865476"/>{LIMIT}')).joints[
        0
    ].axis == (
        0.7071067811865476,
        0,
        0.7071067811865476,
    )


@pytest.mark.parametrize(
    ("limit", "kind", "expected"),
    [
        ('<limit effort="5" velocity="2"/>', "revolute", Limits(velocity=2, effort=5)),
        ('<limit effort="5" velocity="2" upper="1"/>', "prismatic", Limits(0, 1, 2, 5)),
        ('<limit effort="5" velocity="2" lower="x"/>', "continuous", Limits(velocity=2, effort=5)),
        ('<limit lower="-1.7976931348623157e+308" upper="3"/>', "revolute", Limits(upper=3)),
        ("", "continuous", Limits()),
    ],
)
def test_limits(limit, kind, expected):
    assert read(arm(joint=limit, kind=kind)).joints[0].limits == expected


def test_a_lower_limit_above_the_upper_is_no_limit():
    with pytest.warns(ModelWarning, match=r'<limit> of <joint name="elbow">: lower 1 is above upper -1'):
        model = read(arm(joint='<limit effort="5" velocity="2" lower="1" upper="-1"/>'), quiet=False)
    assert model.joints[0].limits == Limits(velocity=2, effort=5)


def test_a_missing_limit_is_no_limit():
    with pytest.warns(ModelWarning, match=r"a prismatic joint needs a <limit>"):
        assert read(arm(joint="", kind="prismatic"), quiet=False).joints[0].limits == Limits()


def test_fixed_joints_need_only_their_place():
    junk = '<axis xyz="0 0 0"/><limit lower="?"/><dynamics damping="?"/>'
    model = read(arm(kind="fixed", joint=f'<origin xyz="0 0 1"/>{junk}'))
    assert model.dof == 0
    assert model.joints[0].origin.translation.tolist() == [0, 0, 1]


def test_what_is_not_dynamics_is_passed_over():
    noise = (
        '<material name="m"/><gazebo reference="tip"><mu1>0.2</mu1></gazebo><sensor:camera name="c"/>'
        '<transmission name="t"><joint name="elbow"/><hardwareInterface/></transmission>'
        '<xacro:property name="p" value="${1}"/><xacro:macro name="m"><link name="${p}"/></xacro:macro>'
    )
    looks = (
        '<visual><origin xyz="?"/><geometry><mesh filename="package://no/such.stl"/></geometry></visual>'
        '<collision><geometry><mesh filename="file:///etc/passwd"/><xacro:box/></geometry></collision>'
    )
    model = read(
        arm(inertial=looks + INERTIAL, extra=noise, robot='name="arm" xmlns="urn:x" xmlns:xacro="y"')
    )
    assert model == read(arm())


def test_byte_order_mark_and_comments():
    text = b"\xef\xbb\xbf<?xml version='1.0'?><!-- ${x} -->" + arm(extra="<!-- <link/> -->").encode()
    assert read(text) == read(arm())


def test_quaternions_of_newer_versions():
    turned = f'<origin xyz="1 0 0" quat_xyzw="0 0 2 2"/>{LIMIT}'
    for version in ("1.1", "1.2"):
        model = read(arm(joint=turned, robot=f'name="arm" version="{version}"'))
        np.testing.assert_allclose(
            model.joints[0].origin.rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15
        )
    with pytest.raises(ModelError, match=r'quat_xyzw needs <robot version="1\.1">'):
        read(arm(joint=turned))
    both = f'<origin rpy="0 0 0" quat_xyzw="0 0 2 2"/>{LIMIT}'
    np.testing.assert_array_equal(read(arm(joint=both)).joints[0].origin.rotation, np.eye(3))
    with pytest.raises(ModelError, match=r"both rpy and quat_xyzw"):
        read(arm(joint=both, robot='name="arm" version="1.2"'))


def test_versions():
    assert read(arm(robot='name="arm" version="1.0"')).dof == 1
    with pytest.warns(ModelWarning, match=r"newer than 1\.2"):
        read(arm(robot='name="arm" version="1.3"'), quiet=False)
    for version in ("2.0", "x", ""):
        with pytest.raises(ModelError, match=r"only URDF 1\.0 to 1\.2"):
            read(arm(robot=f'name="arm" version="{version}"'))


def test_a_robot_without_name_is_called_after_its_file():
    for robot in ("", 'name=" "'):
        with pytest.warns(ModelWarning, match=r"called 'arm' after its file"):
            assert read(arm(robot=robot), quiet=False).name == "arm"


def test_a_point_mass():
    with pytest.warns(
        ModelWarning, match=r'<inertial> of <link name="tip">: it has no <inertia>; taken as a point mass'
    ):
        model = read(arm(inertial='<inertial><origin xyz="1 0 0"/><mass value="2"/></inertial>'), quiet=False)
    assert model.links[1].inertia.parameters == (2, 2, 0, 0, 0, 0, 0, 2, 0, 2)


def test_an_empty_inertial():
    with pytest.warns(ModelWarning, match=r"taken as massless"):
        assert read(arm(inertial="<inertial/>"), quiet=False).links[1].inertia.is_zero


def test_massless_with_moments():
    model = read(arm(inertial=f'<inertial><origin xyz="1 2 3"/><mass value="0"/>{INERTIA}</inertial>'))
    assert model.links[1].inertia.parameters == (0, 0, 0, 0, 0.1, 0.01, 0.02, 0.2, 0.03, 0.25)


def test_of_two_equal_elements_the_first_counts():
    with pytest.warns(ModelWarning, match=r"arm\.urdf:5: <origin> of .*: a second <origin> in one <joint>"):
        model = read(arm(joint=f'<origin xyz="1 0 0"/><origin xyz="2 0 0"/>{LIMIT}'), quiet=False)
    assert model.joints[0].origin.translation.tolist() == [1, 0, 0]


# -- what is refused ----------------------------------------------------------------------------------------


def inertial_with(
    mass: str = '<mass value="1"/>', inertia: str = INERTIA, origin: str = ""
) -> dict[str, str]:
    return {"inertial": f"<inertial>{origin}{mass}{inertia}</inertial>"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kind": "universal"},
            r":4: <joint name=\"elbow\">: type 'universal' is not supported; expected one of revolute",
        ),
        ({"kind": "Revolute"}, "'Revolute' is not supported"),
        ({"kind": ""}, "attribute 'type' is empty"),
        ({"joint": '<axis xyz="0 0 0"/>'}, r":5: <axis> of <joint name=\"elbow\">: xyz=\"0 0 0\" is zero"),
        ({"joint": '<axis xyz="0 0"/>'}, "expected 3 numbers, got 2"),
        ({"joint": "<axis/>"}, "<axis> of .*attribute 'xyz' is missing"),
        ({"joint": LIMIT + '<origin rpy="0 0 1 }"/>'}, r"<origin> of .*'}' is not a finite number"),
        ({"joint": LIMIT + '<origin xyz=""/>'}, "'xyz' is empty"),
        (
            {"joint": LIMIT + '<origin xyz="${d} 0 0"/>'},
            r"xyz=\"\$\{d\} 0 0\" is unexpanded xacro; run xacro",
        ),
        (
            {"joint": LIMIT + '<origin quat_xyzw="0 0 0 0"/>', "robot": 'name="a" version="1.2"'},
            "zero and no rotation",
        ),
        ({"joint": LIMIT + '<dynamics damping="nan"/>'}, '<dynamics> of .*damping="nan"'),
        ({"joint": '<limit lower="-1.57." upper="2"/>'}, r"<limit> of .*lower=\"-1\.57\.\""),
        ({"joint": '<limit effort="inf"/>'}, '<limit> of .*effort="inf"'),
        ({"joint": LIMIT + "<mimic/>"}, "<mimic> of .*'joint' is missing"),
        ({"joint": LIMIT + "<xacro:dynamics/>"}, "<xacro:dynamics> of .*unexpanded xacro"),
        (inertial_with(mass='<mass value="-1"/>'), r"<mass> of <link name=\"tip\">: mass -1 is negative"),
        (inertial_with(mass='<mass value="1kg"/>'), r"<mass> of .*value=\"1kg\""),
        (inertial_with(mass="<mass/>"), "<mass> of .*'value' is missing"),
        (inertial_with(mass=""), "<inertial> of .*it has an <inertia> but no <mass>"),
        (inertial_with(inertia='<inertia ixx="1" iyy="1" izz="1"/>'), "<inertia> of .*'ixy' is missing"),
        (inertial_with(inertia="<xacro:cylinder/>"), "<xacro:cylinder> of .*unexpanded xacro"),
        (inertial_with(origin='<origin xyz="1e999 0 0"/>'), '<origin> of <link name="tip">.*too large'),
        ({"inertial": "<xacro:inertial mass='1'/>"}, "<xacro:inertial> of .*unexpanded xacro"),
        ({"extra": "<xacro:include filename='x'/>"}, "<xacro:include>: unexpanded xacro"),
        ({"extra": "<xacro:hand name='left'/>"}, '<xacro:hand name="left">: unexpanded xacro'),
        ({"extra": '<link name="${prefix}hand"/>'}, "unexpanded xacro"),
        ({"extra": "<link/>"}, "<link>: attribute 'name' is missing"),
        ({"extra": '<link name=""/>'}, "'name' is empty"),
        ({"extra": '<link name="tip"/>'}, "two links are named 'tip'"),
        ({"extra": '<link name="alone"/>'}, r"2 roots \(base, alone\)"),
        (
            {"extra": '<joint name="j" type="fixed"><parent link="tip"/></joint>'},
            '<joint name="j">: it has no <child>',
        ),
        (
            {"extra": '<joint name="j" type="fixed"><child link="tip"/></joint>'},
            '<joint name="j">: it has no <parent>',
        ),
        (
            {"extra": '<joint name="j" type="fixed"><parent/><child link="b"/></joint>'},
            "<parent> of .*'link' is missing",
        ),
        ({"extra": '<joint name="j"><parent link="tip"/><child link="b"/></joint>'}, "'type' is missing"),
        (
            {"extra": '<joint name="j" type="fixed"><parent link="tip"/><child link="no"/></joint>'},
            "joint 'j': its child link 'no' does not exist",
        ),
        (
            {"extra": '<joint name="j" type="fixed"><parent link="base"/><child link="tip"/></joint>'},
            "link 'tip' is the child of two joints, 'elbow' and 'j'",
        ),
        (
            {
                "extra": '<link name="c"/>'
                '<joint name="elbow" type="fixed"><parent link="tip"/><child link="c"/></joint>'
            },
            "two joints are named 'elbow'",
        ),
        (
            {"extra": '<joint name="j" type="fixed"><parent link="tip"/><child link="base"/></joint>'},
            "the joints form a cycle",
        ),
    ],
)
def test_errors_name_the_file_the_element_and_the_reason(changes, message):
    with pytest.raises(ModelError, match=rf"(?s)^arm\.urdf.*{message}"):
        read(arm(**changes))


@pytest.mark.parametrize("text", ["<robot name='r'/>"])
def test_a_robot_has_a_link(text):
    with pytest.raises(ModelError, match=r"^arm\.urdf: a robot needs at least one link"):
        read(text)


def test_the_root_is_a_robot():
    with pytest.raises(ModelError, match=r"^arm\.urdf:1: <object name=\"box\">: the root element"):
        read("<object name='box'/>")


# -- the files of the wild ----------------------------------------------------------------------------------

REFUSED = {
    "malformed/manipulator_parameter_identification/KrangBlocksNew.urdf": r":88:7: .*<mass> of line 84",
    "malformed/manipulator_parameter_identification/box.urdf": r":6:3: .*mismatched tag",
    "malformed/pybullet_data/biped2d_pybullet.urdf": r"<limit> of <joint name=\"torso_to_rightleg\">: lower=",
    "malformed/ros_urdf/fail_pr2_desc_bracket.urdf": r"<origin> of <joint name=\"fl_caster_.*\">: rpy=",
    "malformed/ros_urdf/fail_pr2_desc_double.urdf": r"two links are named 'fl_caster_rotation_link'",
    "malformed/ros_urdf/fail_pr2_desc_loop.urdf": r"the joints form a cycle",
    "malformed/ros_urdf/fail_pr2_desc_no_joint2.urdf": r":10:\d+: not well-formed XML",
    "malformed/ros_urdf/fail_pr2_desc_two_trees.urdf": r"its parent link 'base_link' does not exist",
    "malformed/ros_urdf/fail_three_links_one_joint.urdf": r":24:\d+: .*<joint> of line 21 is still open",
}
TOLERATED = {
    "malformed/manipulator_parameter_identification/KrangBlocks.urdf": r"taken as a point mass",
    "malformed/pybullet_data/diff_ring.urdf": r"text before the",
    "pybullet_data/cube_no_rotation.urdf": r"taken as no limit",
    "ros_urdf/no_visual.urdf": r"misspelt",
    "ros_urdf/one_link.urdf": r"misspelt",
    "ros_urdf/singularity.urdf": r"misspelt",
    "ros_urdf/two_links_one_joint.urdf": r"misspelt",
}


def wild() -> list[str]:
    return sorted(str(path.relative_to(DATA / "urdf")) for path in (DATA / "urdf").rglob("*.urdf"))


@needs_data
@pytest.mark.parametrize("name", wild())
def test_files_of_the_wild(name):
    data = (DATA / "urdf" / name).read_bytes()
    if name in REFUSED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            with pytest.raises(ModelError, match=rf"^{Path(name).name}.*{REFUSED[name]}"):
                read_urdf(data, Path(name).name)
    elif name in TOLERATED:
        with pytest.warns(ModelWarning, match=TOLERATED[name]):
            read_urdf(data, Path(name).name)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_urdf(data, Path(name).name)


@needs_data
def test_every_malformed_file_has_an_outcome():
    """kuka_lwr4_gaz is well-formed; its impossible inertias are checked in test_files."""
    outcomes = {*REFUSED, *TOLERATED, "malformed/FloBaRoID/kuka_lwr4_gaz.urdf"}
    assert {name for name in wild() if name.startswith("malformed")} <= outcomes


# -- misspellings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            ('<axis xyz="0 0 1"/>', '<axes xyz="0 0 1"/>'),
            '<axes> of <joint name="elbow">: it is not read; did you mean <axis>?',
        ),
        (("</joint>", '<dynamic damping="1"/></joint>'), "did you mean <dynamics>?"),
        (("inertial>", "Inertial>"), "did you mean <inertial>?"),
        ((INERTIAL, INERTIA), '<inertia> of <link name="tip">: it is not read; did you mean <inertial>?'),
        (('<origin xyz="0.1', '<origin xzy="0.1'), "attribute 'xzy' is not read; did you mean 'xyz'?"),
        (("</robot>", '<Joint name="second"/></robot>'), "did you mean <joint>?"),
        (("</robot>", '<xi:include href="hand.urdf"/></robot>'), "names another file, which is not read"),
        (('velocity="2"', 'velocity="-2"'), "velocity -2 is negative; taken as no limit"),
    ],
)
def test_slips_of_the_pen_are_warnings(change, warning):
    text = arm()
    assert change[0] in text
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(text.replace(*change), quiet=False)
    assert any(warning in str(each.message) for each in caught), [str(each.message) for each in caught]


def test_what_others_read_is_no_slip():
    extra = (
        '<gazebo reference="tip"><axes/></gazebo><transmission name="t"><Joint name="elbow"/></transmission>'
    )
    joint = '<calibration rising="0"/><safety_controller k_velocity="1"/><dynamics spring="1"/>'
    assert read(arm(joint=LIMIT + joint, extra=extra)).dof == 1


def test_a_file_of_macros_says_what_xacro_is(tmp_path):
    """Such files define parts for others; neither they nor files that use them are run."""
    path = tmp_path / "arm_macro.xacro"
    macro = '<xacro:macro name="arm" params="prefix"><link name="${prefix}base"/></xacro:macro>'
    path.write_text(f'<robot xmlns:xacro="http://www.ros.org/wiki/xacro">{macro}</robot>')
    with pytest.raises(ModelError, match=r"macro language of ROS.*xacro FILE > arm\.urdf"):
        read_urdf(path.read_bytes(), path.name)
    path.write_text(f'<robot name="a">{macro}<xacro:arm prefix="${{__import__(1)}}"/></robot>')
    with pytest.raises(ModelError, match=r"unexpanded xacro; run xacro on the file first: xacro FILE"):
        read_urdf(path.read_bytes(), path.name)
