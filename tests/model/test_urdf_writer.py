"""Round trips through URDF: the robot comes back to the last bit, and other readers get it to round-off."""

import math
import os
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.errors import ModelError, ModelWarning
from linkwise.formats.urdf.reader import read_urdf
from linkwise.formats.urdf.writer import write_urdf
from linkwise.model import Frame, Inertia, Joint, Limits, Link, Mimic, Model, Transform
from linkwise.model.quantity import limit

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))

# -- random robots ------------------------------------------------------------------------------------------

number = st.floats(-10, 10, allow_subnormal=False)
positive = st.floats(1e-6, 1e3)
angle = st.one_of(
    st.floats(-math.pi, math.pi),
    st.sampled_from([0, math.pi / 2, -math.pi / 2, math.pi, 1.5707963, 1.57079632679, 1e-9]),
)
names = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(
    lambda s: s.strip() and "$" not in s and not set(s) & {"\ufffe", "\uffff"}
)


@st.composite
def poses(draw) -> Transform:
    return Transform.from_rpy(draw(st.tuples(number, number, number)), draw(st.tuples(angle, angle, angle)))


@st.composite
def inertias(draw) -> Inertia:
    if draw(st.booleans()):
        com, moments = draw(st.tuples(number, number, number)), draw(st.tuples(positive, positive, positive))
        return Inertia.from_com(draw(positive), com, moments, draw(poses()).rotation)
    kind = draw(st.sampled_from(["none", "massless", "arbitrary"]))
    moments = draw(st.tuples(*[number] * 6))
    if kind == "none":
        return Inertia()
    if kind == "massless":
        return Inertia(0.0, (0.0, 0.0, 0.0), moments)
    return Inertia(draw(positive), draw(st.tuples(number, number, number)), moments)


@st.composite
def axes(draw) -> tuple[float, float, float]:
    axis = draw(st.tuples(number, number, number).filter(lambda a: math.hypot(*a) > 1e-3))
    length = math.hypot(*axis)
    return (axis[0] / length, axis[1] / length, axis[2] / length)


@st.composite
def limits(draw, continuous: bool) -> Limits:
    ends = sorted(draw(st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False))))
    ends = [limit(e) for e in ends]
    lower, upper = (-math.inf, math.inf) if continuous else ends
    return Limits(
        lower,
        upper,
        draw(st.one_of(positive, st.just(math.inf))),
        draw(st.one_of(positive, st.just(math.inf))),
    )


@st.composite
def models(draw) -> Model:
    count = draw(st.integers(1, 6))
    link_names = draw(st.lists(names, min_size=count + 1, max_size=count + 1, unique=True))
    joint_names = draw(st.lists(names, min_size=count, max_size=count, unique=True))
    links = [Link(name, draw(inertias())) for name in link_names]
    joints: list[Joint] = []
    for k in range(count):
        kind = draw(st.sampled_from(["revolute", "continuous", "prismatic", "fixed"]))
        joint = Joint(
            joint_names[k], kind, link_names[draw(st.integers(0, k))], link_names[k + 1], draw(poses())
        )
        moving = [other.name for other in joints if other.moves]
        if joint.moves:
            mimic = (
                Mimic(draw(st.sampled_from(moving)), draw(number), draw(number))
                if moving and draw(st.booleans())
                else None
            )
            joint = replace(
                joint,
                axis=draw(axes()),
                limits=draw(limits(kind == "continuous")),
                rotor_inertia=draw(st.one_of(st.just(0.0), positive)),
                viscous_friction=draw(st.one_of(st.just(0.0), positive)),
                coulomb_friction=draw(
                    st.one_of(
                        st.just((0.0, 0.0)), positive.map(lambda f: (f, f)), st.tuples(positive, positive)
                    )
                ),
                mimic=mimic,
            )
        joints.append(joint)
    frames = [
        Frame(name, draw(st.sampled_from(link_names)), draw(poses()))
        for name in draw(st.lists(names, max_size=2, unique=True))
        if name not in link_names
    ]
    gravity = draw(st.one_of(st.just((0.0, 0.0, -9.81)), st.tuples(number, number, number)))
    return Model(draw(names), links, joints, gravity=gravity, frames=frames, reduced=draw(st.booleans()))


