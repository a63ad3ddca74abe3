"""MJCF robots against MuJoCo itself: mj_inverse, mj_fullM and the frames of mj_kinematics."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from mjcf_efforts import largest_efforts
from mjcf_stubs import with_stubs

import linkwise as lw
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.functions import arrays
from linkwise.functions.table import Setting, function_named

mujoco = pytest.importorskip("mujoco")

DATA = Path(os.environ.get("LINKWISE_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
FILES = sorted((DATA / "mjcf").glob("*/*.xml"))
SHARE = 1.0  # of the files that MuJoCo loads must load and agree
COMPARISON = "MJCF files compared with MuJoCo"
TOLERANCE = 1e-9  # relative; what is seen is round-off, 1e-14


def agree(xml: str, *, for_mujoco: str | None = None, states: int = 8) -> lw.Robot:
    """Compare a file given as text, see ``compare``; gives the robot back."""
    robot = lw.Robot.from_model(read_mjcf(xml.encode(), "arm.xml"))
    compare(robot, mujoco.MjModel.from_xml_string(for_mujoco or xml), states)
    return robot


def compare(robot: lw.Robot, peer, states: int) -> None:
    """Inverse dynamics (with damping), mass matrix and poses in random states."""
    # friction loss, limits, contacts and equalities are constraints there
    peer.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(peer)
    n = peer.nv
    assert (robot.dof, robot.nq) == (n, peer.nq)
    names = [mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_JOINT, k) for k in range(peer.njnt)]
    assert [
        mine if theirs is None else theirs for mine, theirs in zip(robot.joint_names, names, strict=True)
    ] == [*robot.joint_names]
    damping = np.concatenate([[joint.viscous_friction] * joint.dof for joint in robot.coordinate_joints])
    np.testing.assert_allclose(damping, peer.dof_damping)
    rng = np.random.default_rng(0)
    bodies = [(k, mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_BODY, k)) for k in range(1, peer.nbody)]
    sites = [(k, mujoco.mj_id2name(peer, mujoco.mjtObj.mjOBJ_SITE, k)) for k in range(peer.nsite)]
    poses = link_poses(robot)
    for _ in range(states):
        q = robot.random(rng)
        qd, qdd = rng.normal(size=(2, n))
        data.qpos[:], turn, bias = as_mujoco(robot, q, qd)
        data.qvel[:], data.qacc[:] = turn @ qd, turn @ qdd + bias
        mujoco.mj_inverse(peer, data)
        M = np.zeros((n, n))
        mujoco.mj_fullM(peer, data, M)
        close(value(robot, "mass_matrix", q=q), turn.T @ M @ turn)
        torques = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd, friction=False)
        if robot.fluid is not None:
            torques += value(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd)
            torques -= value(robot.with_fluid(None), "inverse_dynamics", q=q, qd=qd, qdd=qdd)
        close(torques + damping * qd, turn.T @ data.qfrc_inverse)
        placed = poses(q)
        for number, name in bodies:
            if name is not None:
                close(placed[name][:3, 3], data.xpos[number], scale=1.0)
                close(placed[name][:3, :3].ravel(), data.xmat[number], scale=1.0)
        for number, name in sites:
            if name is not None:
                own = placed.get(f"{name}_site", placed.get(name))
                close(own[:3, 3], data.site_xpos[number], scale=1.0)
                close(own[:3, :3].ravel(), data.site_xmat[number], scale=1.0)


def as_mujoco(robot: lw.Robot, q, qd):
    """(qpos, B, b): MuJoCo's positions (w of a quaternion first), and its velocities B q̇ and accelerations B q̈ + b.

    A free joint there has linear before angular velocities, the linear ones in the axes of the world.
    """
    qpos, turn, bias = q.copy(), np.eye(robot.dof), np.zeros(robot.dof)
    at = first = 0
    for joint in robot.coordinate_joints:
        if joint.free:
            x, y, z, w = q[at + joint.nq - 4 : at + joint.nq]
            qpos[at + joint.nq - 4 : at + joint.nq] = w, x, y, z
        if joint.type == "floating":
            R = lw.Transform.from_quaternion((0, 0, 0), (w, x, y, z)).rotation
            own = slice(first, first + 6)
            turn[own, own] = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
            bias[first : first + 3] = R @ np.cross(qd[first : first + 3], qd[first + 3 : first + 6])
        at, first = at + joint.nq, first + joint.dof
    return qpos, turn, bias


def link_poses(robot: lw.Robot):
    """A function of q that gives the poses of all frames by name, from the model itself."""

    def poses(q):
        parts = dict(
            zip(
                robot.joint_names,
                np.split(q, np.cumsum([j.nq for j in robot.coordinate_joints])[:-1]),
                strict=True,
            )
        )
        placed = {robot.base: np.eye(4)}
        for joint in robot.joints:
            own = joint.motion(parts[joint.name] if joint.moves else 0.0).matrix
            placed[joint.child] = placed[joint.parent] @ own
        for frame in robot.frames:
            placed[frame.name] = placed[frame.link] @ frame.pose.matrix
        return placed

    return poses


def value(robot: lw.Robot, name: str, *, friction: bool = True, **given) -> np.ndarray:
    """A function by its default algorithm on arrays: nothing is compiled."""
    row = function_named(name)
    found = arrays.run_on_arrays(row, Setting(robot, friction=friction), row.default, given)
    return next(iter(found.values()))


def close(mine, theirs, scale=0.0):
    scale = max(scale, float(np.max(np.abs(theirs))), 1e-3)
    assert float(np.max(np.abs(mine - theirs))) <= TOLERANCE * scale


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    """The collection with stand-ins for its meshes, a folder at a time."""
    made = {}

    def place(path: Path) -> Path:
        folder = path.relative_to(DATA / "mjcf").parts[0]
        if folder not in made:
            made[folder] = with_stubs(DATA / "mjcf" / folder, tmp_path_factory.mktemp(folder))
        return made[folder] / path.relative_to(DATA / "mjcf" / folder)

    return place


@pytest.mark.skipif(not FILES, reason=f"no MJCF files under {DATA}")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_robots_as_found_in_the_wild(path, stubs, record_property):
    def say(outcome: str) -> None:
        record_property("compared", (COMPARISON, f"{path.parent.name}/{path.name}", outcome))
        OUTCOMES[path] = outcome.split(":")[0]

    place = stubs(path)
    try:
        peer = mujoco.MjModel.from_xml_path(str(place))
    except ValueError as error:
        say("MuJoCo does not load it")
        pytest.skip(f"MuJoCo does not load it: {error}")
    try:
        robot = lw.load(place, mimic="independent")
    except lw.ModelError as error:
        say(f"refused: {str(error).rpartition('>: ')[2]}")
        raise
    compare(robot.with_constraints([]), peer, states=2)
    compare_constraints(robot, peer)
    efforts = largest_efforts(peer)
    limits = {joint.name: joint.limits.effort for joint in robot.joints if joint.name in efforts}
    assert limits == pytest.approx({name: efforts[name] for name in limits}, rel=1e-9)
    say("agrees")


def compare_constraints(robot: lw.Robot, peer) -> None:
    """How far the ends of every <connect> and <weld> are apart at a random position."""
    off = mujoco.mjtDisableBit
    peer.opt.disableflags = int(off.mjDSBL_CONTACT) | int(off.mjDSBL_LIMIT)
    data = mujoco.MjData(peer)
    q = robot.random(0)
    data.qpos[:] = as_mujoco(robot, q, np.zeros(robot.dof))[0]
    mujoco.mj_forward(peer, data)
    apart, row = [], 0
    for kind, active in zip(peer.eq_type, peer.eq_active0, strict=True):
        if active:
            rows = {mujoco.mjtEq.mjEQ_CONNECT: 3, mujoco.mjtEq.mjEQ_WELD: 6}.get(mujoco.mjtEq(kind), 1)
            apart += [np.linalg.norm(data.efc_pos[row : row + 3])] if rows > 1 else []
            row += rows
    assert len(apart) == len(robot.constraints)
    if apart:
        errors = value(robot, "constraint_errors", q=q)
        ends = np.cumsum([constraint.rows for constraint in robot.constraints])
        np.testing.assert_allclose([np.linalg.norm(errors[end - 3 : end]) for end in ends], apart, rtol=1e-9)


OUTCOMES: dict[Path, str] = {}


@pytest.mark.skipif(not FILES, reason=f"no MJCF files under {DATA}")
def test_nearly_all_files_agree():
    """After the test above: how many of the files that MuJoCo loads."""
    if len(OUTCOMES) < len(FILES):
        pytest.skip("not all files were compared in this process")
    known = [outcome for outcome in OUTCOMES.values() if not outcome.startswith("MuJoCo")]
    assert known.count("agrees") >= SHARE * len(known)


def arm(body: str, head: str = "") -> str:
    return f"<mujoco>{head}<worldbody>{body}</worldbody></mujoco>"


SOLID = '<inertial pos=".1 .02 -.05" mass="2" diaginertia=".03 .04 .05" quat="1 .2 .3 .4"/>'
TOOL = '<site name="tool" pos="0 0 .2"/>'
TIP = f'<body name="tip" pos=".5 .1 0"><joint name="last" axis="1 0 1"/>{SOLID}{TOOL}</body>'

FEATURES = {
    "plain": arm(f'<body name="a"><joint name="j"/>{SOLID}{TIP}</body>'),
    "joint_pos": arm(
        f'<body name="a" pos=".1 .2 .3"><joint name="j" pos=".3 -.1 .2" axis="1 2 3"/>{SOLID}{TIP}</body>'
    ),
    "ref_in_degrees": arm(
        f'<body name="a"><joint name="j" ref="35" pos="0 .1 0" axis="0 1 1"/>{SOLID}{TIP}</body>'
    ),
    "ref_of_a_slide": arm(
        f'<body name="a"><joint name="j" type="slide" ref=".3" axis="0 2 1"/>{SOLID}{TIP}</body>'
    ),
    "several_joints": arm(
        '<body name="a" pos=".1 .2 .3"><joint name="j1" pos=".3 -.1 .2" axis="1 2 3" ref="-20"/>'
        '<joint name="j2" type="slide" axis="0 1 1" ref=".1" pos="5 5 5"/>'
        '<joint name="j3" pos="0 .1 .2" axis="0 1 0"/>'
        f'<joint name="j4" axis="1 0 0" pos="0 0 .1"/>{SOLID}{TIP}</body>'
    ),
    "several_joints_ending_in_the_origin": arm(
        f'<body name="a"><joint name="j1" pos="1 0 0"/><joint name="j2" axis="1 0 0"/>{SOLID}{TIP}</body>'
    ),
    "euler_degrees": arm(f'<body name="a" euler="10 -20 30"><joint name="j"/>{SOLID}{TIP}</body>'),
    "euler_extrinsic_radians": arm(
        f'<body name="a" euler=".1 -.2 .3"><joint name="j" ref=".2"/>{SOLID}{TIP}</body>',
        '<compiler angle="radian" eulerseq="XYZ"/>',
    ),
    "euler_mixed": arm(
        f'<body name="a" euler="10 -20 30"><joint name="j"/>{SOLID}{TIP}</body>', '<compiler eulerseq="zYx"/>'
    ),
    "axisangle": arm(
        f'<body name="a" axisangle="1 2 3 40"><joint name="j" axis="1 0 0"/>{SOLID}{TIP}</body>'
    ),
    "xyaxes": arm(f'<body name="a" xyaxes="1 1 0 0 1 1"><joint name="j" axis="1 0 0"/>{SOLID}{TIP}</body>'),
    "zaxis": arm(
        f'<body name="a" zaxis="1 -2 .5"><joint name="j"/>{SOLID}'
        f'<body name="b" zaxis="0 0 -1" pos="0 0 1"><joint name="k" axis="1 0 0"/>{SOLID}{TIP}</body></body>'
    ),
    "quat_of_any_length": arm(f'<body name="a" quat="1 -1 0 0"><joint name="j"/>{SOLID}{TIP}</body>'),
    "full_inertia": arm(
        '<body name="a"><joint name="j" axis="1 1 0"/>'
        f'<inertial pos=".1 .2 .3" mass="2" fullinertia=".3 .4 .5 .01 .02 .03"/>{TIP}</body>'
    ),
    "default_classes": arm(
        f'<body name="a" childclass="x"><joint name="j"/>{SOLID}'
        f'<body name="b" pos=".3 0 0"><joint name="k" class="y"/>'
        f'{SOLID}<body name="c" pos="0 .3 0"><joint name="l" class="main" axis="1 0 0"/>'
        f"{SOLID}{TIP}</body></body></body>",
        '<default><joint damping=".5" armature=".1"/><default class="x"><joint axis="0 1 0" damping="2"/>'
        '<default class="y"><joint type="slide" armature=".3"/></default></default></default>',
    ),
    "frames": arm(
        '<frame pos="1 2 3" euler="10 20 30"><body name="a" pos=".1 0 0" euler="0 5 0">'
        '<frame pos="0 .1 .2" euler="30 0 0" childclass="x">'
        '<joint name="j" pos=".2 0 0"/><site name="s" pos="1 0 0"/>'
        f'<frame euler="0 40 0"><body name="b"><joint name="k" axis="1 0 0"/>{SOLID}</body></frame></frame>'
        f"{SOLID}</body></frame>",
        '<default><default class="x"><joint axis="0 1 0" damping="2"/></default></default>',
    ),
    "bodies_without_joints": arm(
        f'<body name="base" pos="0 0 1" euler="90 0 0">{SOLID}<geom type="mesh" mesh="m"/><body name="a">'
        f'<joint name="j" axis="1 1 0"/>{SOLID}<body name="t" pos=".1 .2 .3" quat=".3 .4 .5 .6">'
        f"{SOLID}{TIP}</body></body></body>"
    ),
    "branches": arm(
        f'<body name="a"><joint name="j"/>{SOLID}<body name="b"><joint name="k" axis="1 0 0"/>{SOLID}</body>'
        f"{TIP}</body>"
        f'<body name="c" pos="0 1 0"><joint name="l" axis="0 1 0"/>{SOLID}</body>'
    ),
    "free_body": arm(
        f'<body name="a" pos="1 2 3" euler="10 20 30"><freejoint name="f"/>{SOLID}{TIP}</body>'
        f'<body name="c" pos="0 1 0"><joint name="l" type="free" damping=".2"/>{SOLID}</body>'
    ),
    "ball_joints": arm(
        f'<body name="a" pos=".1 .2 .3"><joint name="j" type="ball" pos=".1 0 .2" damping=".3" armature=".1"/>{SOLID}'
        f'<body name="b" pos=".3 0 0" euler="0 40 0"><joint name="k" type="ball" stiffness="5"/>{SOLID}{TIP}</body>'
        "</body>"
    ),
    "gravcomp": arm(
        '<body name="a" gravcomp=".7"><joint name="j" axis="1 0 0" pos=".1 .2 0"/>'
        f'<joint name="j2" axis="0 1 0"/>{SOLID}'
        f'<body name="fixed" pos=".1 .2 .3" euler="10 20 30" gravcomp="1.5">{SOLID}</body>{TIP}</body>'
        f'<body name="c" pos="0 1 0" gravcomp="1"><freejoint name="l"/>{SOLID}</body>'
    ),
    "gravcomp_by_motors": arm(
        f'<body name="a" gravcomp=".7"><joint name="j" axis="1 0 0" actuatorgravcomp="true"/>{SOLID}{TIP}</body>'
    ),
    "gravcomp_without_passive_forces": arm(
        f'<body name="a" gravcomp=".7"><joint name="j" axis="1 0 0"/>{SOLID}{TIP}</body>',
        '<option><flag spring="disable" damper="disable"/></option>',
    ),
    "gravcomp_without_springs": arm(
        f'<body name="a" gravcomp=".7"><joint name="j" axis="1 0 0"/>{SOLID}{TIP}</body>',
        '<option><flag spring="disable"/></option>',
    ),
    "replicate": arm(
        f'<body name="a"><joint name="j"/>{SOLID}<replicate count="3" offset=".1 .2 0" euler="0 10 20" sep="-">'
        f'<body name="leg" pos=".3 0 0"><joint name="hip" axis="0 1 0"/>{SOLID}</body></replicate></body>'
    ),
    "names_left_out": arm(
        f"<body><joint/>{SOLID}<body><joint axis='1 0 0'/><joint axis='0 1 0'/>{SOLID}</body></body>"
    ),
    "other_gravity": arm(
        f'<body name="a"><joint name="j"/>{SOLID}{TIP}</body>', '<option gravity="1 2 -3"/>'
    ),
    "no_gravity": arm(
        f'<body name="a"><joint name="j"/>{SOLID}{TIP}</body>', '<option><flag gravity="disable"/></option>'
    ),
    "mocap_and_world_geoms": arm(
        f'<geom type="plane" size="1 1 1"/><body name="m" mocap="true"><geom size=".1"/></body>'
        f'<body name="a"><joint name="j"/>{SOLID}{TIP}</body>'
    ),
}


LIGHT = '<inertial pos=".1 .02 -.05" mass=".001" diaginertia=".00003 .00004 .00005" quat="1 .2 .3 .4"/>'
ODD = '<inertial pos=".1 .02 -.05" mass="1" diaginertia=".1 .1 .5" quat="1 .2 .3 .4"/>'
WITH_STATIC = (
    f'<geom type="plane" size="1 1 1"/><body name="base">{SOLID}<geom size=".1" mass="9"/><body name="a">'
    f'<joint name="j" axis="1 1 0"/>{LIGHT}{TIP}</body></body><body name="s"><geom size=".1" pos="1 1 1"/></body>'
)
COMPILED = {
    "bounds_of_a_body_without_inertia": arm(
        f'<body name="a" pos=".1 .2 .3"><joint name="j" axis="1 0 0"/><body name="b" pos="1 0 0">{SOLID}</body></body>',
        '<compiler boundmass=".5" boundinertia=".1"/>',
    ),
    "boundmass": arm(WITH_STATIC, '<compiler boundmass=".5"/>'),
    "boundinertia": arm(WITH_STATIC, '<compiler boundinertia=".01"/>'),
    "settotalmass": arm(WITH_STATIC, '<compiler settotalmass="7" boundmass=".5"/>'),
    "balanceinertia": arm(
        f'<body name="a"><joint name="j"/>{ODD}{TIP}</body>', '<compiler balanceinertia="true"/>'
    ),
    "balance_after_bounds": arm(
        f'<body name="a"><joint name="j"/>{ODD}{TIP}</body>',
        '<compiler balanceinertia="true" boundinertia=".2"/>',
    ),
    "fusestatic": arm(WITH_STATIC, '<compiler fusestatic="true"/>'),
    "discardvisual": arm(
        '<body name="a"><joint name="j" axis="1 0 0"/><geom size=".1" contype="0" conaffinity="0" group="1"/>'
        f'<geom size=".1 .2 .1" type="box" pos=".1 0 0"/>{TIP}</body>',
        '<compiler discardvisual="true"/>',
    ),
    "inertiagrouprange": arm(
        '<body name="a"><joint name="j" axis="1 0 0"/><geom size=".1" group="1" pos="1 0 0"/>'
        f'<geom size=".1 .2 .1" type="box" pos=".1 0 0" group="3"/>{TIP}</body>',
        '<compiler inertiagrouprange="2 4"/>',
    ),
    "settings_add_up": arm(
        f'<body name="a" euler=".1 .2 .3"><joint name="j" axis="1 0 0" ref=".3"/>{SOLID}{TIP}</body>',
        '<compiler angle="radian"/><option gravity="1 2 3"/><compiler eulerseq="ZYX"/><option timestep=".001"/>',
    ),
}
FEATURES |= COMPILED


@pytest.mark.parametrize("feature", FEATURES)
def test_feature(feature):
    xml = FEATURES[feature]
    agree(xml, for_mujoco=re.sub(r'<geom type="mesh"[^>]*/>', "", xml))


GEOMS = {
    "sphere": '<geom size=".1" pos=".1 0 .2"/>',
    "capsule": '<geom type="capsule" size=".1 .3" pos=".1 0 .2" euler="10 20 30"/>',
    "cylinder": '<geom type="cylinder" size=".1 .3" mass="3" pos=".1 0 .2" euler="10 20 30"/>',
    "box": '<geom type="box" size=".1 .3 .2" density="500" pos=".1 0 .2" euler="10 20 30"/>',
    "ellipsoid": '<geom type="ellipsoid" size=".1 .3 .2" pos=".1 0 .2" euler="10 20 30"/>',
    "without_mass": '<geom size=".1"/><geom size=".2" group="6"/><geom size=".2" mass="0" pos="1 1 1"/>',
    "capsule_fromto": '<geom type="capsule" size=".1" fromto="0 0 0 .3 .4 .5"/>',
    "box_fromto": '<geom type="box" size=".1 .2" fromto=".1 .2 .3 .3 .4 .5"/>',
    "several": '<geom type="box" size=".1 .2 .3"/>'
    '<frame euler="0 30 0" pos="0 0 .3"><geom size=".1" pos=".1 0 0"/></frame>',
    "class": '<geom class="heavy" size=".1 .2"/>',
    "shells": '<geom size=".1" shellinertia="true" pos=".1 0 .2"/>'
    '<geom type="capsule" size=".1 .3" shellinertia="true" euler="10 20 30"/>'
    '<geom type="box" size=".1 .3 .2" shellinertia="true" euler="10 20 30" density="5"/>'
    '<geom type="cylinder" size=".1 .3" shellinertia="true" mass="3" euler="40 20 30"/>',
    "shell_of_an_ellipsoid": '<geom type="ellipsoid" size=".1 .2 .3" shellinertia="true" mass="3" euler="40 20 30"/>',
}


@pytest.mark.parametrize("geom", GEOMS)
def test_inertia_from_geoms(geom):
    head = '<default><default class="heavy"><geom type="cylinder" density="7800"/></default></default>'
    body = f'<body name="a"><joint name="j" axis="1 2 3"/>{GEOMS[geom]}{TIP}</body>'
    agree(arm(body, head))


def test_inertia_from_geoms_only_where_there_are_some():
    inner = f'<body name="b"><joint name="k" axis="1 0 0"/>{SOLID}</body>'
    body = f'<body name="a"><joint name="j"/>{SOLID}<geom type="box" size=".1 .2 .3"/>{inner}</body>'
    agree(arm(body, '<compiler inertiafromgeom="true"/>'))


def rich_tree(seed: int) -> lw.Robot:
    """A floating tree with ball, hinge and slide joints, springs, rotors, carried weight, a massless link and loops."""
    rng = np.random.default_rng(seed)

    def pose():
        return lw.Transform.from_rpy(rng.normal(size=3).tolist(), rng.normal(size=3).tolist())

    def body():
        A = rng.normal(size=(3, 3))
        return lw.Inertia.from_com(
            rng.uniform(1, 2), rng.normal(size=3), np.trace(A @ A.T) * np.eye(3) - A @ A.T
        )

    kinds = ["floating", "revolute", "ball", "prismatic", "revolute", "fixed", "continuous"]
    links = [
        lw.Link("world"),
        *(lw.Link(f"l{k}", body() if k != 3 else lw.Inertia()) for k in range(len(kinds))),
    ]
    joints = []
    for k, kind in enumerate(kinds):
        x, y, z = np.array([(1, 0, 0), (0.6, 0, 0.8), (0, 1, 0)][k % 3]).tolist()
        more = (
            {"axis": (x, y, z), "rotor_inertia": 0.1 * k, "viscous_friction": 0.2} if kind != "fixed" else {}
        )
        if kind in ("revolute", "prismatic"):
            more["terms"] = {"stiffness": 3.0, "spring_reference": 0.3}
        origin = lw.Transform.identity() if k == 0 else pose()
        joints.append(
            lw.Joint(
                f"j{k}",
                kind,
                "world" if k == 0 else f"l{k - 1 if k < 5 else k // 2}",
                f"l{k}",
                origin,
                **more,
            )
        )
    robot = lw.Robot("rich", links, joints, frames=[lw.Frame("tool", "l6", pose())])
    weight = dict(
        zip(
            ("compensated_mass", "compensated_hx", "compensated_hy", "compensated_hz"),
            robot.bodies()[1].parameters[:4],
            strict=True,
        )
    )
    return robot.with_parameters({f"j1.{name}": 0.4 * x for name, x in weight.items()})


@pytest.mark.parametrize(
    "robot",
    [
        rich_tree(0),
        lw.load("panda"),
        lw.load("panda").with_base("planar"),
        lw.load("panda")
        .with_base("floating")
        .with_payload(3.0, inertia=(0.1, 0.1, 0.1), frame=lw.load("panda").base),
    ],
    ids=["rich", "panda", "planar", "floating"],
)
def test_files_written_here_are_the_same_robot_there(robot, tmp_path):
    lw.save(robot, tmp_path / "robot.xml")
    assert lw.load(tmp_path / "robot.xml").content() == robot.content()
    peer = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    compare(robot, peer, states=2)
    # the elements themselves, without the copy
    text = (tmp_path / "robot.xml").read_text()
    plain = lw.Robot.from_model(
        read_mjcf(re.sub(r"  <custom>.*</custom>\n", "", text, flags=re.DOTALL).encode(), "r.xml")
    )
    compare(plain, peer, states=1)


def test_constraints_written_here_hold_there(tmp_path):
    """The residual of each equality at a position is what ``constraint_errors`` gives."""
    arm = lw.load("panda")
    robot = arm.with_constraints(
        [
            lw.Weld(arm.leaf_names[0], lw.Transform.from_rpy((0.3, 0.1, 0.4), (0.1, 0.2, 0.3))),
            lw.Point(arm.link_names[5], arm.link_names[2], (0.1, 0.2, 0.3), (0.3, 0.1, 0.0)),
        ]
    )
    lw.save(robot, tmp_path / "robot.xml")
    assert lw.load(tmp_path / "robot.xml").content() == robot.content()
    peer = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(peer)
    data.qpos[:] = q = robot.random(0)
    mujoco.mj_forward(peer, data)
    assert data.nefc >= 9
    errors = np.abs(np.sort(np.abs(data.efc_pos[:9])))
    mine = value(robot, "constraint_errors", q=q)
    linear = np.sort([np.linalg.norm(mine[3:6]), np.linalg.norm(mine[6:9])])
    theirs = np.sort([np.linalg.norm(data.efc_pos[:3]), np.linalg.norm(data.efc_pos[6:9])])
    np.testing.assert_allclose(linear, theirs, rtol=1e-9)
    assert errors.max() > 0.1


CHILD = f"""<mujoco model="kid"><compiler angle="radian"/><option gravity="0 0 5" density="3"/>
<default><joint damping="3"/><default class="c"><joint damping="2" axis="0 1 0" ref=".2"/></default></default>
<asset><model name="inner" file="inner.xml"/></asset>
<worldbody><site name="s" pos="1 1 1"/><frame euler="0 0 1" childclass="c">
<body name="x" pos="1 0 0" euler="0 1 0"><joint name="j"/>{SOLID}
<frame pos="0 0 .3"><body name="y" gravcomp=".5"><joint name="k" pos=".1 0 0"/>{SOLID}<site name="e" pos="0 0 1"/>
<attach model="inner" body="deep" prefix="in_"/></body></frame></body></frame>
<body name="z"><joint name="l"/>{SOLID}</body></worldbody>
<equality><joint joint1="j" joint2="k" polycoef=".1 2"/><joint joint1="k" joint2="l"/></equality></mujoco>"""
INNER = f"""<mujoco><worldbody><body name="outer"><joint/>{SOLID}
<body name="deep" pos=".1 .2 .3" euler="10 20 30"><geom type="box" size=".1 .2 .3"/></body></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize(
    "attach",
    [
        '<attach model="m" body="x" prefix="p_"/>',
        '<attach model="m" body="y" prefix="p_"/>',
        '<attach model="m" prefix="q_"/>',
        '<frame pos="1 2 3" euler="40 50 60"><attach model="m" body="x" prefix="p_"/></frame>'
        '<attach model="m" body="z" prefix="r_"/>',
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_attached_models(attach, inside, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "kid.xml").write_text(CHILD)
    (tmp_path / "parts" / "inner.xml").write_text(INNER)
    body = f'<body name="r"><joint name="base" axis="1 0 0"/>{SOLID}{attach if inside else ""}{TIP}</body>'
    text = arm(f"{body}{'' if inside else attach}", '<asset><model name="m" file="parts/kid.xml"/></asset>')
    (tmp_path / "main.xml").write_text(text)
    peer = mujoco.MjModel.from_xml_path(str(tmp_path / "main.xml"))
    robot = lw.load(tmp_path / "main.xml", mimic="independent").with_constraints([])
    compare(robot, peer, states=2)
    assert sum(joint.mimic is not None for joint in robot.joints) == peer.neq


@pytest.mark.parametrize(
    "equality",
    [
        '<tendon tendon1="pair"/>',
        '<tendon tendon1="pair" polycoef=".2"/>',
        '<tendon tendon1="one" tendon2="other" polycoef=".1 -3"/>',
        '<joint joint1="j" joint2="k" polycoef=".3 -2"/>',
        '<joint joint1="k" polycoef=".25"/>',
    ],
)
def test_couplings_meet_the_equalities(equality, tmp_path):
    """Positions of the coupled robot leave nothing of MuJoCo's constraint."""
    text = (
        '<mujoco><compiler angle="radian"/><worldbody>'
        f'<body name="a"><joint name="j" axis="1 0 0" ref=".3"/>{SOLID}'
        f'<body name="b"><joint name="k" ref="-.2"/>{SOLID}<body name="c"><joint name="l" axis="0 1 0"/>{SOLID}'
        "</body></body></body></worldbody><tendon>"
        '<fixed name="pair"><joint joint="j" coef="2"/><joint joint="k" coef="-.5"/></fixed>'
        '<fixed name="one"><joint joint="k" coef="3"/></fixed><fixed name="other"><joint joint="j" coef=".7"/></fixed>'
        f"</tendon><equality>{equality}</equality></mujoco>"
    )
    path = tmp_path / "model.xml"
    path.write_text(text)
    robot = lw.load(path)
    assert robot.dof == 2
    peer = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    (relation,) = [(joint.name, joint.mimic) for joint in robot.joints if joint.mimic]
    at = {"j": 0.4, "k": 0.7, "l": 0.1}
    at[relation[0]] = relation[1].multiplier * at[relation[1].joint] + relation[1].offset
    data.qpos[:] = [at[name] for name in ("j", "k", "l")]
    mujoco.mj_forward(peer, data)
    assert abs(data.efc_pos[0]) < 1e-12
    data.qpos[:2] += 0.1
    mujoco.mj_forward(peer, data)
    assert abs(data.efc_pos[0]) > 1e-3
