"""Contacts of scene files: limbs of large robots, stops, height fields, springs; beside MuJoCo."""

from __future__ import annotations

import struct
import warnings
import zlib

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.contacts import stops_of
from linkwise.robot.engine_coordinates import coordinates

SPHERE = '<geom type="sphere" size="0.02" mass="0.3"/>'


def loaded(tmp_path, text: str, **files: bytes) -> lw.Robot:
    for name, data in files.items():
        (tmp_path / name.replace("_", ".")).write_bytes(data)
    path = tmp_path / "scene.xml"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lw.load(path, contact=True)


def body(name: str, depth: int, inner: str = "") -> str:
    """A chain of bodies with hinges, a sphere on each."""
    for k in reversed(range(depth)):
        joint = f'<joint name="{name}{k}" axis="{k % 2} {1 - k % 2} 0" range="-60 60" limited="true"/>'
        inner = f'<body name="{name}_{k}" pos="0 0 -0.1">{joint}{SPHERE}{inner}</body>'
    return inner


def test_candidates_of_large_robots_are_chosen_by_limb(tmp_path):
    arms = body("arm", 7) + body("left", 7)
    legs = body("leg", 6) + body("foot", 6)
    text = (
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="trunk" pos="0 0 1"><freejoint/>'
        f'<geom type="box" size="0.1 0.1 0.1" mass="5"/>{legs}'
        f'<body name="torso" pos="0 0 0.5"><joint name="waist"/>{SPHERE}{arms}</body></body></worldbody></mujoco>'
    )
    robot = loaded(tmp_path, text)
    assert robot.dof == 33
    limbs = {contact.name: contact for contact in robot.contacts if contact.nearest is not None}
    by_limb = [{shape.frame.split("_")[0] for shape in contact.shapes} for contact in limbs.values()]
    for name, nearest in (("leg", 4), ("foot", 4), ("arm", 2), ("left", 2)):
        assert {name} in by_limb, by_limb
        assert [c.nearest for c in limbs.values() if c.shapes[0].frame.startswith(f"{name}_")] == [nearest]
    # every geom is in one of the groups, and joints stop
    frames = [shape.frame for contact in robot.contacts for shape in contact.shapes]
    assert len(frames) == len(set(frames)) == 28
    assert len(stops_of(robot.contact_parts)) == 26
    # a robot with few joints takes the nearest of all, as before
    small = loaded(tmp_path, text.replace(arms, "").replace(body("foot", 6), ""))
    assert [c.nearest for c in small.contacts if c.nearest is not None] == [8]


def test_joints_of_files_stop_as_in_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    text = (
        '<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="1 1 1"/><body name="arm" pos="0 0 1">'
        '<joint name="swing" axis="0 1 0" range="-20 20" limited="true"/>'
        '<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1"/></body></worldbody></mujoco>'
    )
    robot, model = loaded(tmp_path, text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    q, qd = np.zeros(1), np.zeros(1)
    for _ in range(1000):
        q, qd, _ = robot.contact_step(q, qd, np.zeros(1), step=0.001)
        mujoco.mj_step(model, data)
    assert q[0] == pytest.approx(np.deg2rad(20.0), abs=1e-6)
    assert abs(qd[0]) < 1e-9
    assert data.qpos[0] == pytest.approx(q[0], abs=0.02)


def test_joints_that_follow_others_or_are_in_loops_stop_as_in_mujoco(tmp_path):
    """A joint that follows at the ratio −2 ends first; the crank of a four-bar linkage ends at its own range."""
    mujoco = pytest.importorskip("mujoco")
    bar = '<geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1" contype="0" conaffinity="0"/>'
    floor = '<geom type="plane" size="1 1 1"/><geom type="sphere" size="0.01" pos="2 0 1"/>'
    ball = '<geom type="sphere" size="0.01" mass="0.01"/>'
    coupled = (
        '<mujoco><compiler autolimits="true"/><option timestep="0.001"/><worldbody>'
        + floor
        + '<body name="x" pos="0 0 1">'
        f'<joint name="lead" axis="0 1 0" range="-60 60" damping="0.1"/>{bar}{ball}</body><body name="y" pos="0 1 1">'
        f'<joint name="follow" axis="0 1 0" range="-30 50" damping="0.1"/>{bar}</body></worldbody><equality>'
        '<joint joint1="follow" joint2="lead" polycoef="0.1 -2 0 0 0" solref="0.004 1"/></equality></mujoco>'
    )
    loop = (
        '<mujoco><compiler autolimits="true"/><option timestep="0.001"/><worldbody>'
        + floor
        + '<body name="a" pos="0 0 1">'
        f'<joint name="crank" axis="0 1 0" range="-60 5" damping="0.1"/>{bar}{ball}<body name="b" pos="0.3 0 0">'
        f'<joint name="rod" axis="0 1 0" damping="0.1"/>{bar}</body></body><body name="c" pos="0 0 0.7">'
        f'<joint name="rocker" axis="0 1 0" damping="0.1"/>{bar.replace("0.3 0 0", "0.6 0 0.3")}</body></worldbody>'
        '<equality><connect body1="b" body2="c" anchor="0.3 0 0" solref="0.004 1"/></equality></mujoco>'
    )
    for text, end in ((coupled, (0.1 - np.deg2rad(50.0)) / 2), (loop, np.deg2rad(5.0))):
        robot, model = loaded(tmp_path, text), mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        between = coordinates(robot, "mujoco", model)
        q, qd, tau = between.own_positions(data.qpos), np.zeros(robot.dof), np.zeros(robot.dof)
        for _ in range(1500):
            q, qd, _ = robot.contact_step(q, qd, tau, step=0.001)
            mujoco.mj_step(model, data)
        assert q[0] == pytest.approx(end, abs=1e-5), robot.joint_names
        assert np.abs(qd).max() < 1e-6
        assert np.abs(q - between.own_positions(data.qpos)).max() < 0.03


def test_stops_of_a_range_without_a_position_are_refused():
    """Ranges of followers: tests/model/test_follower_limits.py."""
    joint = lw.Joint("j1", "revolute", "base", "l1", limits=lw.Limits(1.0, 0.1))
    links = [lw.Link(name, lw.Inertia.from_com(1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))) for name in ("base", "l1")]
    with pytest.raises(lw.ModelError, match="'j1' has no position within its limits"):
        lw.Robot("one", links, [joint]).with_contacts([lw.Contact("l1")], stops=True)


