"""The TOML format: every key means what docs/formats.md says, mistakes are named, and saving loses
nothing."""

import contextlib
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise.formats.toml.reader import (
    CHAIN_JOINT_KEYS,
    CHAIN_KEYS,
    TREE_JOINT_KEYS,
    read_citation,
    read_toml,
    write_toml,
)
from linkwise.model import Frame, Inertia, Joint, Limits, Link, Mimic, Model, Transform
from linkwise.model.generators import general_chain, random_model
from linkwise.model.quantity import LARGEST


def read(text: str) -> Model:
    return read_toml(text.encode(), "arm.toml")


def robot(text: str) -> lw.Robot:
    return lw.Robot.from_model(read(text))


def rx(t):
    return np.array(
        [[1, 0, 0, 0], [0, math.cos(t), -math.sin(t), 0], [0, math.sin(t), math.cos(t), 0], [0, 0, 0, 1]]
    )


def rz(t):
    return np.array(
        [[math.cos(t), -math.sin(t), 0, 0], [math.sin(t), math.cos(t), 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    )


def shift(x=0.0, z=0.0):
    T = np.eye(4)
    T[0, 3], T[2, 3] = x, z
    return T


ROWS = [  # type, alpha [deg], a, d, theta [deg]
    ("revolute", 30, 0.3, 0.1, 20),
    ("prismatic", -90, 0.2, 0.15, -35),
    ("continuous", 90, 0.0, 0.4, 0),
    ("fixed", 15, 0.25, 0.05, 10),
    ("revolute", 180, -0.1, 0.0, 90),
]


def chain_text(convention):
    joints = "".join(
        f'[[joint]]\ntype = "{kind}"\nalpha_deg = {alpha}\na = {a}\nd = {d}\ntheta_deg = {theta}\n'
        f"mass = {k + 1.5}\ncom = [0.1, -0.2, 0.{k}]\ninertia = [0.3, 0.4, 0.5]\n"
        for k, (kind, alpha, a, d, theta) in enumerate(ROWS)
    )
    base = "[base]\nxyz = [1, 2, 3]\nrpy_deg = [0, 90, 0]\n"
    return f'name = "chain"\nconvention = "{convention}"\n{base}{joints}'


def dh_frames(convention, q):
    """Frames 1 to 5 from the four elementary motions, in the order in which the convention names them."""
    T = np.array([[0, 0, 1, 1], [0, 1, 0, 2], [-1, 0, 0, 3], [0, 0, 0, 1.0]])
    coordinates, frames = iter(q), []
    for kind, alpha, a, d, theta in ROWS:
        turn, slide = math.radians(theta), d
        if kind == "prismatic":
            slide += next(coordinates)
        elif kind != "fixed":
            turn += next(coordinates)
        along_z, along_x = rz(turn) @ shift(z=slide), shift(x=a) @ rx(math.radians(alpha))
        T = T @ (along_z @ along_x if convention == "dh" else along_x @ along_z)
        frames.append(T)
    return frames


@pytest.mark.parametrize("convention", ["dh", "mdh"])
def test_link_frames_are_the_frames_of_the_convention(convention):
    arm = robot(chain_text(convention))
    q = np.array([0.3, 0.2, -1.1, 0.7])
    for k, frame in enumerate(dh_frames(convention, q), start=1):
        np.testing.assert_allclose(arm.pose(q, f"link{k}"), frame, atol=1e-14)


@pytest.mark.parametrize("convention", ["dh", "mdh"])
def test_mass_matrix_is_the_sum_over_links_in_those_frames(convention):
    arm = robot(chain_text(convention))
    q, h = np.array([0.3, 0.2, -1.1, 0.7]), 1e-6
    M = np.zeros((4, 4))
    for k, frame in enumerate(dh_frames(convention, q)):
        columns = []
        for direction in np.eye(4):
            ahead, behind = (dh_frames(convention, q + s * h * direction)[k] for s in (1, -1))
            rate = (ahead - behind) / (2 * h)
            spin = rate[:3, :3] @ frame[:3, :3].T
            omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
            centre = rate[:3, 3] + rate[:3, :3] @ [0.1, -0.2, float(f"0.{k}")]
            columns.append((frame[:3, :3].T @ omega, centre))
        for i in range(4):
            for j in range(4):
                M[i, j] += columns[i][0] @ np.diag([0.3, 0.4, 0.5]) @ columns[j][0]
                M[i, j] += (k + 1.5) * columns[i][1] @ columns[j][1]
    np.testing.assert_allclose(arm.mass_matrix(q), M, atol=2e-8)


def test_right_angles_are_exact():
    for text in ("alpha_deg = -90", f"alpha = {-math.pi / 2!r}"):
        origin = read(f'name = "a"\nconvention = "mdh"\n[[joint]]\n{text}\n').joints[0].origin
        assert np.array_equal(origin.rotation, [[1, 0, 0], [0, 0, 1], [0, -1, 0]])


def test_a_hinge_is_made_only_where_the_axis_misses_the_frame():
    model = read('name = "a"\nconvention = "dh"\n[[joint]]\nalpha_deg = 90\n[[joint]]\na = 0.5\n[[joint]]\n')
    assert model.link_names == ("base", "link1", "link2_hinge", "link2", "link3")
    assert model.joint_names == ("joint1", "joint2", "joint3")


JOINT = 'name = "a"\nconvention = "mdh"\n[[joint]]\n'


def only_link(text):
    return read(JOINT + text).links[-1].inertia


def test_inertial_terms_in_every_form():
    centre = Inertia.from_com(2.0, (0.1, 0.2, 0.3), (0.5, 0.01, 0.02, 0.6, 0.03, 0.7))
    for form in (
        "inertia = { Ixx = 0.5, Ixy = 0.01, Ixz = 0.02, Iyy = 0.6, Iyz = 0.03, Izz = 0.7 }",
        "inertia = [0.5, 0.01, 0.02, 0.6, 0.03, 0.7]",
        "inertia = [[0.5, 0.01, 0.02], [0.01, 0.6, 0.03], [0.02, 0.03, 0.7]]",
    ):
        assert only_link("mass = 2.0\ncom = [0.1, 0.2, 0.3]\n" + form) == centre
    moments = ", ".join(repr(v) for v in centre.inertia_about_origin)
    first = ", ".join(repr(v) for v in centre.first_moment)
    assert only_link(f"mass = 2\nfirst_moment = [{first}]\ninertia_about_origin = [{moments}]") == centre
    assert only_link("mass = 2\ncom = [1, 0, 0]\ninertia_about_origin = [1, 3, 3]").parameters == (
        2,
        2,
        0,
        0,
        1,
        0,
        0,
        3,
        0,
        3,
    )
    assert only_link("mass = 2\ncom = [1, 0, 0]") == Inertia.from_com(2, (1, 0, 0), (0, 0, 0))  # a point
    assert only_link("mass = 2\nfirst_moment = [1, 0, 0]").inertia_about_origin == (0,) * 6
    assert only_link("inertia_about_origin = { Izz = 0.3 }").parameters == (*(0,) * 9, 0.3)


def test_drive_terms_at_the_joint_and_on_the_motor_side():
    joint = read(JOINT + "rotor_inertia = 0.5\nviscous_friction = 2\ncoulomb_friction = [1, 3]").joints[0]
    assert (joint.rotor_inertia, joint.viscous_friction, joint.coulomb_friction) == (0.5, 2.0, (1.0, 3.0))
    assert read(JOINT + "coulomb_friction = 1.5").joints[0].coulomb_friction == (1.5, 1.5)
    joint = read(
        JOINT + "gear_ratio = -10\nmotor_inertia = 0.01\nmotor_viscous = 0.02\nmotor_coulomb = [0.1, 0.3]"
    ).joints[0]
    assert (joint.rotor_inertia, joint.viscous_friction, joint.coulomb_friction) == (1.0, 2.0, (1.0, 3.0))


def test_limits_in_radians_degrees_and_metres():
    limits = (
        read(JOINT + "limits_deg = [-90, 180]\nvelocity_limit_deg = 90\neffort_limit = 5").joints[0].limits
    )
    assert limits == Limits(-math.pi / 2, math.pi, math.pi / 2, 5.0)
    slide = read(JOINT + 'type = "prismatic"\nlimits = [0, inf]').joints[0].limits
    assert slide == Limits(0.0, math.inf)


def test_frames_gravity_and_marks():
    model = read(
        'name = "a"\nsource = "me"\nconvention = "mdh"\ngravity = [0, 9, 0]\nreduced = true\n[[joint]]\n'
        '[[frame]]\nname = "tool"\nxyz = [0, 0, 1]\n'
        '[[frame]]\nname = "eye"\nlink = "base"\nrpy_deg = [180, 0, 0]\n'
    )
    assert model.gravity == (0.0, 9.0, 0.0)
    assert model.reduced
    assert [(f.name, f.link) for f in model.frames] == [("tool", "link1"), ("eye", "base")]
    assert read_citation(b'source = "me"', "x") == "me"


TREE = 'name = "t"\nconvention = "tree"\n[[link]]\nname = "base"\n[[link]]\nname = "arm"\n'
TREE_JOINT = '[[joint]]\nname = "j"\ntype = "revolute"\nparent = "base"\nchild = "arm"\n'


def test_tree_form():
    joint = read(TREE + TREE_JOINT + "axis = [0, 3, 4]\nxyz = [1, 2, 3]\nrpy = [0, 0, 0.5]").joints[0]
    assert joint.axis == (0.0, 0.6, 0.8)
    np.testing.assert_allclose(joint.origin.matrix, Transform.from_rpy((1, 2, 3), (0, 0, 0.5)).matrix)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name = "a"\n[[joint]]', "arm.toml: convention: missing; expected a text"),
        ('convention = "mdh"\n[[joint]]', "arm.toml: name: missing"),
        ('name = "a"\nconvention = "craig"', "convention: no 'craig'; valid: dh, mdh, tree"),
        ('name = "a"\nconvention = "mdh"', "at least one [[joint]]"),
        ('name = "a"\nconvention = "mdh"\ngravty = [0, 0, 1]\n[[joint]]', "did you mean 'gravity'?"),
        (JOINT + "alpah = 1", "arm.toml: [[joint]] 1: alpah: unknown key; did you mean 'alpha'?"),
        (JOINT + 'name = "elbow"\nmas = 1', "[[joint]] elbow: mas: unknown key; did you mean 'mass'?"),
        (JOINT + "alpha = 1\nalpha_deg = 1", "'alpha' and 'alpha_deg' exclude each other"),
        (JOINT + 'a = "0.1"', "a: expected a number, got '0.1'"),
        (JOINT + "a = true", "a: expected a number"),
        (JOINT + "a = nan", "a: nan is not a finite number"),
        (JOINT + "d = inf", "d: inf is not a finite number"),
        (JOINT + "mass = 1\ncom = [1, 2]", "com: expected a list of 3 numbers, got 2 entries"),
        (JOINT + "mass = -1", "mass -1 is negative"),
        (JOINT + "com = [1, 2, 3]", "com is given without mass"),
        (JOINT + "inertia = [1, 2, 3]", "inertia (about the centre of mass) is given without mass"),
        (
            JOINT + "mass = 1\ncom = [0,0,0]\nfirst_moment = [0,0,0]",
            "'com' and 'first_moment' exclude each other",
        ),
        (JOINT + "mass = 1\ninertia = [1, 2]", "inertia: expected a table of Ixx"),
        (JOINT + "mass = 1\ninertia = { Ixx = 1, Iyx = 2 }", "inertia: Iyx: unknown key"),
        (JOINT + "mass = 1\ninertia = [[1, 2, 0], [0, 1, 0], [0, 0, 1]]", "not symmetric"),
        (JOINT + "motor_inertia = 1", "need gear_ratio"),
        (JOINT + "gear_ratio = 0\nmotor_inertia = 1", "gear_ratio: expected a number other than 0"),
        (JOINT + "gear_ratio = 2\nmotor_coulomb = [0.3, -0.4]", "expected magnitudes"),
        (JOINT + "rotor_inertia = 1\nmotor_inertia = 1\ngear_ratio = 2", "exclude each other"),
        (JOINT + 'type = "hinge"', "type: no 'hinge'; valid: revolute, continuous, prismatic"),
        (JOINT + 'type = "prismatic"\nlimits_deg = [0, 1]', "limits of a prismatic joint are lengths"),
        (JOINT + "[[frame]]", "[[frame]] 1: name: missing"),
        (JOINT + '[[frame]]\nname = "link1"', "two frames are named 'link1'"),
        (
            JOINT + '[[frame]]\nname = "f"\nlink = "nowhere"',
            "arm.toml: frame 'f': its link 'nowhere' does not exist",
        ),
        ('name = "a"\nconvention = "mdh"\njoint = 3', "expected 'joint' to be tables [[joint]]"),
        ('name = "a"\nconvention = "mdh"\nbase = 3\n[[joint]]', "expected 'base' to be a table"),
        (TREE + TREE_JOINT + "axis = [0, 0, 0]", "[[joint]] j: axis: [0, 0, 0]: a direction has a length"),
        (
            TREE + TREE_JOINT + "rotation = [[1, 0, 0], [0, 1, 0], [0, 0, -1]]",
            "not those of a rotation matrix",
        ),
        (TREE + TREE_JOINT + "rotation = [1, 2, 3]", "expected three rows of three numbers"),
        (TREE + TREE_JOINT + "rpy = [0, 0, 0]\nrpy_deg = [0, 0, 0]", "exclude each other"),
        (TREE + TREE_JOINT + "alpha = 1", "alpha: unknown key"),
        (TREE + TREE_JOINT + "mimic = 1", "mimic: expected a table"),
        (TREE, "has 2 roots"),
        ("= nonsense", "arm.toml: not valid TOML"),
        ("a = " + "9" * 5000, "arm.toml: not valid TOML"),
        ("a = " + "[" * 5000, "arm.toml: not valid TOML"),
    ],
)
def test_mistakes_are_named(text, expected):
    with pytest.raises(lw.ModelError) as error:
        read(text)
    assert str(error.value).startswith("arm.toml: ")
    assert expected in str(error.value)


