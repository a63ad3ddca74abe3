"""Tendons that stop at the ends of their range: closed forms, joints that stop, and MuJoCo."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.contact import lines
from linkwise.algorithms.contact.world_axes import VelocityAxes
from linkwise.model.joint import Mimic
from linkwise.robot.engine_coordinates import coordinates

STEP, G = 0.002, 9.81


def slides(*masses: float) -> lw.Robot:
    """Bodies that slide vertically beside each other."""
    links, joints = [lw.Link("base")], []
    for k, mass in enumerate(masses):
        links.append(lw.Link(f"b{k}", lw.Inertia.from_com(mass, (0, 0, 0), (0.01, 0.01, 0.01))))
        place = lw.Transform.from_rpy((float(k), 0.0, 0.0))
        joints.append(lw.Joint(f"j{k}", "prismatic", "base", f"b{k}", place, (0.0, 0.0, 1.0)))
    return lw.Robot("slides", links, joints)


def stepped(robot: lw.Robot, q, qd, count: int, step: float = STEP):
    tau = np.zeros(robot.dof)
    for _ in range(count):
        q, qd, _ = robot.contact_step(q, qd, tau, step=step)
    return q, qd


def test_two_weights_on_one_tendon_are_an_atwood_machine():
    # q0 + r q1 >= 0 holds both: with the impulse p, m0 a0 = p - m0 g, m1 a1 = r p - m1 g, a0 + r a1 = 0
    masses, r, count = (2.0, 0.5), 1.7, 200
    robot = slides(*masses).with_contacts([lw.Tendon({"j0": 1.0, "j1": r}, lower=0.0)])
    q, qd = stepped(robot, np.zeros(2), np.zeros(2), count)
    force = G * (1.0 + r) / (1.0 / masses[0] + r * r / masses[1])
    wanted = np.array([force / masses[0] - G, r * force / masses[1] - G])
    np.testing.assert_allclose(qd, wanted * count * STEP, rtol=1e-10)
    assert abs(q[0] + r * q[1]) < 1e-12
    # where it is above its end, both fall freely until it gets there
    _, qd = stepped(robot, np.array([10.0, 0.0]), np.zeros(2), count)
    np.testing.assert_allclose(qd, -G * count * STEP, rtol=1e-12)


def test_a_tendon_of_one_joint_is_a_stop_of_that_joint():
    free = slides(1.3)
    joint = replace(free.joints[0], limits=lw.Limits(lower=-0.1, upper=0.2))
    for restitution in (0.0, 0.6):
        stop = lw.Robot("slides", free.links, [joint]).with_contacts([lw.Stop("j0", restitution)])
        for weight in (2.0, -2.0):
            low, high = sorted((-0.1 * weight, 0.2 * weight))
            tendon = lw.Tendon({"j0": weight}, lower=low, upper=high, restitution=restitution)
            for speed in (0.0, 3.0):
                wanted = stepped(stop, np.zeros(1), np.array([speed]), 120)
                found = stepped(free.with_contacts([tendon]), np.zeros(1), np.array([speed]), 120)
                np.testing.assert_allclose(found, wanted, atol=1e-11)
                assert -0.1 - 1e-9 < found[0][0] < 0.2 + 1e-9


def test_followers_locked_joints_and_names_of_scenes():
    bare = slides(1.0, 2.0, 0.7)
    weights = {"j0": 1.0, "j1": 2.0, "j2": 0.5}
    robot = bare.with_contacts([lw.Tendon(weights, lower=-0.3, upper=5.0, name="three")])
    # a locked joint moves the ends
    locked = robot.lock({"j1": 0.25})
    assert locked.contact_parts == (lw.Tendon({"j0": 1.0, "j2": 0.5}, lower=-0.8, upper=4.5, name="three"),)
    q, _ = stepped(locked, np.zeros(2), np.zeros(2), 400)
    assert q @ [1.0, 0.5] == pytest.approx(-0.8, abs=1e-9)
    assert robot.lock({"j0": 0.0, "j1": 0.0, "j2": 0.0}).contact_parts == ()
    # a follower counts with its offset
    joints = [*bare.joints[:2], replace(bare.joints[2], mimic=Mimic("j0", -3.0, 0.1, True))]
    coupled = lw.Robot("coupled", bare.links, joints).with_contacts([lw.Tendon(weights, lower=-0.3)])
    q, qd = stepped(coupled, np.zeros(2), np.zeros(2), 400)
    assert q[0] + 2.0 * q[1] + 0.5 * (0.1 - 3.0 * q[0]) == pytest.approx(-0.3, abs=1e-9)
    assert abs(qd[0] + 2.0 * qd[1] - 1.5 * qd[0]) < 1e-9
    # a scene has the same motion twice
    scene = lw.Scene([robot, lw.Body.box((0.1, 0.1, 0.1), mass=1.0, name="cube")])
    start = scene.neutral
    moved, _ = stepped(scene, start, np.zeros(scene.dof), 200)
    alone, _ = stepped(robot, np.zeros(3), np.zeros(3), 200)
    places = [k for k, name in enumerate(scene.joint_names) if "j" in name and name[-1].isdigit()]
    assert len(places) == 3
    np.testing.assert_allclose(moved[places[0] : places[-1] + 1], alone, atol=1e-9)
    # two robots with equal names: those of the second one get its name before them
    both = [*robot.contact_parts, lw.Contact("b2", name="toe")]
    pair = [lw.Robot(name, bare.links, bare.joints).with_contacts(both) for name in ("one", "two")]
    scene = lw.Scene(pair)
    assert [part.name for part in scene.contact_parts] == ["three", "toe", "two/three", "two/toe"]
    assert scene.contact_names == ("toe", "two/toe")


ARM = """<mujoco><compiler angle="radian"/><option timestep="0.001"/><worldbody><geom type="plane" size="9 9 1"/>
<body name="a" pos="0 0 2"><joint name="j0" axis="0 1 0" damping="0.3" {ref}/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="1" contype="0" conaffinity="0"/>
<body name="b" pos="0.3 0 0"><joint name="j1" axis="0 1 0" damping="0.3"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.5" contype="0" conaffinity="0"/></body></body>
<body name="c" pos="1 0 2"><joint name="j2" type="slide" axis="0 0 1" damping="3"/>
<geom type="sphere" size="0.05" mass="0.7"/></body></worldbody><tendon>{tendon}</tendon></mujoco>"""
SUM = (
    '<fixed name="sum" {ends}><joint joint="j0" coef="1"/><joint joint="j1" coef="-0.7"/>'
    '<joint joint="j2" coef="2.5"/></fixed>'
)


def in_both(path, text):
    """The robot of a file, loaded without a warning, and MuJoCo's model, data and coordinates of it."""
    mujoco = pytest.importorskip("mujoco")
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = lw.load(path, contact=True)
    model = mujoco.MjModel.from_xml_string(text)
    return robot, model, mujoco.MjData(model), coordinates(robot, "mujoco", model)


