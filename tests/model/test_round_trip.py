"""Robots with everything a model can have: what is saved is what is loaded, to the last bit, in every format."""

import dataclasses
import math

import numpy as np
import pytest

import linkwise as lw
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.model import Frame, Inertia, Joint, Limits, Link, Mimic, Model, Transform

RNG = np.random.default_rng(8)


def pose() -> Transform:
    return Transform.from_rpy(RNG.normal(size=3).tolist(), RNG.normal(size=3).tolist())


def body() -> Inertia:
    A = RNG.normal(size=(3, 3))
    P = A @ A.T
    return Inertia.from_com(RNG.uniform(1, 2), RNG.normal(size=3), np.trace(P) * np.eye(3) - P)


def everything() -> Model:
    """All joint types, couplings of both kinds, springs, carried weight, limits, frames, constraints, a fluid."""
    kinds = [
        "floating",
        "revolute",
        "continuous",
        "prismatic",
        "helical",
        "ball",
        "revolute",
        "prismatic",
        "fixed",
    ]
    links = [Link("base"), *(Link(f"link {k}", body()) for k in range(len(kinds)))]
    joints = []
    for k, kind in enumerate(kinds):
        axis = RNG.normal(size=3)
        x, y, z = (axis / np.linalg.norm(axis)).tolist()
        more = {
            "axis": (x, y, z),
            "limits": Limits(-1.1, 2.2, 3.3, 4.4)
            if kind in ("revolute", "continuous")
            else Limits(effort=5.5),
            "rotor_inertia": 0.1 * k,
            "viscous_friction": 0.3,
            "coulomb_friction": (0.1, 0.2),
            "terms": {
                "stiffness": 1.5,
                "spring_reference": 0.1 / 3,
                "compensated_mass": 0.7,
                "compensated_hy": -0.3,
            }
            if kind != "floating"
            else {"compensated_hz": 0.1 / 7},
        }
        if kind == "helical":
            more["pitch"] = 0.01 / 3
        if k == 6:
            more["mimic"] = Mimic("joint 1", 1 / 3, 0.1, True)
        if k == 7:
            more["mimic"] = Mimic("joint 3", -2.0, 0.0, False)
        if kind == "fixed":
            more = {}
        joints.append(
            Joint(
                f"joint {k}",
                kind,
                "base" if k == 0 else f"link {(k - 1) // 2 * 2}",
                f"link {k}",
                pose(),
                **more,
            )
        )
    frames = [Frame("tool", "link 8", pose()), Frame("foot", "link 4", pose())]
    held = [
        lw.Weld("tool", pose(), name="welded"),
        lw.Weld("foot", "link 2", pose(), compliance=0.1 / 3),
        lw.Point("link 5", (0.1, 0.2, 0.3), offset=(0.3, 0.2, 1 / 3), compliance=1e-3),
        lw.Point("tool", "foot", (0.1, -0.0, 0.3), (1.0, 2.0, 3.0), "pinned"),
    ]
    return Model(
        "everything",
        links,
        joints,
        gravity=(0.1, 0.2, -3.0),
        frames=frames,
        constraints=held,
        passive=("joint 4",),
        fluid=lw.Fluid(1.3, 0.7, (0.1, 0.2, 0.3)),
    )


def for_mujoco() -> Model:
    """The same without what MuJoCo cannot compute."""
    model = everything()
    joints = []
    for joint in model.joints:
        terms = {name: x for name, x in joint.terms.items() if not name.startswith("compensated")}
        changes: dict = {"terms": terms}
        if joint.type == "helical":
            changes |= {"type": "revolute", "pitch": 0.0}
        if joint.type == "floating":
            changes |= {"origin": Transform.identity(), "coulomb_friction": (0.0, 0.0)}
        joints.append(dataclasses.replace(joint, **changes))
    held = [dataclasses.replace(constraint, compliance=0.0) for constraint in model.constraints]
    return model._with(joints=joints, constraints=held)


ENDINGS = ("toml", "urdf", "xml")


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_lost(ending, tmp_path):
    model = everything() if ending != "xml" else for_mujoco()
    lw.save(model, tmp_path / f"robot.{ending}")
    again = lw.load(tmp_path / f"robot.{ending}")
    assert again.content() == model.content()
    lw.save(again, tmp_path / f"again.{ending}")
    assert (tmp_path / f"again.{ending}").read_bytes() == (tmp_path / f"robot.{ending}").read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_variants_of_robots(ending, tmp_path):
    panda = lw.load("panda")
    for robot in (
        panda.with_base("planar"),
        panda.with_base("floating"),
        panda.lock({panda.joint_names[3]: 0.3}),
        panda.with_constraints([lw.Coupling(panda.joint_names[2], panda.joint_names[1], 0.5, 0.1)]),
        lw.load("panda", mimic="independent"),
    ):
        lw.save(robot, tmp_path / f"robot.{ending}")
        assert lw.load(tmp_path / f"robot.{ending}").content() == robot.content()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda model: model._with(joints=[dataclasses.replace(j, terms={}) for j in model.joints]),
            "joint 'joint 0': a free joint of MuJoCo starts at the origin",
        ),
        (
            lambda model: for_mujoco()._with(
                joints=[dataclasses.replace(j, coulomb_friction=(1.0, 1.0)) for j in for_mujoco().joints]
            ),
            "no Coulomb friction",
        ),
        (
            lambda model: lw.load("two_link").with_parameters({"joint1.compensated_hx": 0.3}),
            "'joint1': its carried weight",
        ),
        (
            lambda model: model._with(
                joints=[
                    dataclasses.replace(j, origin=Transform.identity(), coulomb_friction=(0.0, 0.0), terms={})
                    for j in model.joints
                ]
            ),
            "'joint 4': MuJoCo has no helical",
        ),
        (
            lambda model: Model(
                "m",
                [Link("a"), Link("b", Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 9.0)))],
                [Joint("j", "revolute", "a", "b")],
            ),
            "link 'b': no body has this inertia",
        ),
        (
            lambda model: Model(
                "m", [Link("a"), Link("world", body())], [Joint("j", "revolute", "a", "world")]
            ),
            "keeps this name",
        ),
    ],
)
def test_what_mujoco_cannot_hold_is_refused_by_name(change, message, tmp_path):
    with pytest.raises(lw.ModelError, match=message):
        lw.save(change(everything()), tmp_path / "robot.xml")
    assert not (tmp_path / "robot.xml").exists()


