"""Attributes of MJCF that change the motion, beside MuJoCo: a sample of ``benchmarks/mjcf_attributes.py``, and the
table of attributes beside MuJoCo's own schema."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.formats.mjcf.schema import schema

mujoco = pytest.importorskip("mujoco")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def sweep():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        module = importlib.import_module("mjcf_attributes")
    finally:
        sys.path.remove(str(BENCHMARKS))
    mujoco.set_mju_user_warning(lambda _: None)
    return module


def of_mujoco(text: str):
    """(depth, element, attributes) of each element that MuJoCo prints."""
    rows = []
    for line in text.splitlines():
        found = re.match(r"^( {0,20})(\(world\)body|\w+) \(.\)\s*(.*)$", line)
        if found:
            rows.append((len(found[1]) // 3, found[2], found[3].split()))
        elif line.strip():
            rows[-1][2].extend(line.split())
    return rows


def test_every_attribute_of_the_installed_mujoco_is_accounted_for():
    """A later MuJoCo has more names: each must be read, or without effect for a reason, or refused."""
    above, missing = [schema()], []
    for depth, name, attributes in of_mujoco(mujoco.mj_printSchema(False, True)):
        name = "worldbody" if name == "(world)body" else name
        if depth == 0:
            continue
        del above[depth:]
        rule = above[-1].children.get(name)
        if rule is None:
            missing.append(name)
            continue
        if name == "worldbody":
            rule = rule.children["body"]
        missing += [f"{name}.{attribute}" for attribute in attributes if attribute not in rule.attributes]
        above.append(rule)
    assert not missing


def test_the_reader_sees_only_attributes_that_the_table_lists_as_read():
    """What is listed as without effect is taken out before anything is read, so nothing can depend on it."""
    from linkwise.formats.mjcf.schema import check_names
    from linkwise.formats.xml import parse_xml

    root = parse_xml(
        b'<mujoco><option timestep="1" density="2"/><worldbody><geom size="1" rgba="1 1 1 1" condim="3"/>'
        b'</worldbody><sensor><e_potential cutoff="1"/></sensor></mujoco>',
        "arm.xml",
    )
    check_names(root)
    assert [dict(element.attrib) for element in root.iter()] == [
        *({}, {"density": "2"}, {}, {"size": "1"}, {}, {}),
    ]


SWITCHED = {
    "equality/weld@torquescale": ("0", "0.3", "2"),
    "worldbody/body/joint@springdamper": ("0.2 0.5",),
    "worldbody/body/body/joint@springdamper": ("0.2 0.5",),
    "tendon/fixed@stiffness": ("2",),
    "tendon/fixed@springlength": ("0.3", "-0.4"),
    "option/flag@spring": ("disable",),
    "option/flag@damper": ("disable",),
    "option/flag@gravity": ("disable",),
    "worldbody/body/joint@springref": ("0.3",),
    "option@gravity": ("0.3 0.2 0.1",),
    "compiler@balanceinertia": ("true",),
    "compiler@settotalmass": ("2",),
}


def switch(sweep, what: str):
    path, _, attribute = what.partition("@")
    found = sweep.switches(sweep.ElementTree.fromstring(sweep.BASE))
    return next(s for s in found if s.path == f"mujoco/{path}" and s.attribute == attribute)


@pytest.mark.parametrize(("what", "values"), SWITCHED.items())
def test_an_attribute_in_every_context(sweep, what, values):
    chosen = switch(sweep, what)
    outcomes = {
        (context, value): sweep.judge(sweep.document(settings, {chosen: value}), [chosen], None)
        for context, settings in sweep.CONTEXTS.items()
        for value in values
    }
    assert not {key: found for key, found in outcomes.items() if found[0].isupper()}
    assert {"agrees"} <= {outcome for outcome, _ in outcomes.values()}


def test_attributes_in_pairs(sweep):
    rng = np.random.default_rng(5)
    for _ in range(25):
        names = rng.choice(list(SWITCHED), 2, replace=False)
        changes = {switch(sweep, name): str(rng.choice(SWITCHED[name])) for name in names}
        context = sweep.CONTEXTS[str(rng.choice(list(sweep.CONTEXTS)))]
        outcome, why = sweep.judge(sweep.document(context, changes), list(changes), None)
        assert not outcome.isupper(), (changes, why)


def test_a_weld_without_torque_holds_a_point():
    """Read as a full weld, it would hold three directions too many."""
    xml = """<mujoco><worldbody>
        <body name="a"><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
        <body name="b" pos=".5 0 0"><freejoint/><geom size=".1"/></body></worldbody>
        <equality><weld body1="a" body2="b" torquescale="0" anchor=".1 .2 .3"/></equality></mujoco>"""
    robot = lw.Robot.from_model(read_mjcf(xml.encode(), "arm.xml"))
    assert [type(constraint) for constraint in robot.constraints] == [lw.Point]


@pytest.mark.parametrize("torquescale", [0, 1])
def test_the_pose_of_a_weld_is_that_of_its_anchor(torquescale):
    """With relpose, MuJoCo takes its position as the anchor's; where our constraint is met, so must be MuJoCo's."""
    xml = f"""<mujoco><worldbody>
        <body name="a" pos="1 2 3" euler="10 20 30"><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
        <body name="b" pos=".5 0 0"><freejoint/><geom size=".1"/></body></worldbody>
        <equality><weld body1="a" body2="b" anchor=".1 .2 .3" relpose=".5 .6 .7 1 .3 0 .1"
         torquescale="{torquescale}"/></equality></mujoco>"""
    robot = lw.Robot.from_model(read_mjcf(xml.encode(), "arm.xml"))
    q = robot.meet_constraints(robot.neutral)
    peer = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(peer)
    data.qpos[:] = [*q[:4], q[7], *q[4:7]]
    mujoco.mj_forward(peer, data)
    assert np.abs(data.efc_pos[:3]).max() < 1e-9
    assert np.abs(data.efc_pos).max() < 1e-9