def test_fixed_tendons_of_files_stop_as_in_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    weights, path = np.array([1.0, -0.7, 2.5]), tmp_path / "scene.xml"
    for ref, upper, switch in (("", 0.2, ""), ('ref="0.4"', 0.45, 'limited="true"')):
        ends = f'{switch} range="-0.3 {upper}"'
        text = ARM.format(ref=ref, tendon=SUM.format(ends=ends))
        robot, model, data, between = in_both(path, text)
        q, qd, lengths = between.own_positions(data.qpos), np.zeros(robot.dof), []
        for _ in range(1000):
            q, qd, _ = robot.contact_step(q, qd, np.zeros(robot.dof), step=0.001)
            mujoco.mj_step(model, data)
            lengths.append(q @ weights)
        assert min(lengths) == pytest.approx(-0.3, abs=1e-6), "it gets to the end, and not further"
        assert max(lengths) < upper + 1e-6
        assert np.abs(q - between.own_positions(data.qpos)).max() < 0.03


def test_tendons_that_are_not_modelled_are_named(tmp_path):
    path = tmp_path / "scene.xml"
    path.write_text(ARM.format(ref="", tendon=SUM.format(ends='range="-0.3 0.2"')))
    with pytest.warns(lw.ModelWarning, match="tendon 'sum' has no ends here: joint 'j1' does not move"):
        lw.load(path, contact=True, lock={"j1": 0.0})
    robot = slides(1.0, 1.0)
    for weights, ends, said in (
        ({"j0": 0.0}, {"lower": 0.0}, "at least one weight"),
        ({"j0": 1.0}, {}, "a range with an end"),
        ({"j0": 1.0}, {"lower": 1.0, "upper": 0.0}, "the lower one first"),
        ({"j0": 1.0}, {"lower": float("nan")}, "a range with an end"),
        ({"j0": float("inf")}, {"lower": 0.0}, "weight of j0"),
        ({"j0": 1.0}, {"lower": 0.0, "restitution": 2.0}, "restitution"),
    ):
        with pytest.raises(lw.LinkwiseError, match=said):
            lw.Tendon(weights, **ends)
    with pytest.raises(lw.LinkwiseError, match="tendon 'x': no joint 'j7' that moves"):
        robot.with_contacts([lw.Tendon({"j7": 1.0}, lower=0.0, name="x")])
    floating = robot.with_base("floating")
    with pytest.raises(lw.LinkwiseError, match="more than one position"):
        floating.with_contacts([lw.Tendon({"root_joint": 1.0}, lower=0.0)])
    with pytest.raises(lw.LinkwiseError, match="expected a list"):
        robot.with_contacts(lw.Tendon({"j0": 1.0}, lower=0.0))


