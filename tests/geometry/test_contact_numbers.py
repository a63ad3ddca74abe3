"""Numbers of geoms and pairs of MJCF files that decide how they touch, beside those of MuJoCo's contacts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

SPHERES = """<mujoco><default>{classes}</default><worldbody>
<body name="a"><freejoint/><geom name="a" size="0.1" mass="1" {a}/></body>
<body name="b" pos="0.15 0 0"><freejoint/><geom name="b" size="0.1" mass="2" {b}/></body>
</worldbody><contact>{pair}</contact></mujoco>"""
CLASSES = (
    '<geom solimp="0.8 0.9"/><pair friction="0.3 0.3 0.1 0.05 0.05"/>'
    '<default class="rubber"><geom friction="0.4 0.03 0.02" condim="6"/><pair condim="6"/></default>'
)


def loaded(tmp_path, text: str) -> tuple[lw.Robot, list[str]]:
    path = tmp_path / "scene.xml"
    path.write_text(text)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        robot = lw.load(path, contact=True)
    return robot, [str(each.message) for each in said]


@pytest.mark.parametrize(
    ("a", "b", "pair", "classes"),
    [
        # what a pair leaves out is MuJoCo's default, not that of its geoms
        ('friction="0.2" condim="1" priority="1"', 'friction="0.3"', "<pair/>", ""),
        ('friction="0.2 0.3 0.4" condim="6"', "", '<pair friction="0.5 0.5" condim="4"/>', ""),
        ('friction="0.2 0.3 0.4" condim="6"', "", '<pair condim="6"/>', CLASSES),
        ("", "", '<pair friction="0.6 0.6"/>', CLASSES),
        ("", "", '<pair friction="0.6 0.6 0.2" class="rubber"/>', CLASSES),
        ('solref="-100 -10"', 'margin="0.02"', "<pair/>", ""),
        ('solref="-100 -10"', "", '<pair solref="-300 -7" margin="0.01"/>', ""),
        # numbers at the end of a list are inherited
        ('class="rubber" friction="0.6"', "", "", CLASSES),
        ('class="rubber" friction="0.6 0.1"', 'class="rubber"', "", CLASSES),
        # the higher priority; else the larger friction, a mean of what is soft; margins add
        ('margin="0.01"', 'margin="0.02" gap="0.005"', "", ""),
        ('margin="0.01" priority="1" condim="1"', 'margin="-0.02" friction="0.1"', "", ""),
        ('solref="-100 -10"', 'solref="-400 -5" solimp="0.5 0.6"', "", ""),
        ('solref="-100 -10" solmix="3"', 'solref="0.02 1" solimp="0.5 0.6"', "", ""),
        ('solref="-100 -10" priority="2"', 'solref="-400 -5" solimp="0.5 0.6"', "", CLASSES),
        ('solref="-100 1"', "", "", ""),
    ],
)
def test_numbers_are_those_of_contacts_in_mujoco(tmp_path, a, b, pair, classes):
    mujoco = pytest.importorskip("mujoco")
    pair = pair.replace("<pair", '<pair geom1="a" geom2="b"')
    text = SPHERES.format(a=a, b=b, pair=pair, classes=classes)
    robot, _ = loaded(tmp_path, text)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    (theirs,), (ours,) = data.contact, robot.contacts
    friction = theirs.friction * (theirs.dim > np.array([1, 1, 3, 4, 4]))
    found = [ours.friction, ours.friction, ours.torsional_friction, *2 * [ours.rolling_friction]]
    np.testing.assert_allclose(found, friction, atol=1e-12)
    assert ours.margin == pytest.approx(theirs.includemargin, abs=1e-12)
    q = np.array([0, 0, 0, 0, 0, 0, 1.0, 0.15, 0, 0, 0, 0, 0, 1.0])
    assert robot.contact_gaps(q) == pytest.approx(theirs.dist - theirs.includemargin, abs=1e-9)
    # the spring of solref moves the mass of both bodies together: 1/(1/1 + 1/2) kg
    soft = theirs.solref if max(theirs.solref) <= 0.0 else (0.0, 0.0)
    firm = np.array([ours.stiffness or 0.0, ours.damping])
    np.testing.assert_allclose(firm, -np.array(soft) / (1.0 - theirs.solimp[1]) / 1.5, rtol=1e-9)


@pytest.mark.parametrize("margins", [("0.01", "0.005"), ("-0.01", "0"), ("0.02", "-0.01")])
def test_shapes_rest_at_their_margin_as_in_mujoco(tmp_path, margins):
    mujoco = pytest.importorskip("mujoco")
    text = (
        '<mujoco><worldbody><geom type="plane" size="1 1 1" margin="{}"/><body name="ball" pos="0 0 0.11">'
        '<freejoint/><geom type="{}" size="0.1 0.1 0.1" mass="1" margin="{}"/></body></worldbody></mujoco>'
    )
    # four corners, the only point of a sphere, the lowest one of an ellipsoid
    for kind in ("box", "sphere", "ellipsoid"):
        written = text.format(margins[0], kind, margins[1])
        robot, _ = loaded(tmp_path, written)
        q, qd, tau = np.array([0, 0, 0.12, 0, 0, 0, 1.0]), np.zeros(6), np.zeros(6)
        model = mujoco.MjModel.from_xml_string(written)
        data = mujoco.MjData(model)
        for _ in range(600):
            q, qd, _ = robot.contact_step(q, qd, tau)
            mujoco.mj_step(model, data)
        assert q[2] == pytest.approx(0.1 + sum(map(float, margins)), abs=1e-5), kind
        assert data.qpos[2] == pytest.approx(q[2], abs=1e-3)
        assert np.abs(robot.contact_gaps(q)).max() < 1e-5


def test_margins_of_the_nearest_of_many_count():
    link = lw.Link("ball", lw.Inertia.from_com(1.0, (0, 0, 0), (0.01, 0.01, 0.01)))
    robot = lw.Robot("ball", [link], []).with_base("floating")
    points = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    shapes = [lw.Shape("ball", "sphere", (0.02,), offset=point) for point in points]
    robot = robot.with_contacts([lw.Contact("ball", shapes=shapes, nearest=2, margin=0.005)])
    assert robot.contact_gaps(robot.neutral) == pytest.approx([-0.025, -0.025])
    with pytest.raises(lw.ModelError, match="margin"):
        lw.Contact("ball", margin=float("nan"))


def test_friction_that_differs_between_directions_is_said(tmp_path):
    pair = '<pair geom1="a" geom2="b" friction="{}" condim="{}"/>'
    for friction, condim, is_said in (
        ("0.5", 3, True),  # MuJoCo takes 1 for the second direction
        ("0.5 0.4", 3, True),
        ("0.5 0.4", 1, False),
        ("0.5 0.5", 3, False),
        ("0.5 0.5 0.1 0.2 0.3", 6, True),
        ("0.5 0.5 0.1 0.2 0.3", 4, False),
    ):
        text = SPHERES.format(a="", b="", pair=pair.format(friction, condim), classes="")
        robot, said = loaded(tmp_path, text)
        assert robot.contacts[0].friction == (0.5 if condim > 1 else 0.0)
        assert any("friction is the same in all directions here" in each for each in said) == is_said
        assert robot.contacts[0].rolling_friction == (0.2 if condim == 6 else 0.0)


def test_a_sphere_that_is_fitted_to_a_mesh_is_refused(tmp_path):
    """MuJoCo takes a geom with a mesh and without a type for a sphere."""
    text = (
        '<mujoco><asset><mesh name="m" vertex="0 0 0 0.1 0 0 0 0.2 0 0 0 0.3"/></asset><worldbody>'
        '<geom type="plane" size="1 1 1"/><body name="a"><freejoint/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/><geom mesh="m"/></body></worldbody></mujoco>'
    )
    with pytest.raises(lw.ModelError, match="a sphere that is fitted to a mesh"):
        loaded(tmp_path, text)


def test_soft_contacts_of_what_has_no_mass_to_move_are_rigid(tmp_path):
    """The middle of mass is on the axis: MuJoCo's number for the mass that moves is infinite."""
    text = (
        '<mujoco><worldbody><geom type="plane" size="1 1 1" pos="0 0 -0.2"/><body name="a"><joint axis="0 1 0"/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/><geom size="0.1" pos="0.2 0 0" solref="-100 -10"/>'
        "</body></worldbody></mujoco>"
    )
    robot, _ = loaded(tmp_path, text)
    assert (robot.contacts[0].stiffness, robot.contacts[0].damping) == (None, 0.0)