def test_text_that_is_not_utf8():
    with pytest.raises(lw.ModelError, match="not a text in UTF-8"):
        read_toml(b"\xff\xfe", "arm.toml")


def test_limits_upside_down_warn():
    with pytest.warns(lw.ModelWarning, match=r"\[\[joint\]\] 1: limits: the lower limit 1 is above"):
        read(JOINT + "limits = [1, -1]")


# -- saving --------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), dof=st.integers(1, 9), tree=st.booleans())
def test_any_robot_survives_saving_to_the_last_bit(seed, dof, tree):
    model = random_model(seed, dof, tree=tree, friction=True, rotor=True)
    assert read(write_toml(model)) == model


numbers = st.floats(-LARGEST, LARGEST)


@settings(max_examples=60, deadline=None)
@given(
    inertia=st.lists(numbers, min_size=9, max_size=9),
    mass=st.floats(0, LARGEST),
    xyz=st.lists(numbers, min_size=3, max_size=3),
)
def test_every_number_survives(inertia, mass, xyz):
    links = [Link("base"), Link("arm", Inertia.from_parameters([mass, *inertia]))]
    joint = Joint("j", "revolute", "base", "arm", Transform(np.eye(3), xyz), viscous_friction=xyz[0])
    model = Model("m", links, [joint])
    assert read(write_toml(model)) == model