def test_rates_of_lines_are_derivatives_of_their_lengths():
    robot = lw.load("panda").with_base("floating")
    robot = robot.with_frames([lw.Frame("tip", robot.link_names[-1], lw.Transform.from_rpy((0.1, 0.2, 0.3)))])
    names = [robot.link_names[k] for k in (2, 5, 5)]
    setting = robot.with_contacts([lw.Contact("tip")]).contact_setting({})
    links, rng = setting.links(), np.random.default_rng(1)
    for through in (["tip", "base"], [*names, "tip"], [names[0], "world_point", "tip", names[1]]):
        held = robot.with_frames([lw.Frame("world_point", "base", lw.Transform.from_rpy((1.0, 2.0, 0.5)))])
        points = [(-1, held.locate(f)[1]) if f == "base" else held.locate(f) for f in through]
        row = lines.TendonRow((), points, 0.0, 1.0, 0.0)

        def at(q, row=row):
            own = links.grouped([float(x) for x in q], positions=True)
            axes = VelocityAxes.of(links, own, in_world=True)
            length, rates = lines.tendon(links, own, axes.frames, row)
            return float(length), np.array(rates, float), axes

        q, v = robot.random(rng), rng.normal(size=robot.dof)
        _, rates, axes = at(q)
        step = 1e-6
        slope = (at(robot.integrate(q, step * v))[0] - at(robot.integrate(q, -step * v))[0]) / (2 * step)
        assert rates @ np.array(axes.vector(list(v)), float) == pytest.approx(slope, abs=2e-8)


ROPE = """<mujoco><compiler angle="radian"/><option timestep="0.001"/><worldbody><geom type="plane" size="9 9 1"/>
<site name="anchor" pos="0 0 1"/><body name="a" pos="0.5 0 1"><joint name="j0" axis="0 1 0" damping="0.1"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.4 0 0" mass="1" contype="0" conaffinity="0"/>
<site name="a" pos="0.4 0 0"/></body>
<body name="box" pos="0.1 0.1 0.9"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="0.5"/>
<site name="hook"/></body></worldbody>
<tendon><spatial name="rope" solreflimit="0.002 1" solimplimit="0.99 0.999 0.0001" {ends}>{path}</spatial>
</tendon></mujoco>"""


def test_lines_through_sites_of_files_stop_as_in_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path, sites = tmp_path / "scene.xml", ("hook", "anchor", "a")
    for used, upper in ((sites[:2], 0.3), (sites, 1.4)):
        line = "".join(f'<site site="{name}"/>' for name in used)
        text = ROPE.format(ends=f'limited="true" range="0 {upper}"', path=line)
        robot, model, data, between = in_both(path, text)
        q, qd = between.own_positions(data.qpos), np.zeros(robot.dof)
        frames = [{"a": "a_site"}.get(name, name) for name in used]
        longest = 0.0
        for _ in range(400):
            q, qd, _ = robot.contact_step(q, qd, np.zeros(robot.dof), step=0.001)
            mujoco.mj_step(model, data)
            places = np.array([robot.pose(q, frame=frame)[:3, 3] for frame in frames])
            longest = max(longest, np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
        # a straight line that turns is longer at the end of a step than its rate says
        assert upper - 1e-4 < longest < upper + 1e-4, "it gets to the end, and hardly further"
        assert np.abs(q - between.own_positions(data.qpos)).max() < 0.03
    path.write_text(ROPE.format(ends='range="0 1"', path=line.replace("/>", "/><pulley divisor='2'/>", 1)))
    with pytest.raises(lw.ModelError, match=r"rope.*a tendon with a <pulley> is not modelled"):
        lw.load(path, contact=True)
    robot = slides(1.0, 1.0)
    for through, said in (
        (["b0"], "at least two frames"),
        (["b0", "b0"], "belong to one link"),
        ("b0", "a list of frames"),
    ):
        with pytest.raises(lw.LinkwiseError, match=said):
            robot.with_contacts([lw.Tendon(through=through, upper=1.0)])
