"""``linkwise inverse``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click
import numpy as np

from linkwise.cli.parts.trajectories import SampledMotion, quintic
from linkwise.cli.support import headings
from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import (
    POSITIVE,
    Numbers,
    WholeNumber,
    command_line,
    figures_option,
    json_option,
    load_robot,
    report_option,
    robot_argument,
    table_option,
)
from linkwise.cli.support.output import Table, number, say, say_json, show
from linkwise.cli.support.written import check_targets, write_table
from linkwise.files.tables import bounds, finite, numbered, read_states
from linkwise.model.coordinates import (
    check_one_axis,
    coordinate_names,
    position_coordinates,
    velocity_coordinates,
)

_HEADINGS = {
    "Motion": "trajectory from to degrees duration points",
    "Method": "algorithm no-friction",
    "Output": "out states report figures open json",
}


@headings.command("inverse", _HEADINGS)
@robot_argument
@click.option(
    "--trajectory",
    required=True,
    metavar="FILE|quintic",
    help="A table of t, q, qd, qdd; - reads standard input; or quintic.",
)
@click.option(
    "--from", "start", type=Numbers(), metavar="Q1,Q2,…", help="Where a quintic starts; default: zeros."
)
@click.option("--to", "end", type=Numbers(), metavar="Q1,Q2,…", help="Where a quintic ends.")
@click.option("--degrees", is_flag=True, help="--from and --to are in degrees where a joint turns.")
@click.option("--duration", type=POSITIVE, default=2.0, show_default=True, help="Duration of a quintic [s].")
@click.option(
    "--points", type=WholeNumber(2, 10**9), default=101, show_default=True, help="Points of a quintic."
)
@click.option(
    "--time-optimal",
    is_flag=True,
    help="Along the path of the motion in the shortest time under the robot's limits, in place of its own timing.",
)
@click.option(
    "--acceleration", type=POSITIVE, help="With --time-optimal: limit of all joints [rad/s² or m/s²]."
)
@click.option("--jerk", type=POSITIVE, help="With --time-optimal: limit of all joints [rad/s³ or m/s³].")
@click.option(
    "--algorithm", metavar="NAME", help="newton_euler (default), boundary_value, gibbs_appell, compound_link."
)
@click.option("--no-friction", is_flag=True, help="Leave friction out.")
@click.option("--states", is_flag=True, help="Write q, qd and qdd too: what linkwise forward reads.")
@table_option
@report_option
@figures_option
@json_option
def command(
    robot,
    gravity,
    lock,
    base,
    mimic,
    trajectory,
    start,
    end,
    degrees,
    duration,
    points,
    time_optimal,
    acceleration,
    jerk,
    algorithm,
    no_friction,
    states,
    out,
    report,
    figures,
    as_json,
):
    """Compute the joint torques along a motion.

    The motion is a file with a line per point in time and columns t (optional), q1 … qn, qd1 … qdn, qdd1 … qddn, with a
    header (then in any order, also as q.JOINT) or without; or a quintic: from one position to another, at rest and
    without acceleration at both ends. With --time-optimal the path of the motion is kept and its timing replaced by the
    fastest one, in --points points. Units: s, rad, m, N·m, N.

    \b
    Example:
      linkwise inverse puma560 --trajectory quintic --to 90,-45,45,0,30,0 --degrees --out torques.csv
      linkwise inverse arm.urdf --trajectory motion.csv --algorithm gibbs_appell > torques.csv
      linkwise inverse panda --trajectory quintic --to 0.5,0.5,0.5,-1,0.5,1,0.5 --time-optimal --out fast.csv
    """
    loaded = load_robot(robot, gravity, lock, base, mimic, moving=True)
    check_targets(out, report)
    if not time_optimal and (acceleration is not None or jerk is not None):
        raise click.UsageError("--acceleration and --jerk belong to --time-optimal")
    if trajectory == "quintic":
        motion = _quintic(loaded, start, end, degrees, duration, points)
    else:
        refuse_given(("start", "end", "degrees", "duration"), "belongs to --trajectory quintic")
        if not time_optimal:
            refuse_given(("points",), "belongs to --trajectory quintic and --time-optimal")
        t, found = read_states(trajectory, ("q", "qd", "qdd"), *coordinate_names(loaded))
        motion = SampledMotion(t, **found)
    if time_optimal:
        motion = _fastest(loaded, motion, points, acceleration, jerk, not no_friction)
    tau = loaded.inverse_dynamics(
        motion.q, motion.qd, motion.qdd, algorithm=algorithm, friction=not no_friction
    )
    table = motion.columns(states=states) | numbered("tau", tau)
    finite(table)
    if out is not None:
        write_table(out, table)
    if report is not None or figures is not None:
        _write_report(report, figures, loaded, motion, tau, trajectory, not no_friction)
    if as_json:
        say_json({"robot": loaded.name, "joints": loaded.joint_names, "out": out, "columns": table})
        return
    written = {f"{len(tau)} points": out, "report": report, "figures": figures}
    if not any(written.values()):
        write_table(None, table)
        return
    _summary(loaded, tau)
    for broken in _broken_limits(loaded, motion, tau):
        say(broken)
    for what, path in written.items():
        if path is not None:
            say(f"{what} written to {path}")


def _write_report(
    path: str | None,
    figures: str | None,
    robot,
    motion: SampledMotion,
    tau: np.ndarray,
    trajectory: str,
    friction: bool,
) -> None:
    from linkwise.report import Report, sections

    t = np.arange(len(tau), dtype=float) if motion.t is None else motion.t
    page = Report(f"Torques of {robot.name}", f"{len(tau)} points of {trajectory}")
    page.add(sections.torques(robot, t, tau))
    page.add(sections.motion(robot, t, motion.q, motion.qd))
    words = "at the start, end pose faded"
    page.add(sections.robot(robot, motion.q[0], ghosts=[motion.q[-1]], caption=words, friction=friction))
    page.add(
        sections.facts(
            {
                "command": shlex.join(["linkwise", *command_line()]),
                "friction": "as in the file" if friction else "left out",
            }
        )
    )
    if path is not None:
        page.write(path)
    if figures is not None:
        page.write_figures(figures)


def _quintic(robot, start, end, degrees: bool, duration: float, points: int) -> SampledMotion:
    if end is None:
        raise click.UsageError("a quintic needs --to")
    check_one_axis(robot, "--trajectory quintic")
    bounds.check(f"--points: {points} points of {robot.dof} joints", points * (1 + 4 * robot.dof))
    first = _position(robot, "--from", start if start is not None else (0.0,) * robot.dof, degrees)
    return quintic(first, _position(robot, "--to", end, degrees), duration, points)


def _fastest(robot, motion: SampledMotion, points: int, acceleration, jerk, friction: bool) -> SampledMotion:
    """The same path in the shortest time."""
    from linkwise.motion import Samples, Trajectory, through_samples
    from linkwise.motion import time_optimal as shortest

    check_one_axis(robot, "--time-optimal")
    bounds.check(f"--points: {points} points of {robot.dof} joints", points * (1 + 4 * robot.dof))
    t = np.arange(len(motion.q), dtype=float) if motion.t is None else motion.t
    if motion.t is None:  # derivatives in the file belong to times that are not known
        path = motion.q
    else:
        path = through_samples(Samples(t, motion.q, motion.qd, motion.qdd))
    shortened = shortest(robot, path, acceleration=acceleration, jerk=jerk, friction=friction)
    assert isinstance(shortened, Trajectory)  # one path gives one motion
    samples = shortened.sampled(points=points)
    return SampledMotion(samples.t, samples.q, samples.qd, samples.qdd)


def _position(robot, option: str, values: Sequence[float], degrees: bool) -> np.ndarray:
    if len(values) != robot.dof:
        raise click.UsageError(
            f"{option}: expected {robot.dof} numbers for {', '.join(robot.joint_names)}; got {len(values)}"
        )
    turns = np.array([each.revolute for each in position_coordinates(robot)])
    return np.where(turns & degrees, np.radians(values), values)


def _broken_limits(robot, motion: SampledMotion, tau: np.ndarray) -> list[str]:
    """Which joint is beyond which of its limits, and from which point on: a line each."""
    sentences = []
    checked = [
        (each, k, "position", motion.q, each.limits.lower, each.limits.upper)
        for k, each in enumerate(position_coordinates(robot))
    ]
    for k, each in enumerate(velocity_coordinates(robot)):
        speed, effort = each.limits.largest_velocity, each.limits.largest_effort
        checked.append((each, k, "velocity", motion.qd, -speed, speed))
        checked.append((each, k, "torque" if each.revolute else "force", tau, -effort, effort))
    places = {joint.name: number for number, joint in enumerate(robot.coordinate_joints)}
    checked.sort(key=lambda row: places[row[0].joint.name])  # joint by joint
    for joint, k, what, values, lower, upper in checked:
        beyond = np.maximum(lower - values[:, k], values[:, k] - upper)
        beyond[~(beyond > 1e-9 * np.maximum(1.0, np.abs(values[:, k])))] = -np.inf  # round-off, and NaN
        if not (beyond > 0).any():
            continue
        first, worst = int(np.argmax(beyond > 0)), int(np.argmax(beyond))
        where = f"point {first + 1}" if motion.t is None else f"t = {motion.t[first]:g} s"
        sentences.append(
            f"{joint.name}: {what} beyond its limits {lower:g} … {upper:g}, first at {where}; "
            f"worst {values[worst, k]:.4g}"
        )
    return sentences


def _summary(robot, tau: np.ndarray) -> None:
    rows = []
    for joint, torque in zip(velocity_coordinates(robot), tau.T, strict=True):
        unit = "N·m" if joint.revolute else "N"
        peak, rms = float(np.abs(torque).max()), float(np.sqrt(np.mean(torque**2)))
        rows.append([joint.name, number(peak), number(rms), number(joint.limits.largest_effort), unit])
    show(Table(f"Torques of {robot.name}", ["joint", ">largest", ">rms", ">limit", "unit"], rows))