def test_unusual_content_survives():
    text = 'quote " backslash \\ line\nbreak \x7f é 𝛼'
    links = [Link(text), Link("a", Inertia(1.0, (-0.0, 0.0, 0.0))), Link("b"), Link("c")]
    joints = [
        Joint(
            "fixed one", "fixed", text, "a", axis=(1.0, 0.0, 0.0), viscous_friction=3.0
        ),  # as lock leaves it
        Joint("half", "prismatic", "a", "b", limits=Limits(lower=-1.0), mimic=Mimic("other", -2.0, 0.1)),
        Joint("other", "continuous", "a", "c", Transform.about((0, 0, 1), 0.1), limits=Limits(effort=3.0)),
    ]
    frames = [Frame("f", "b", Transform.along((0, 1, 0), -0.0))]
    model = Model(text, links, joints, gravity=(0.1, -0.0, 5e-324), frames=frames, reduced=True)
    assert read(write_toml(model, source=text)) == model
    assert read_citation(write_toml(model, source=text).encode(), "x") == text


def test_a_saved_chain_has_the_same_dynamics():
    chain = lw.Robot.from_model(general_chain(4, seed=3))
    again = lw.Robot.from_model(read(write_toml(chain)))
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 4))
    assert np.array_equal(chain.inverse_dynamics(q, qd, qdd), again.inverse_dynamics(q, qd, qdd))