def test_negative_solref_is_the_spring_that_mujoco_has_at_rest(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    for mass, stiffness, impedance in ((0.3, 100.0, 0.95), (2.0, 60.0, 0.9)):
        law = f'solref="-{stiffness} -20" solimp="{impedance} {impedance} 0.001" condim="1"'
        text = (
            f'<mujoco><worldbody><geom type="plane" size="1 1 1" {law}/><body name="ball" pos="0 0 0.05"><freejoint/>'
            f'<geom type="sphere" size="0.05" mass="{mass}" {law}/></body></worldbody></mujoco>'
        )
        robot, model = loaded(tmp_path, text), mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        q, qd = np.array([0, 0, 0.05, 0, 0, 0, 1.0]), np.zeros(6)
        for _ in range(2000):
            q, qd, _ = robot.contact_step(q, qd, np.zeros(6))
            mujoco.mj_step(model, data)
        assert np.abs(qd).max() < 1e-6
        assert 0.05 - q[2] == pytest.approx(0.05 - data.qpos[2], rel=0.01)
        assert 0.05 - q[2] > 1e-3


def png(values: np.ndarray, bits: int = 8) -> bytes:
    """A grey image; lines with all filters that need no prediction, Paeth among them for zeros above."""
    rows, columns = values.shape
    data = values.astype(">u2" if bits == 16 else np.uint8)
    step, lines, above = bits // 8, b"", np.zeros(columns * (bits // 8), int)
    for k in range(rows):
        line = np.frombuffer(data[k].tobytes(), np.uint8).astype(int)
        left = np.concatenate([np.zeros(step, int), line[:-step]])
        kind = k % 4
        change = (line, line - left, line - above, line - (left + above) // 2)[kind]
        lines += bytes([kind]) + (change % 256).astype(np.uint8).tobytes()
        above = line
    found = b"\x89PNG\r\n\x1a\n"
    header = struct.pack(">IIBBBBB", columns, rows, bits, 0, 0, 0, 0)
    for kind, part in ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")):
        found += struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
    return found


def test_height_fields_of_files_are_those_of_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(0)
    values = rng.integers(0, 255, (5, 7))
    numbers = " ".join(map(str, values.ravel()))
    binary = struct.pack("<ii", 5, 7) + values.astype("<f4").tobytes()
    cases = {
        f'nrow="5" ncol="7" elevation="{numbers}"': {},
        'file="field.png"': {"field_png": png(values)},
        'file="field.bin" content_type="image/vnd.mujoco.hfield"': {"field_bin": binary},
    }
    for attributes, files in cases.items():
        text = (
            f'<mujoco><asset><hfield name="ground" size="2 1 0.3 0.1" {attributes}/></asset><worldbody>'
            '<geom type="hfield" hfield="ground" pos="0.1 0.2 0.05"/><body name="ball" pos="0 0 1"><freejoint/>'
            '<geom type="sphere" size="0.05" mass="1"/></body></worldbody></mujoco>'
        )
        robot = loaded(tmp_path, text, **files)
        assets = {name.replace("_", "."): data for name, data in files.items()}
        model = mujoco.MjModel.from_xml_string(text, assets)
        (contact,) = robot.contacts
        (field,) = contact.other_shapes
        theirs = 0.3 * model.hfield_data.reshape(5, 7).T
        np.testing.assert_allclose(np.array(field.heights), theirs, atol=1e-7)
        assert tuple(field.sizes) == (4.0, 2.0)
        # above a grid point MuJoCo's ray and our gap have the same ground
        at = np.array([0.1 - 2.0 + 4.0 * 2 / 6, 0.2 - 1.0 + 2.0 * 3 / 4])
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        low = mujoco.mj_rayHfield(model, data, 0, np.array([*at, 2.0]), np.array([0, 0, -1.0]))
        low = low[0] if isinstance(low, tuple) else low
        assert 2.0 - low == pytest.approx(0.05 + theirs[2, 3], abs=1e-6)
    sixteen = loaded(tmp_path, text.replace(attributes, 'file="field.png"'), field_png=png(251 * values, 16))
    np.testing.assert_allclose(
        np.array(sixteen.contacts[0].other_shapes[0].heights), theirs[:, ::-1], atol=1e-7
    )
    for bad, files in (
        ('file="none.png"', {}),
        ('file="field.png"', {"field_png": b"\x89PNG\r\n\x1a\nxx"}),
        ('file="field.bin"', {"field_bin": b"1234567890"}),
        ('nrow="2" ncol="2"', {}),
    ):
        with pytest.raises(lw.ModelError, match=r"field|none|heights"):
            loaded(tmp_path, text.replace(attributes, bad), **files)


NEIGHBOURS = """<mujoco><option>{flag}</option><worldbody>
<body name="a"><joint name="j" axis="0 0 1"/><geom name="a" size="0.1" mass="1"/>
<body name="b" pos="0.15 0 0"><joint name="k" axis="0 1 0"/><geom name="b" size="0.1" mass="1"/>{boxes}
<body name="c" pos="0.3 0 0"><joint name="l" axis="0 1 0"/><geom name="c" size="0.1" mass="1"/></body></body></body>
<body name="d" pos="0 0.15 0"><joint name="m" axis="0 0 1"/><geom name="d" size="0.1" mass="1"/>{boxes}</body>
</worldbody><contact>{pairs}</contact></mujoco>"""


@pytest.mark.parametrize(
    ("flag", "pairs"),
    [
        ("", ""),
        ("", '<pair geom1="b" geom2="a" friction="0.3 0.3"/>'),  # pairs that are named pass all filters
        ("", '<exclude body1="a" body2="d"/><pair geom1="d" geom2="a"/>'),
        ('<flag filterparent="disable"/>', ""),
        ('<flag filterparent="disable"/>', '<exclude body1="a" body2="b"/>'),
    ],
)
def test_links_touch_those_that_carry_them_where_the_file_says_so(tmp_path, flag, pairs):
    mujoco = pytest.importorskip("mujoco")
    text = NEIGHBOURS.format(flag=flag, pairs=pairs, boxes="")
    robot = loaded(tmp_path, text)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    wanted = {
        frozenset(model.geom(int(k)).name for k in each.geom): (each.dist, each.friction[0])
        for each in data.contact
    }
    gaps = robot.contact_gaps(np.zeros(4))
    found = {
        frozenset((each.frame, each.other)): (gap, each.friction)
        for each, gap in zip(robot.contacts, gaps, strict=True)
        if gap < 0.0
    }
    assert found.keys() == wanted.keys()
    for pair, numbers in found.items():
        np.testing.assert_allclose(numbers, wanted[pair], atol=1e-12)


def test_pairs_that_a_file_names_go_before_others(tmp_path):
    """Boxes make too many candidates: all pairs were left out, those that the file names with them."""
    boxes = "".join(f'<geom type="box" size="0.1 0.1 0.1" pos="0 0 {z}"/>' for z in range(4))
    path = tmp_path / "scene.xml"
    path.write_text(NEIGHBOURS.format(flag="", pairs='<pair geom1="a" geom2="b"/>', boxes=boxes))
    with pytest.warns(lw.ModelWarning, match="pairs of links or things in the world .* are left out"):
        robot = lw.load(path, contact=True)
    assert [(each.frame, each.other) for each in robot.contacts] == [("a", "b")]


def test_switches_of_files_count(tmp_path):
    text = (
        '<mujoco><option><flag {}/></option><worldbody><geom type="plane" size="1 1 1"/><body name="a"><freejoint/>'
        '<geom size="0.1"/><body name="b"><joint name="j" range="-10 10"/><geom size="0.05" pos="0.3 0 0"/></body>'
        '</body></worldbody><tendon><fixed range="-1 1"><joint joint="j" coef="2"/></fixed></tendon></mujoco>'
    )

    def kinds(flag: str) -> list[str]:
        return [type(part).__name__ for part in loaded(tmp_path, text.format(flag)).contact_parts]

    assert kinds('contact="enable"') == ["Ground", "Contact", "Contact", "Tendon", "Stop"]
    assert kinds('limit="disable"') == ["Ground", "Contact", "Contact"]
    for flag in ("contact", "constraint"):
        with pytest.raises(lw.ModelError, match=f"<flag {flag}='disable'/> turns all contacts off"):
            kinds(f'{flag}="disable"')
    with pytest.raises(lw.ModelError, match="override"):
        kinds('override="enable"')
