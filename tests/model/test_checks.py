"""What a robot must satisfy before anything is computed with it."""

import math
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LinkwiseError, ModelError, ModelWarning
from linkwise.model import Frame, Inertia, Joint, Limits, Link, Mimic, Model, Transform
from linkwise.model.checks import check_physics
from linkwise.model.contacts import Contact, Ground, contact_rows

BODY = Inertia.from_com(1, (0, 0, 0), (1, 1, 1))


def joint(name="j", parent="a", child="b", kind="revolute", **more) -> Joint:
    return Joint(name, kind, parent, child, **more)


def links(*names: str) -> list[Link]:
    return [Link(name, BODY) for name in names]


@pytest.mark.parametrize(
    ("names", "joints", "message"),
    [
        ("", [], "at least one link"),
        ("aa", [], "two links are named 'a'"),
        ("abc", [joint(), joint(child="c")], "two joints are named 'j'"),
        (
            "ab",
            [joint(kind="universal")],
            "joint 'j': unknown or unsupported type 'universal'; expected one of revolute",
        ),
        ("a", [joint()], "joint 'j': its child link 'b' does not exist"),
        ("b", [joint()], "joint 'j': its parent link 'a' does not exist"),
        ("ab", [joint(), joint("k")], "link 'b' is the child of two joints, 'j' and 'k'"),
        ("ab", [joint(), joint("k", "b", "a")], "the joints form a cycle"),
        ("a", [joint(child="a")], "the joints form a cycle"),
        (
            "abcd",
            [joint(), joint("k", "c", "d"), joint("l", "d", "c")],
            r"the joints form a cycle \(c → d, d → c\)",
        ),
        ("abc", [joint()], r"2 roots \(a, c\)"),
    ],
)
def test_trees(names, joints, message):
    with pytest.raises(ModelError, match=message) as caught:
        Model("r", links(*names), joints)
    assert isinstance(caught.value, LinkwiseError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axis": (0.0, 0.0, 2.0)}, "joint 'j': axis .* is not a unit vector"),
        ({"axis": (0.0, 0.0, 0.0)}, "joint 'j': axis .* is not a unit vector"),
        ({"axis": (math.nan, 0.0, 0.0)}, "joint 'j': axis .* is not a unit vector"),
        ({"origin": Transform(np.eye(3), np.array([0, math.nan, 0]))}, "joint 'j': its origin is not finite"),
        ({"origin": Transform(2 * np.eye(3), np.zeros(3))}, "joint 'j': its origin has no rotation matrix"),
        (
            {"origin": Transform(np.diag([1, 1, -1]), np.zeros(3))},
            "joint 'j': its origin has no rotation matrix",
        ),
        ({"rotor_inertia": -1.0}, "joint 'j': rotor inertia -1 is negative"),
        ({"rotor_inertia": math.inf}, "joint 'j': rotor inertia inf is not finite"),
        ({"viscous_friction": math.nan}, "joint 'j': viscous friction nan is not finite"),
        ({"coulomb_friction": (0.0, math.nan)}, "joint 'j': Coulomb friction nan is not finite"),
        ({"limits": Limits(lower=math.nan)}, "joint 'j': a limit is NaN"),
        ({"mimic": Mimic("k", math.inf)}, "joint 'j': its mimic relation is not finite"),
    ],
)
def test_numbers_of_joints(changes, message):
    with pytest.raises(ModelError, match=message):
        Model("r", links(*"ab"), [joint(**changes)])


def test_a_number_is_the_friction_of_both_directions():
    assert Joint("j", "revolute", "a", "b", coulomb_friction=0.1).coulomb_friction == (0.1, 0.1)
    assert Joint("j", "revolute", "a", "b", coulomb_friction=np.array([0.1, 0.2])).coulomb_friction == (
        0.1,
        0.2,
    )
    for wrong in ((0.1,), (0.1, 0.2, 0.3), "ab", None, True):
        with pytest.raises(ModelError, match="joint 'j': coulomb_friction: expected a number, or two"):
            Joint("j", "revolute", "a", "b", coulomb_friction=wrong)


def test_rows_of_a_contact_problem_are_those_of_joints_that_rub_or_stop():
    robot = lw.random_robot(3, 4, joints="R").with_contacts([Contact("link4"), Ground()])
    assert contact_rows(robot) == 3
    stribeck = {"joint3.stribeck_friction": 0.2, "joint3.stribeck_speed": 0.1}
    rubbing = robot.with_parameters({"joint2.coulomb_friction": 0.1, **stribeck})
    assert contact_rows(rubbing) == 5
    assert contact_rows(rubbing.with_parameters({"joint2.viscous_friction": 0.1})) == 5


@pytest.mark.parametrize(
    ("inertia", "message"),
    [
        (Inertia(-1.0), "link 'b': mass -1 is negative"),
        (Inertia(1.0, (math.nan, 0, 0)), "link 'b': an inertial parameter is not finite"),
        (Inertia(math.inf), "link 'b': an inertial parameter is not finite"),
    ],
)
def test_numbers_of_links(inertia, message):
    with pytest.raises(ModelError, match=message):
        Model("r", [Link("a"), Link("b", inertia)], [joint()])


