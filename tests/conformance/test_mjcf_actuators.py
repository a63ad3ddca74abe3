"""Torque limits of MJCF files against the torques that MuJoCo's actuators reach."""

from __future__ import annotations

import math

import mujoco
import pytest
from mjcf_efforts import largest_efforts

import linkwise as lw
from linkwise.formats.mjcf.reader import read_mjcf

SOLID = '<inertial pos=".1 0 0" mass="1" diaginertia=".01 .01 .01"/>'
BODIES = (
    f'<body name="a"><joint name="j"/>{SOLID}<body name="b" pos="1 0 0"><joint name="k" axis="0 1 0"/>{SOLID}'
    f'<body name="c" pos="0 0 1"><joint name="s" type="slide"/>{SOLID}</body></body></body>'
)


def file(actuators: str, head: str = "", bodies: str = BODIES) -> str:
    return f"<mujoco>{head}<worldbody>{bodies}</worldbody><actuator>{actuators}</actuator></mujoco>"


def efforts(text: str) -> dict[str, float]:
    return {
        joint.name: joint.limits.effort for joint in read_mjcf(text.encode(), "own.xml").joints if joint.moves
    }


CASES = {
    "motor": '<motor joint="j" ctrlrange="-2 2" gear="30"/><motor joint="k" ctrlrange="-.5 .5" gear="-8"/>',
    "no range": '<motor joint="j" gear="30"/><motor joint="k" ctrlrange="-1 1" ctrllimited="false"/>',
    "force after gain": '<motor joint="j" ctrlrange="-9 9" forcerange="-4 4" gear="5"/>',
    "one-sided": '<motor joint="j" ctrlrange="0 3" gear="2"/><motor joint="k" ctrlrange="-7 1"/>',
    "servos": '<position joint="j" kp="5" ctrlrange="-1 1" forcerange="-6 6" gear="3"/>'
    '<velocity joint="k" kv="2" ctrlrange="-1 1"/><position joint="s" kp="4" kv="1" forcerange="-2 2"/>',
    "integrated": '<intvelocity joint="j" kp="5" actrange="-1 1" forcerange="-6 6"/>'
    '<general joint="k" dyntype="integrator" ctrlrange="-1 1" gainprm="3"/>'
    '<general joint="s" dyntype="integrator" ctrlrange="-1 1" actrange="-2 2" gainprm="3"/>',
    "filtered": '<general joint="j" dyntype="filter" dynprm="1" ctrlrange="-2 2" gainprm="3"/>'
    '<general joint="k" dyntype="filterexact" dynprm="1" ctrlrange="-2 2" actrange="-1 1" gainprm="3"/>',
    "cylinder": '<cylinder joint="s" ctrlrange="-1 2" diameter="2" bias="4 0 0"/>'
    '<cylinder joint="j" ctrlrange="-1 1" area="3"/><cylinder joint="k" ctrlrange="-1 1" bias="0 1 0"/>',
    "general": '<general joint="j" ctrlrange="-3 3" gainprm="4" biastype="affine" biasprm="1"/>'
    '<general joint="k" ctrlrange="-3 3" gainprm="4" biastype="affine" biasprm="0 0 -1"/>',
    "damper": '<damper joint="j" kv="3" ctrlrange="0 2"/><damper joint="k" kv="3" ctrlrange="0 2" forcerange="-5 5"/>',
    "two on one": '<motor joint="j" ctrlrange="-2 2"/><position joint="j" kp="5" forcerange="-3 3" gear="2"/>'
    '<motor joint="k" ctrlrange="-2 2"/><motor joint="k"/>',
    "in parent": '<motor jointinparent="j" ctrlrange="-2 2" gear="4"/>',
}
HEADS = {
    "defaults of all kinds": '<default><motor ctrlrange="-2 2" gear="3"/><general forcerange="-5 5" gainprm="7"/>'
    '<default class="x"><position kp="3"/><motor ctrlrange="-4 4"/></default></default>',
    "a servo as default": '<default><position kp="9" forcerange="-8 8"/></default>',
    "controls are not clamped": '<option><flag clampctrl="disable"/></option>',
}
INHERITING = '<general joint="j"/><motor joint="k"{of} gear="2"/><velocity joint="s"/>'
TENDON = (
    '<tendon><fixed name="t" actuatorfrcrange="-6 6"><joint joint="j" coef="2"/><joint joint="k" coef="-.5"/></fixed>'
    '<fixed name="u"><joint joint="k" coef="3"/></fixed></tendon>'
)


@pytest.mark.filterwarnings("ignore::linkwise.ModelWarning")
def test_torque_limits_are_the_largest_torques_of_the_actuators():
    files = {name: file(text) for name, text in CASES.items()}
    files |= {
        name: file(INHERITING.format(of=' class="x"' if "class" in head else ""), head)
        for name, head in HEADS.items()
    }
    drives = '<motor tendon="u" ctrlrange="-1 1"/><motor joint="k" ctrlrange="-7 7"/>'
    for more in ("", '<motor tendon="t" ctrlrange="-3 3" gear="2"/>'):
        files[f"tendons{more}"] = file(f'<motor tendon="t" ctrlrange="-4 4" gear="2"/>{more}{drives}', TENDON)
    files["limits of joints"] = file(
        '<motor joint="j" ctrlrange="-9 9"/><motor joint="k" ctrlrange="-2 2"/>',
        bodies=BODIES.replace('name="j"', 'name="j" actuatorfrcrange="-3 3"').replace(
            'name="k"', 'name="k" actuatorfrcrange="-4 4"'
        ),
    )
    files["copies"] = file(
        '<motor joint="j" ctrlrange="-4 4" gear="2"/><motor tendon="t" ctrlrange="-5 5"/>',
        TENDON,
        f'<replicate count="3" offset="0 1 0" sep="_">{BODIES}</replicate>',
    )
    bounded = 0
    for name, text in files.items():
        theirs = largest_efforts(mujoco.MjModel.from_xml_string(text))
        mine = efforts(text)
        for joint, effort in mine.items():
            expected = theirs.get(joint, math.inf)
            assert effort == pytest.approx(expected, rel=1e-9), (name, joint, effort, expected)
            bounded += math.isfinite(effort)
    assert bounded > 30


def test_actuators_of_an_attached_model(tmp_path):
    (tmp_path / "arm.xml").write_text(
        file('<motor joint="j" ctrlrange="-4 4" gear="2"/><motor joint="k" ctrlrange="-1 1"/>')
    )
    outer = file(
        '<motor joint="left_k" ctrlrange="-3 3"/>',
        '<asset><model name="arm" file="arm.xml"/></asset>',
        '<attach model="arm" body="a" prefix="left_"/>'
        '<body pos="0 0 2"><attach model="arm" body="b" prefix="right_"/></body>',
    )
    (tmp_path / "two.xml").write_text(outer)
    theirs = largest_efforts(mujoco.MjModel.from_xml_path(str(tmp_path / "two.xml")))
    robot = lw.load(tmp_path / "two.xml")
    mine = {joint.name: joint.limits.effort for joint in robot.joints if joint.moves}
    assert {name: effort for name, effort in mine.items() if math.isfinite(effort)} == pytest.approx(theirs)
    assert mine["left_k"] == 4.0
