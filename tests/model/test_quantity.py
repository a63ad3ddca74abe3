"""Numbers that no robot has: every numeric place of every format, with numbers that are huge, tiny or none at all."""

import math
import os
import re
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.functions import arrays
from linkwise.functions.table import Setting, function_named

URDF = """<robot name="arm" version="1.1"><link name="base"/>
<link name="upper"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><mass value="1.5"/>
<inertia ixx="0.11" ixy="0.01" ixz="0.02" iyy="0.12" iyz="0.03" izz="0.13"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.1 0.2 0.3" quat_xyzw="0.1 0.2 0.3 0.4"/><mass value="1.5"/>
<inertia ixx="0.11" ixy="0.01" ixz="0.02" iyy="0.12" iyz="0.03" izz="0.13"/></inertial>
<linkwise:inertia parameters="1.5 0.15 0.3 0.45 0.3 0.1 0.2 0.4 0.1 0.5"/></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>
<axis xyz="0.1 0.2 0.3"/><limit lower="-1.1" upper="1.2" velocity="3.4" effort="5.6"/>
<dynamics damping="0.7" friction="0.8"/></joint>
<joint name="elbow" type="prismatic"><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
<limit lower="-1.1" upper="1.2" velocity="3.4" effort="5.6"/><mimic joint="shoulder" multiplier="1.5" offset="0.2"/>
<linkwise:joint rotor_inertia="0.3" coulomb_forward="0.1" coulomb_backward="0.2" axis="0 1 0"
rotation="1 0 0 0 1 0 0 0 1"/></joint>
<linkwise:robot gravity="0.1 0.2 -9.8"/>
<linkwise:frame name="tool" link="lower" xyz="0.1 0.2 0.3" rotation="1 0 0 0 1 0 0 0 1"/></robot>"""

MJCF = """<mujoco><compiler boundmass="0" boundinertia="0" settotalmass="-1" inertiagrouprange="0 5"/>
<option gravity="0.1 0.2 -9.8" density="0" viscosity="0"/><default><geom density="500"/></default><worldbody>
<body name="a" pos="0.1 0.2 0.3" quat="0.1 0.2 0.3 0.4"><joint name="j" axis="0.1 0.2 0.3" pos="0.1 0.2 0.3" ref="10"
range="-20 30" armature="0.1" damping="0.2" frictionloss="0.3" stiffness="0" actuatorfrcrange="-5 6"/>
<inertial pos="0.1 0.2 0.3" mass="1.5" diaginertia="0.11 0.12 0.13" euler="10 20 30"/>
<site name="s" pos="0.1 0.2 0.3" zaxis="0.1 0.2 0.3"/>
<body name="b" pos="0.1 0.2 0.3" axisangle="0.1 0.2 0.3 40"><joint name="k" type="slide" range="-1 1"/>
<geom type="box" size="0.1 0.2 0.3" pos="0.1 0.2 0.3" xyaxes="1 0.1 0 0 1 0.2" density="500" group="1"/>
<geom type="capsule" size="0.1" fromto="0 0 0 0.1 0.2 0.3" mass="0.7"/>
<body name="c" gravcomp="0"><joint name="l"/>
<inertial pos="0 0 0" mass="1" fullinertia="0.11 0.12 0.13 0.01 0.02 0.03"/></body>
</body></body></worldbody>
<equality><joint joint1="k" joint2="j" polycoef="0.5 2 0 0 0"/></equality>
<tendon><fixed name="t" stiffness="0" damping="0"><joint joint="j" coef="1"/></fixed></tendon></mujoco>"""

TOML = """name = "arm"
convention = "mdh"
gravity = [0.1, 0.2, -9.8]
[base]
xyz = [0.1, 0.2, 0.3]
rpy_deg = [10.0, 20.0, 30.0]
[[joint]]
alpha = 0.4
a = 0.1
d = 0.2
theta_deg = 30.0
limits_deg = [-20.0, 30.0]
velocity_limit_deg = 50.0
effort_limit = 60.0
mass = 1.5
first_moment = [0.1, 0.2, 0.3]
inertia = { Ixx = 0.11, Ixy = 0.01, Ixz = 0.02, Iyy = 0.12, Iyz = 0.03, Izz = 0.13 }
motor_inertia = 0.0002
gear_ratio = 100.5
motor_viscous = 0.001
motor_coulomb = [0.4, 0.5]
[[joint]]
type = "prismatic"
alpha_deg = 40.0
theta = 0.3
limits = [-1.1, 1.2]
velocity_limit = 3.4
mass = 1.5
com = [0.1, 0.2, 0.3]
inertia_about_origin = [0.3, 0.1, 0.2, 0.4, 0.1, 0.5]
rotor_inertia = 0.2
viscous_friction = 0.3
coulomb_friction = 0.4
[[frame]]
name = "tool"
xyz = [0.1, 0.2, 0.3]
rotation = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
"""

