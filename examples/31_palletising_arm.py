"""A palletising arm with three parallelograms: one drives the upper arm from the base, two keep the flange level.

The size is about that of ABB's IRB 460 (745, 260, 945 and 1025 mm between its axes); cranks, rods and masses are chosen
for the example, with uniform rods. Every parallelogram has a row that is redundant in the plane, so 9 constraint rows
have rank 6.
"""

import time

import numpy as np
from closed_loops import CLOSED, at, report, rod, swung

import linkwise as lw
from linkwise import Inertia, Joint, Link, Robot

HEIGHT, SHOULDER, LOWER, ARM = 0.745, 0.260, 0.945, 1.025  # [m]
CRANK, BRACKET, LEVER = 0.30, 0.20, 0.25  # [m] of the parallelograms


def palletiser() -> Robot:
    """Three parallelograms: one drives the upper arm from the base, two keep the flange level."""
    axis = (0.0, 1.0, 0.0)
    links = [
        Link("base"), Link("column", Inertia.from_com(200.0, (0.1, 0.0, -0.2), (15.0, 15.0, 12.0))),
        Link("lower_arm", rod(LOWER, 60.0, 2)), Link("upper_arm", rod(ARM, 45.0, 0)),
        Link("crank", rod(-CRANK, 15.0, 0)),
        Link("drive_rod", rod(LOWER, 12.0, 2)), Link("triangle", Inertia.from_com(8.0, (0.07, 0.0, 0.08), (0.1,) * 3)),
        Link("lower_rod", rod(LOWER, 8.0, 2)), Link("upper_rod", rod(ARM, 8.0, 0)),
        Link("flange", Inertia.from_com(30.0, (0.1, 0.0, 0.0), (0.6,) * 3)),
    ]  # fmt: skip
    joints = [
        Joint("turn", "revolute", "base", "column", at(z=HEIGHT), rotor_inertia=20.0),
        Joint("lower", "revolute", "column", "lower_arm", at(SHOULDER), axis, rotor_inertia=30.0),
        Joint("elbow", "revolute", "lower_arm", "upper_arm", at(z=LOWER), axis),
        Joint("wrist", "revolute", "upper_arm", "flange", at(ARM), axis),
        Joint("triangle", "revolute", "lower_arm", "triangle", at(z=LOWER), axis),
        Joint("upper_rod", "revolute", "triangle", "upper_rod", at(z=LEVER), axis),
        Joint("crank", "revolute", "column", "crank", at(SHOULDER), axis, rotor_inertia=30.0),
        Joint("drive_rod", "revolute", "crank", "drive_rod", at(-CRANK), axis),
        Joint("lower_rod", "revolute", "column", "lower_rod", at(SHOULDER + BRACKET), axis),
    ]
    loops = [
        lw.Point("drive_rod", "upper_arm", (-CRANK, 0.0, 0.0), (0.0, 0.0, LOWER), "drive of the upper arm"),
        lw.Point("lower_rod", "triangle", (BRACKET, 0.0, 0.0), (0.0, 0.0, LOWER), "lower levelling rod"),
        lw.Point("upper_rod", "flange", (0.0, 0.0, LEVER), (ARM, 0.0, 0.0), "upper levelling rod"),
    ]
    motors = ("turn", "lower", "crank")
    passive = [joint.name for joint in joints if joint.name not in motors]
    return Robot("palletiser", links, joints).with_constraints(loops, passive=passive)


began, robot = time.perf_counter(), palletiser()
found = swung(robot, robot.meet_constraints(robot.neutral), 4e4, 0.2)
report(found, began)
tilt = np.abs(robot.pose(found.q, "flange")[..., 2, :2]).max()
print(f"  the flange stays level to {tilt:.1e} rad")
assert tilt < CLOSED