def test_hulls_of_meshes_keep_the_vertices_that_reach_farthest_and_say_what_they_lose(tmp_path):
    """Directions were taken from above to below until 16 vertices were there: the lower rim of a drum had four."""
    angles = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
    rims = [(0.1 * np.cos(a), 0.1 * np.sin(a), z) for z in (-0.05, 0.05) for a in angles]
    text = (
        '<mujoco><asset><mesh name="m" file="m.obj"/></asset><worldbody><geom type="plane" size="1 1 1"/>'
        '<body name="a"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>'
        '<geom name="drum" type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    faces = "".join(f"f {k + 1} {k + 41} {(k + 1) % 40 + 1}\n" for k in range(40))
    (tmp_path / "m.obj").write_text("".join("v {} {} {}\n".format(*each) for each in rims) + faces)
    robot, said = loaded(tmp_path, text)
    (contact,) = robot.contacts
    kept = np.array(contact.shapes[0].points)
    assert len(kept) == 16
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for z in (-0.05, 0.05):
        rim = kept[np.isclose(kept[:, 2], z)]
        lost = 0.1 - (rim[:, :2] @ ways.T).max(axis=0)
        assert len(rim) >= 7
        assert lost.max() < 0.013
    (note,) = (each for each in said if "drum: 16 corners stand for the hull of 80 vertices" in each)
    assert "which reaches up to" in note
    box = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    points = lw.Shape.hull("a", [*box, (0, 0, 0.5)], most=8).points
    assert sorted(map(tuple, points)) == sorted(box)


def test_notes_on_many_meshes_hide_no_others(tmp_path):
    """A note for every mesh left no place for those that say what is left out."""
    points = np.random.default_rng(0).normal(size=(60, 3))
    (tmp_path / "m.stl").write_text(
        "solid m\n"
        + "".join(
            "facet normal 0 0 0\nouter loop\n"
            + "".join("vertex {} {} {}\n".format(*(0.1 * points[(k + i) % 60])) for i in range(3))
            + "endloop\nendfacet\n"
            for k in range(60)
        )
        + "endsolid m\n"
    )
    links = "".join(
        f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        f'</inertial><collision><geometry><mesh filename="m.stl"/></geometry></collision></link>'
        for k in range(12)
    )
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/></joint>'
        for k in range(11)
    )
    path = tmp_path / "chain.urdf"
    path.write_text(f'<robot name="chain">{links}{joints}</robot>')
    with pytest.warns(lw.ModelWarning) as said:
        lw.load(path, contact=True, base="floating")
    text = " ".join(str(each.message) for each in said)
    assert "hulls stand for 12 meshes, the worst one: mesh of l" in text
    assert "of 48 candidates with the ground (friction 0.8) the 8 nearest are taken" in text