def test_reading_is_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(chain_text("dh"))


def test_the_examples_of_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert [read(block).name for block in blocks] == ["scara", "pendulum"]
    keys = re.findall(r"`(\w+)`", page)
    # "`ripple_1_cos_0` … `ripple_4_sin_3`" stands for all between them
    lines = [f"ripple_{line}" for line in range(1, 5)]
    keys += [
        f"{name}_{part}_{k}" for name in (*lines, "unmodelled") for part in ("cos", "sin") for k in range(4)
    ]
    keys += [f"{name}_count" for name in lines]
    keys += [f"network_{k}_{part}" for k in range(1, 17) for part in ("weight", "position", "speed", "bias")]
    assert (
        not (set(CHAIN_JOINT_KEYS) | set(TREE_JOINT_KEYS) | set(CHAIN_KEYS))
        - set(keys)
        - {"base", "joint", "motor", "frame"}
        - {
            *("parent", "child", "xyz", "axis", "mimic")  # in the example
        }
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_in_words(data):
    """Cut something out, or put something else there: never another exception."""
    whole = data.draw(
        st.sampled_from([chain_text("dh"), write_toml(random_model(0, 3, friction=True))])
    ).encode()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 40, len(whole))))
    filling = data.draw(
        st.sampled_from([b"", b"0", b"-1", b"1e999", b"nan", b"[", b'"', b"<", b"x", b"\xff", b"\n"])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        with contextlib.suppress(lw.ModelError):
            read_toml(whole[:start] + filling + whole[end:], "arm")
