"""Cassie in the air: a floating base, ball joints and four loops, from its MJCF file in mujoco_menagerie.

    python examples/32_cassie.py mujoco_menagerie/agility_cassie/cassie.xml

The leg springs are locked and friction left out: springs and the friction of light rods are faster than a step of 1 ms.
"""

import sys
import time

import numpy as np
from closed_loops import DURATION, STEP, report

import linkwise as lw
from linkwise.simulate import simulate


def run(path: str) -> None:
    began, robot = time.perf_counter(), lw.load(path)
    springs = [name for name in robot.joint_names if name.endswith(("shin", "heel-spring"))]
    robot = robot.lock(dict.fromkeys(springs, 0.0))
    robot = robot.with_parameters({label: 0.0 for label in robot.parameter_labels if "friction" in label})
    q = robot.meet_constraints(robot.neutral)
    motors, numbers, n, nq = [], [], 0, 0  # velocity and position coordinates of the joints with motors
    for joint in robot.coordinate_joints:
        if joint.name.endswith(("roll", "yaw", "pitch", "knee")):
            motors.append(n)
            numbers.append(nq)
        n, nq = n + joint.dof, nq + joint.nq

    def law(t, q_now, qd, reference):
        tau = np.zeros(robot.dof)
        target = q[numbers] + 0.2 * np.sin(3.0 * t) * np.cos(np.arange(len(motors)))
        tau[motors] = -20.0 * (q_now[numbers] - target) - 2.0 * qd[motors]
        return tau

    found = simulate(robot, law, duration=DURATION, step=STEP, q=q, every=20, warn=False, torque_limits=False)
    report(found, began)
    assert np.abs(np.linalg.norm(found.q[:, 3:7], axis=-1) - 1.0).max() < 1e-9


if len(sys.argv) > 1:
    run(sys.argv[1])
else:
    print("Cassie's file is not part of Linkwise: give its path, see above")
