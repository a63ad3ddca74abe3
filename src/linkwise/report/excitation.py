"""Report of an exciting motion and its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.report import sections
from linkwise.report.page import Figure, HtmlTable, Report, Section, Text
from linkwise.report.plots import Bar, bar_chart
from linkwise.report.svg import short
from linkwise.report.swept import Surroundings, swept_picture

if TYPE_CHECKING:
    from linkwise.collision import Clearance
    from linkwise.identify import Excited, MotionLimits


def excitation_report(found: Excited, limits: MotionLimits) -> Report:
    """Report page of an exciting motion and the limits that it was designed for."""
    robot, s = found.robot, found.samples
    report = Report(
        f"An exciting motion of {robot.name}", f"{found.duration:g} s, {len(found.labels)} base parameters"
    )
    report.add(_how_good(found))
    q = s.q
    trace = None
    if len(robot.leaf_names) == 1:
        trace = robot.pose(q[::5])[:, :3, 3]
    at = len(q) // 3
    words = "at a third of the motion, start pose faded" + (
        "" if trace is None else "; the line is the path of the end effector"
    )
    report.add(sections.robot(robot, q[at], ghosts=[q[0]], trace=trace, caption=words))
    if found.clearance is not None:
        report.add(_space(found, found.clearance, trace))
    report.add(_limits(found, limits))
    report.add(sections.motion(robot, s.t, s.q, s.qd))
    report.add(sections.accelerations(robot, s.t, s.qdd))
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    report.add(sections.torques(robot, s.t, tau, title="Torques expected from the robot as it is given"))
    return report


def _how_good(found: Excited) -> Section:
    bars = [
        Bar("random motions within the same limits", found.condition_random, 1),
        Bar("this motion", found.condition, 0),
    ]
    words = (
        f"The condition number of the equations that this motion gives is {found.condition:.4g}: an error of the "
        f"torques is enlarged by at most so much, relatively, in the {len(found.labels)} base parameters, all scaled "
        f"alike. {found.evaluations} motions were tried for it."
    )
    chart = Figure("condition", bar_chart(bars), "condition number: less is better")
    return Section("How much it shows", [Text(words), chart])


def _space(found: Excited, clearance: Clearance, trace: np.ndarray | None) -> Section:
    """All postures beside the floor and boxes, and the smallest distances."""
    room, s = clearance.room, found.samples
    floor = room.floor if np.any(found.robot.gravity) else None
    boxes = [(box.lower, box.upper) for box in room.forbidden]
    for slab in clearance.shapes.slabs:
        if np.allclose(slab.pose.rotation, np.eye(3)):
            middle, half = slab.pose.translation, np.array(slab.edges) / 2
            boxes.append(((middle - half).tolist(), (middle + half).tolist()))
    inside = None if room.inside is None else (room.inside.lower, room.inside.upper)
    around = Surroundings(floor, inside, boxes)
    picture = swept_picture(found.robot, clearance.shapes.capsules, s.q, around, trace)
    words = (
        "Blue: the space through which links pass; grey: the posture at the start; orange: boxes that must not be "
        "touched, and the path of the end effector; green: the space that must not be left; grey below: the floor."
    )
    names = {"floor": "to the floor", "walls": "to walls", "boxes": "to boxes", "links": "between links"}
    rows = [
        [
            names[kind],
            f"{100 * contact.distance:.1f} cm",
            f"{contact.first}, {contact.second}",
            f"{s.t[row]:.2f} s",
        ]
        for kind, (contact, row) in clearance.by_kind(s.q).items()
    ]
    notes = [
        f"Wanted: {100 * room.clearance:g} cm. Between the points of the grid at least {100 * found.proved:.1f} cm are "
        "kept, as the speeds of the joints bound how fast a distance can change.",
        *(f"{note[0].upper()}{note[1:]}." for note in clearance.shapes.notes),
    ]
    if clearance.skipped:
        notes.append(f"Not compared, because they touch by construction: {'; '.join(clearance.skipped)}.")
    table = HtmlTable(["least distance", ">", "what", ">when"], rows, notes)
    return Section("Space that it needs", [Figure("space", picture, words), table])


def _limits(found: Excited, limits: MotionLimits) -> Section:
    """Largest values and their limits, per joint."""
    s = found.samples
    speed, acceleration = np.abs(s.qd).max(axis=0), np.abs(s.qdd).max(axis=0)
    rows = []
    for k, name in enumerate(found.robot.joint_names):
        rows.append(
            [
                name,
                f"{short(float(s.q[:, k].min()), 3)} … {short(float(s.q[:, k].max()), 3)}",
                f"{short(float(limits.lower[k]), 3)} … {short(float(limits.upper[k]), 3)}",
            ]
            + [
                f"{short(float(value[k]), 3)} of {short(float(allowed[k]), 3)}"
                for value, allowed in (
                    (speed, limits.velocity),
                    (acceleration, limits.acceleration),
                    (found.torque, limits.torque),
                )
            ]
        )
    columns = ["joint", ">from … to", ">limits", ">speed", ">acceleration", ">torque"]
    notes = [
        "Checked at 2000 points of a period or more. SI units; the torques are those of the robot as it is given."
    ]
    return Section("Limits kept", [HtmlTable(columns, rows, notes)])