def round_trip(model: Model) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_urdf(write_urdf(model).encode(), "arm.urdf")


@given(models())
@settings(max_examples=150, deadline=None)
def test_a_round_trip_keeps_every_bit(model):
    again = round_trip(model)
    assert again == model
    assert write_urdf(again) == write_urdf(model)


@given(models())
@settings(max_examples=50, deadline=None)
def test_other_readers_get_the_robot_to_round_off(model):
    """Without the linkwise: elements, masses, centres, moments, placements and axes are still right."""
    lines = [line for line in write_urdf(model).splitlines() if "<linkwise:" not in line]
    again = read_urdf("\n".join(lines).encode(), "arm.urdf")
    for mine, theirs in zip(model.links, again.links, strict=True):
        a, b = mine.inertia, theirs.inertia
        shift = a.mass * float(a.com @ a.com)
        assert a.mass == b.mass
        np.testing.assert_allclose(b.first_moment, a.first_moment, rtol=1e-15, atol=1e-300)
        scale = max(*np.abs(a.inertia_about_origin), shift)
        np.testing.assert_allclose(b.inertia_about_origin, a.inertia_about_origin, rtol=0, atol=4e-16 * scale)
    for mine, theirs in zip(model.joints, again.joints, strict=True):
        np.testing.assert_allclose(theirs.origin.rotation, mine.origin.rotation, rtol=0, atol=1e-15)
        np.testing.assert_array_equal(theirs.origin.translation, mine.origin.translation)
        if mine.moves:
            np.testing.assert_allclose(theirs.axis, mine.axis, rtol=0, atol=4e-16)
            assert theirs.mimic == mine.mimic
            assert theirs.limits == mine.limits


@given(models())
@settings(max_examples=25, deadline=None)
def test_pinocchio_reads_what_is_written(model):
    pin = pytest.importorskip("pinocchio")
    theirs = pin.buildModelFromXML(write_urdf(model))
    assert theirs.nv == model.dof
    for joint, body in zip(model.moving_joints, model.bodies(), strict=True):
        inertia = theirs.inertias[theirs.getJointId(joint.name)]
        assert inertia.mass == pytest.approx(body.mass, rel=1e-12)