def test_an_edited_mjcf_file_counts_as_it_stands(tmp_path):
    path = tmp_path / "robot.xml"
    lw.save(lw.load("two_link"), path)
    path.write_text(path.read_text().replace('gravity="0.0 0.0 -9.81"', 'gravity="0 0 -1"'))
    with pytest.warns(lw.ModelWarning, match="was edited after Linkwise wrote it"):
        robot = lw.load(path)
    assert robot.gravity == (0.0, 0.0, -1.0)
    assert robot.dof == 2


def test_mimic_joints_as_the_file_says_unless_told_otherwise(tmp_path):
    model = everything()
    lw.save(model, tmp_path / "robot.toml")
    free = lw.load(tmp_path / "robot.toml", mimic="independent")
    assert free.dof == lw.load(tmp_path / "robot.toml").dof + 1
    assert all(not joint.mimic.coupled for joint in free.joints if joint.mimic)
    assert lw.load(tmp_path / "robot.toml").with_coupled_mimics().dof == free.dof - 2


def test_the_parts_of_a_robot_that_writers_know():
    """A new field must be written, read and added to ``everything``, or be refused."""

    def names(cls):
        return {field.name for field in dataclasses.fields(cls)}

    known = "name type parent child origin axis limits mimic body pitch terms"
    assert names(Joint) == {*known.split(), "rotor_inertia", "viscous_friction", "coulomb_friction"}
    assert names(Mimic) == {"joint", "multiplier", "offset", "coupled", "also"}  # "also": test_motors.py
    assert names(Limits) == {"lower", "upper", "velocity", "effort"}
    assert (names(Link), names(Frame)) == ({"name", "inertia"}, {"name", "link", "pose"})
    assert names(lw.Weld) == {"frame", "to", "pose", "name", "compliance"}
    assert names(lw.Fluid) == {"density", "viscosity", "wind", "bodies"}
    assert names(lw.DragBody) == {"link", "pose", "shape", "size", "coefficients"}
    assert names(lw.Point) == {"frame", "to", "position", "offset", "name", "compliance"}
    parts = {"name", "links", "joints", "gravity", "frames", "reduced", "constraints", "passive"}
    # the file that it was read from is not written; contacts are not either, and lw.save says so
    assert set(everything()._parts()) == {*parts, "fluid", "source", "contacts"}
    assert math.isinf(Limits().lower)


def test_contacts_that_a_file_cannot_hold_are_named(tmp_path):
    arm = lw.load("two_link")
    touching = arm.with_contacts([lw.Contact(arm.default_frame(), name="hand"), lw.Ground(height=0.1)])
    for ending in ("toml", "urdf", "xml"):
        with pytest.warns(lw.ExportWarning, match="hand: no file format holds contacts"):
            lw.save(touching, tmp_path / f"touching.{ending}")
        with pytest.raises(lw.ModelError, match="ground: no file format holds contacts"):
            lw.save(touching, tmp_path / f"touching.{ending}", strict=True)


def test_long_chains(tmp_path):
    for n, ending in ((300, "toml"), (300, "urdf"), (240, "xml")):
        chain = lw.planar_chain(n)
        lw.save(chain, tmp_path / f"chain.{ending}")
        assert lw.load(tmp_path / f"chain.{ending}").content() == chain.content()
    text = (tmp_path / "chain.xml").read_text()
    plain = text[: text.index("  <custom>")] + "</mujoco>\n"
    assert read_mjcf(plain.encode(), "chain.xml").dof == 240
    with pytest.raises(lw.ModelError, match=r"link '.*': bodies within bodies more than 247 deep"):
        lw.save(lw.planar_chain(300), tmp_path / "chain.xml")


def test_couplings_stand_among_the_elements_of_mjcf(tmp_path):
    arm = lw.load("two_link")
    robot = arm.with_constraints([lw.Coupling(arm.joint_names[1], arm.joint_names[0], 0.5, 0.1)])
    lw.save(robot, tmp_path / "robot.xml")
    text = (tmp_path / "robot.xml").read_text()
    plain = read_mjcf((text[: text.index("  <custom>")] + "</mujoco>\n").encode(), "robot.xml")
    (relation,) = [joint.mimic for joint in plain.joints if joint.mimic]
    assert (relation.joint, relation.multiplier, relation.offset) == (arm.joint_names[0], 0.5, 0.1)