TREE = """name = "arm"
convention = "tree"
[[link]]
name = "base"
[[link]]
name = "tip"
mass = 1.5
com = [0.1, 0.2, 0.3]
inertia = [0.11, 0.12, 0.13]
[[joint]]
name = "j"
type = "revolute"
parent = "base"
child = "tip"
xyz = [0.1, 0.2, 0.3]
rpy = [0.1, 0.2, 0.3]
axis = [0.1, 0.2, 0.3]
[[link]]
name = "finger"
mass = 1.5
[[joint]]
name = "k"
type = "prismatic"
parent = "tip"
child = "finger"
mimic = { joint = "j", multiplier = 1.5, offset = 0.2 }
"""

SPEC = """number_links 2
sigma 0 1
alpha 90.5 10.5
theta 5.5 6.5
dpar 0.1 0.2
apar 0.3 a2
mass 1.5 m2
xgrav 0.1 0.2
ygrav 0.1 0.2
zgrav 0.1 0.2
adyna 0.5 0.6
bdyna 0.5 0.6
cdyna 0.5 0.6
ddyna 0.01 0.02
edyna 0.01 0.02
fdyna 0.01 0.02
motor_inertia 0.1 0.2
fs 0.1 0.2
ds 0.1 0.2
gravity 0.1 0.2 -9.8
constant a2 0.25
variable m2 1.5
"""

FILES = {"arm.urdf": URDF, "arm.xml": MJCF, "arm.toml": TOML, "tree.toml": TREE, "arm.spec": SPEC}
NUMBER = re.compile(r"(?<![\w.\-\"=])-?\d+(\.\d+)?(?![\w.])|(?<=\")-?\d+(\.\d+)?(?=[\" ])")
EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "explore"  # else four of the numbers in each place
HOSTILE = (
    *("1e200", "-1.7e308", "1e400", "-1e31", "1e30", "-1e15", "1e-160", "-5e-324"),
    *("0", "-1", "nan", "-inf", "9" * 5000, "0." + "1" * 5000),
)


def finite(robot: lw.Robot) -> bool:
    """Whether every number of a robot, and its torques in one state, are finite."""
    numbers = [*robot.gravity, *np.ravel(robot.parameters)]
    for joint in robot.joints:
        numbers += [*joint.origin.translation, *joint.origin.rotation.ravel(), *joint.axis]
        assert not any(map(math.isnan, (joint.limits.lower, joint.limits.upper)))
    for frame in robot.frames:
        numbers += [*frame.pose.translation, *frame.pose.rotation.ravel()]
    ones = np.ones(robot.dof)
    function = function_named("inverse_dynamics")
    setting = Setting(robot, friction=True)
    given = {"q": 0.5 * ones, "qd": ones, "qdd": ones}
    torques = next(iter(arrays.run_on_arrays(function, setting, function.algorithm(None), given).values()))
    return bool(np.isfinite([*numbers, *np.ravel(torques)]).all())


def loaded(path) -> tuple[lw.Robot | None, str]:
    """The robot of a file, or why there is none."""
    try:
        return lw.load(path), ""
    except lw.ModelError as error:
        return None, str(error)