@pytest.mark.skipif(not (DATA / "urdf").is_dir(), reason=f"no robot files at {DATA / 'urdf'}")
def test_files_of_the_wild_come_back():
    count = 0
    for path in sorted((DATA / "urdf").rglob("*.urdf")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            try:
                model = read_urdf(path.read_bytes(), path.name)
            except ModelError:
                continue
        assert round_trip(model) == model, path
        count += 1
    assert count > 20


# -- single things ------------------------------------------------------------------------------------------


NOTHING = Inertia()


def one_joint(inertia: Inertia = NOTHING, **joint) -> Model:
    return Model(
        "arm", [Link("base"), Link("tip", inertia)], [Joint("elbow", "revolute", "base", "tip", **joint)]
    )


def test_a_plain_robot_needs_no_extension():
    text = write_urdf(one_joint(Inertia.from_com(1, (0.5, 0, 0), (1, 1, 1)), axis=(0, 1, 0)))
    assert "<linkwise:" not in text
    assert '<axis xyz="0 1 0"/>' in text or '<axis xyz="0.0 1.0 0.0"/>' in text


def test_names_are_escaped():
    model = Model("<\"&'> ", [Link("a\nb"), Link("c\td")], [Joint("–é\r", "fixed", "a\nb", "c\td")])
    again = round_trip(model)
    assert (again.name, again.link_names, again.joints[0].name) == (model.name, model.link_names, "–é\r")


@pytest.mark.parametrize("name", ["a\0", "a\x1b", "a\ud800", "a\ufffe"])
def test_names_that_xml_cannot_hold(name):
    with pytest.raises(ModelError, match=r"a character that XML cannot hold"):
        write_urdf(Model(name, [Link("a")], []))


def test_a_first_moment_without_mass_cannot_be_written():
    with pytest.raises(
        ModelError, match=r"link 'tip': it has a first moment .* but no mass.*save the robot as \.toml"
    ):
        write_urdf(one_joint(Inertia(0.0, (0.1, 0.0, 0.0))))
    with pytest.raises(ModelError, match=r"no finite centre of mass"):
        write_urdf(one_joint(Inertia(1e-308, (1e10, 0.0, 0.0))))


def test_a_nearly_massless_link_keeps_its_moments():
    """Its centre of mass is far away, and the moments about it are differences of huge numbers."""
    model = one_joint(Inertia(1e-9, (0.25, -0.5, 1 / 3), (1.0, 0.1, 0.2, 2.0, 0.3, 2.5)))
    assert round_trip(model) == model


def test_an_axis_that_is_only_nearly_of_unit_length():
    model = one_joint(axis=(0.0, 0.6 + 3e-10, 0.8))
    assert round_trip(model) == model


def test_a_locked_joint_keeps_the_dynamics():
    model = one_joint(
        Inertia.from_com(1, (0.5, 0, 0), (1, 1, 1)), limits=Limits(-1, 1), rotor_inertia=2.0
    ).lock({"elbow": 0.3})
    again = round_trip(model)
    assert again.joints[0].type == "fixed"
    assert again.links == model.links
    np.testing.assert_array_equal(again.joints[0].origin.matrix, model.joints[0].origin.matrix)


def test_a_mimic_of_a_locked_joint_is_dropped():
    joints = [
        Joint("a", "revolute", "x", "y"),
        Joint("b", "revolute", "y", "z", mimic=Mimic("a", 2.0)),
    ]
    model = Model("arm", [Link("x"), Link("y"), Link("z")], joints).lock({"a": 0.0})
    assert round_trip(model).joints[1].mimic is None


def test_asymmetric_friction_reads_as_its_mean_elsewhere():
    text = write_urdf(one_joint(coulomb_friction=(1.0, 3.0), viscous_friction=0.5))
    assert '<dynamics damping="0.5" friction="2.0"/>' in text
    assert 'coulomb_forward="1.0" coulomb_backward="3.0"' in text


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (r'<mass value="0\.003"/>', '<mass value="4.0"/>', "parameters"),
        (r'rpy="0\.(3|29)\d* ', 'rpy="0.4 ', "rotation"),  # 0.3 but for the last bits
    ],
)
def test_edited_standard_elements_go_before_the_extension(old, new, what):
    odd = Inertia(0.003, (0.25, -0.5, 1 / 3), (1.0, 0.1, 0.2, 2.0, 0.3, 2.5))  # its centre is far away
    model = one_joint(odd, origin=Transform.from_rpy(rpy=(0.3, 0.2, 0.1)))
    tilted = Transform(model.joints[0].origin.rotation * (1 + 2e-16), np.zeros(3))
    model = one_joint(odd, origin=tilted)
    text = write_urdf(model)
    assert f"{what}=" in text
    assert re.search(old, text)
    with pytest.warns(ModelWarning, match=rf"its {what} disagree with the standard elements, which count"):
        again = read_urdf(re.sub(old, new, text).encode(), "arm.urdf")
    if what == "parameters":
        assert again.links[1].inertia.mass == 4.0
    else:
        assert again.joints[0].origin.rpy[0] == pytest.approx(model.joints[0].origin.rpy[0] + 0.1)


@pytest.mark.parametrize(
    ("extension", "message"),
    [
        ('<linkwise:robot gravity="0 0"/>', '<linkwise:robot>: gravity="0 0": expected 3 numbers'),
        ('<linkwise:robot reduced="maybe"/>', "expected true or false"),
        (
            '<linkwise:frame name="f" link="a" xyz="0 0 0" rotation="1 0 0 0 1 0 0 0 2"/>',
            "is no rotation matrix",
        ),
        (
            '<linkwise:frame name="f" link="b" xyz="0 0 0" rotation="1 0 0 0 1 0 0 0 1"/>',
            "its link 'b' does not exist",
        ),
        (
            '<linkwise:frame name="a" link="a" xyz="0 0 0" rotation="1 0 0 0 1 0 0 0 1"/>',
            "two frames are named 'a'",
        ),
    ],
)
def test_bad_extensions_are_errors(extension, message):
    with pytest.raises(ModelError, match=rf"^arm\.urdf:.*{message}"):
        read_urdf(f'<robot name="r"><link name="a"/>{extension}</robot>'.encode(), "arm.urdf")
