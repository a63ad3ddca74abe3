"""A delta robot: three arms that carry one platform, ten seconds of motion, loops that stay closed.

The size is about that of ABB's FlexPicker with 1.6 m of reach (kinematics as in R. L. Williams II, "The Delta Parallel
Robot: Kinematics Solutions", Ohio University, 2015); the numbers serve as an example and are no data of that robot.
Rods are uniform.
"""

import time

import numpy as np
from closed_loops import at, report, rod, swung

import linkwise as lw
from linkwise import Inertia, Joint, Link, Robot

UPPER, FOREARM, BASE, PLATFORM = 0.524, 1.244, 0.164, 0.044  # [m]: L, l, w_B, u_P


def delta() -> Robot:
    """Three arms and a platform. Forearms are parallelograms, which keep the platform level: it has three slides, and
    each forearm is one rod between two universal joints."""
    plate = Inertia.from_com(1.0, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01))
    links = [Link("base"), Link("slide_x"), Link("slide_y"), Link("platform", plate)]
    joints = [
        Joint("x", "prismatic", "base", "slide_x", axis=(1.0, 0.0, 0.0)),
        Joint("y", "prismatic", "slide_x", "slide_y", axis=(0.0, 1.0, 0.0)),
        Joint("z", "prismatic", "slide_y", "platform", axis=(0.0, 0.0, 1.0)),
    ]
    loops = []
    for k in range(3):
        yaw = 2 * np.pi * k / 3
        upper, cross, fore = f"upper{k}", f"cross{k}", f"forearm{k}"
        links += [Link(upper, rod(UPPER, 1.2, 0)), Link(cross), Link(fore, rod(-FOREARM, 0.4, 2))]
        joints += [
            Joint(
                f"motor{k}",
                "revolute",
                "base",
                upper,
                at(yaw=yaw) @ at(BASE),
                (0.0, 1.0, 0.0),
                rotor_inertia=0.05,
            ),
            Joint(f"swing{k}", "revolute", upper, cross, at(UPPER), (0.0, 1.0, 0.0)),
            Joint(f"tilt{k}", "revolute", cross, fore, at(), (1.0, 0.0, 0.0)),
        ]
        pin = (PLATFORM * np.cos(yaw), PLATFORM * np.sin(yaw), 0.0)
        loops.append(
            lw.Point(fore, "platform", position=pin, offset=(0.0, 0.0, -FOREARM), name=f"forearm {k}")
        )
    passive = [joint.name for joint in joints if not joint.name.startswith("motor")]
    return Robot("delta", links, joints).with_constraints(loops, passive=passive)


began, robot = time.perf_counter(), delta()
start = dict.fromkeys(robot.joint_names, 0.0) | {"z": -1.1} | {f"swing{k}": 0.3 for k in range(3)}
q = robot.meet_constraints([start[name] for name in robot.joint_names])
found = swung(robot, q, 400.0, 0.15)
report(found, began)
assert np.ptp(found.q[:, robot.joint_names.index("z")]) > 0.02