@pytest.mark.parametrize("gravity", [(0, 0), (0, 0, math.nan), (0, 0, -9.81, 0)])
def test_gravity(gravity):
    with pytest.raises(ModelError, match="gravity: expected three finite numbers"):
        Model("r", links("a"), [], gravity=gravity)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (Frame("f", "b", Transform.identity()), "frame 'f': its link 'b' does not exist"),
        (Frame("a", "a", Transform.identity()), "two frames are named 'a'"),
        (Frame("f", "a", Transform(np.eye(3), np.full(3, np.inf))), "frame 'f': its pose is not finite"),
        (
            Frame("f", "a", Transform(np.ones((3, 3)), np.zeros(3))),
            "frame 'f': its pose has no rotation matrix",
        ),
    ],
)
def test_frames(frame, message):
    with pytest.raises(ModelError, match=message):
        Model("r", links("a"), [], frames=[frame])


IMPOSSIBLE = Inertia.from_com(1, (0, 0, 0), (1, 1, 3))


def test_impossible_bodies_warn_or_are_refused():
    model = Model("r", [Link("a"), Link("b", IMPOSSIBLE)], [joint()])
    with pytest.warns(
        ModelWarning, match=r"^arm\.urdf: link 'b': principal moments 1, 1, 3 violate the triangle inequality"
    ):
        check_physics(model, strict=False, where="arm.urdf")
    with pytest.raises(ModelError, match=r"^arm\.urdf: link 'b': .*triangle inequality"):
        check_physics(model, strict=True, where="arm.urdf")


def test_base_and_reduced_parameters_are_exempt():
    fixed = Model("r", [Link("a", IMPOSSIBLE), Link("b", BODY)], [joint()])
    reduced = Model("r", [Link("a"), Link("b", IMPOSSIBLE)], [joint()], reduced=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_physics(fixed, strict=True, where="arm.urdf")
        check_physics(reduced, strict=True, where="arm.urdf")


@pytest.mark.parametrize(("friction", "word"), [({"damping": -1}, "viscous"), ({"friction": -2}, "Coulomb")])
def test_friction_that_drives_is_a_warning(tmp_path, friction, word):
    attribute, value = next(iter(friction.items()))
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="base"/><link name="tip"/><joint name="elbow" type="continuous">'
        f'<parent link="base"/><child link="tip"/><dynamics {attribute}="{value}"/></joint></robot>'
    )
    with pytest.warns(ModelWarning, match=rf"arm.urdf: joint 'elbow': {word} friction {value} is negative"):
        lw.load(path)
    with pytest.raises(ModelError, match="is negative: it would drive the joint"):
        lw.load(path, strict=True)


@pytest.mark.parametrize("what", ["velocity", "effort"])
def test_a_limit_that_cannot_be_kept_is_a_warning(tmp_path, what):
    path = tmp_path / "arm.toml"
    path.write_text(f'name = "arm"\nconvention = "dh"\n[[joint]]\n{what}_limit = -1.0\n')
    with pytest.warns(ModelWarning, match=f"joint 'joint1': its {what} limit -1 is negative"):
        lw.load(path)


def massless_urdf(joints: int, mass: dict[int, float] | None = None) -> str:
    """A chain of joints j1, j2 …; the links with these numbers have a mass."""
    body = '<inertial><mass value="{}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    links = [
        f'<link name="l{k}">{body.format((mass or {})[k]) if k in (mass or {}) else ""}</link>'
        for k in range(joints + 1)
    ]
    chain = [
        f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/></joint>'
        for k in range(1, joints + 1)
    ]
    return f'<robot name="arm">{"".join(links + chain)}</robot>'


@pytest.mark.parametrize(
    ("mass", "without"), [({}, (1, 2, 3)), ({1: 2.0}, (2, 3)), ({2: 2.0}, (3,)), ({3: 2.0}, ())]
)
def test_joints_that_move_no_mass(tmp_path, mass, without):
    path = tmp_path / "arm.urdf"
    path.write_text(massless_urdf(3, mass))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = lw.load(path)
    names = tuple(f"j{k}" for k in without)
    assert robot.massless_joints == names
    said = [str(warning.message) for warning in caught if "no mass" in str(warning.message)]
    assert len(said) == bool(without)
    if without:
        assert f"{path}: {len(without)} of 3 joints move no mass ({', '.join(names)})" in said[0]
        assert "give the links their inertias, or lock these joints" in said[0]
        with pytest.raises(ModelError, match="no mass"):
            lw.load(path, strict=True)


def test_what_follows_a_joint_is_moved_by_it(tmp_path):
    path = tmp_path / "gripper.urdf"
    body = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    path.write_text(
        f'<robot name="gripper"><link name="a"/><link name="b"/><link name="c">{body}</link>'
        '<joint name="left" type="continuous"><parent link="a"/><child link="b"/></joint>'
        '<joint name="right" type="continuous"><parent link="a"/><child link="c"/><mimic joint="left"/></joint></robot>'
    )
    assert lw.load(path, mimic="coupled").massless_joints == ()
    with pytest.warns(ModelWarning, match=r"1 of 2 joints move no mass \(left\)"):
        assert lw.load(path, mimic="independent").massless_joints == ("left",)


def test_a_mass_behind_a_fixed_joint_counts_and_a_reduced_set_is_exempt():
    fixed = joint("c", "b", "c", "fixed")
    carried = Model("r", [Link("a"), Link("b"), Link("c", BODY)], [joint(), fixed])
    assert carried.massless_joints == ()
    assert Model("r", [Link("a"), Link("b")], [joint()]).massless_joints == ("j",)
    assert Model("r", [Link("a"), Link("b")], [joint()], reduced=True).massless_joints == ()
    for name in lw.robots():
        assert lw.load(name).massless_joints == ()