@pytest.mark.parametrize("name", FILES)
def test_every_number_of_a_file_is_read_or_refused(name, tmp_path):
    """A robot with finite numbers or a ModelError that begins with the file's name, and no warning of NumPy."""
    text, path = FILES[name], tmp_path / name
    path.write_text(text)
    places = [found.span() for found in NUMBER.finditer(text)]
    assert len(places) > 12
    read = 0
    with warnings.catch_warnings():  # of NumPy none
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", lw.ModelWarning)
        assert finite(lw.load(path))
        for k, (start, end) in enumerate(places):
            for number in HOSTILE if EXHAUSTIVE else [HOSTILE[(4 * k + j) % len(HOSTILE)] for j in range(4)]:
                path.write_text(text[:start] + number + text[end:])
                robot, refusal = loaded(path)
                place = f"{text[max(0, start - 40) : start]}{number[:30]}"
                if robot is None:
                    assert refusal.startswith(str(path)), place
                    assert len(refusal) < 1200, place
                else:
                    read += 1
                    assert finite(robot), place
    assert read > len(places) / 2


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("arm.xml", ('pos="0.1 0.2 0.3" quat', 'pos="0 0 1e200" quat'), "1e200 is too large; at most 1e+30"),
        (
            "arm.toml",
            ("gear_ratio = 100.5", "gear_ratio = 1e200"),
            "gear_ratio: expected a number of magnitude up to",
        ),
        (
            "arm.spec",
            ("number_links 2", "number_links " + "2" * 5000),
            "number_links: expected one whole number",
        ),
        ("arm.spec", ("constant a2 0.25", "constant a2 " + "2" * 5000), "is not a finite number"),
    ],
)
def test_absurd_numbers_are_named(name, change, expected, tmp_path):
    path = tmp_path / name
    assert FILES[name].count(change[0]) == 1
    path.write_text(FILES[name].replace(*change))
    with pytest.raises(lw.ModelError, match=re.escape(expected)):
        lw.load(path)


def test_limits_beyond_the_range_are_none(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF.replace('upper="1.2"', 'upper="1e31"'))
    with pytest.warns(lw.ModelWarning):
        assert lw.load(path).joints[0].limits.upper == math.inf
    path = tmp_path / "arm.toml"
    path.write_text(TOML.replace("effort_limit = 60.0", "effort_limit = 1e200"))
    assert lw.load(path).joints[1].limits.effort == math.inf


ARM = lw.planar_chain(2)
NAN, LABEL = math.nan, ARM.parameter_labels[0]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: ARM.with_payload(-0.5), "payload: mass: expected a number of at least 0"),
        (lambda: ARM.with_payload(NAN), "payload: mass: expected a finite number, got nan"),
        (lambda: ARM.with_payload(math.inf), "payload: mass: expected a number of magnitude up to"),
        (lambda: ARM.with_payload("heavy"), "payload: mass: expected a number, got 'heavy'"),
        (lambda: ARM.with_payload(None), "payload: mass: expected a number, got None"),
        (lambda: ARM.with_payload(1.0, (0, NAN, 0)), "payload: com: expected a finite number"),
        (lambda: ARM.with_payload(1.0, (0, 1e200, 0)), "payload: com: expected a number of magnitude"),
        (lambda: ARM.with_payload(1.0, inertia=(1, NAN, 1)), "payload: inertia: expected a finite number"),
        (lambda: ARM.with_payload(-1.0, frame=ARM.base), "payload: mass"),
        (lambda: ARM.with_gravity((0, 0, NAN)), "gravity: expected three finite numbers"),
        (lambda: ARM.with_gravity((0, 0, 1e200)), "gravity: expected three finite numbers"),
        (lambda: ARM.with_gravity((0, 1)), "gravity: expected three numbers"),
        (lambda: ARM.with_gravity(9.81), "gravity: expected three numbers"),
        (lambda: ARM.with_gravity("down"), "gravity: expected three numbers"),
        (lambda: ARM.lock({"joint1": NAN}), "lock: position of joint 'joint1': expected a finite number"),
        (lambda: ARM.lock({"joint1": math.inf}), "lock: position of joint 'joint1'"),
        (
            lambda: ARM.lock({"joint1": "far"}),
            "lock: position of joint 'joint1': expected a number, got 'far'",
        ),
        (lambda: ARM.with_parameters({LABEL: NAN}), f"with_parameters: {LABEL}: expected a finite number"),
        (lambda: ARM.with_parameters({LABEL: "x"}), f"with_parameters: {LABEL}: expected a number, got 'x'"),
        (
            lambda: ARM.with_parameters(ARM.parameters * NAN),
            f"with_parameters: {LABEL}: expected a finite number",
        ),
        (lambda: ARM.with_parameters(ARM.parameters + math.inf), f"with_parameters: {LABEL}"),
    ],
)
def test_arguments_that_are_no_numbers_are_named(call, expected):
    with pytest.raises(lw.ModelError, match=re.escape(expected)):
        call()
