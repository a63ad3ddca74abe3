"""``linkwise plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from linkwise.cli.support import headings
from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import (
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    Numbers,
    WholeNumber,
    json_option,
    load_robot,
    robot_argument,
)
from linkwise.cli.support.output import say, say_json
from linkwise.cli.support.written import check_targets, write_table
from linkwise.errors import LinkwiseError
from linkwise.files.tables import bounds, numbered

if TYPE_CHECKING:
    from linkwise.motion import Keep, MotionPlan
    from linkwise.robot.robot import Robot

_HEADINGS = {
    "Problem": "from to frame world clearance",
    "Kept all the way": "keep-axis tilt keep-plane distance",
    "Search": "seed rounds",
    "Limits": "velocity acceleration",
    "Output": "out rate json",
}


class Goal(click.ParamType):
    """Positions of all joints, or pose:x,y,z,roll,pitch,yaw."""

    name = "goal"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or not value.startswith("pose:"):
            return "positions", Numbers().convert(value, param, ctx)
        return "pose", Numbers(6).convert(value.removeprefix("pose:"), param, ctx)


@headings.command("plan", _HEADINGS)
@robot_argument
@click.option(
    "--from",
    "start",
    type=Numbers(),
    required=True,
    metavar="Q1,Q2,…",
    help="Positions at the start [rad or m].",
)
@click.option(
    "--to",
    "goal",
    type=Goal(),
    required=True,
    metavar="Q1,Q2,…|pose:X,Y,Z,ROLL,PITCH,YAW",
    help="Positions at the end, or the pose of a frame [m, rad].",
)
@click.option("--frame", help="Of a pose or of what is kept; by default the only leaf.")
@click.option("--world", type=click.Path(), metavar="FILE.json", help="Obstacles; by default there are none.")
@click.option(
    "--clearance",
    type=NOT_NEGATIVE,
    default=0.0,
    show_default=True,
    help="Distance to keep to obstacles and between links [m].",
)
@click.option(
    "--keep-axis",
    type=Numbers(6),
    metavar="X,Y,Z,X,Y,Z",
    help="An axis of the frame, and the direction in base axes that it keeps.",
)
@click.option(
    "--tilt", type=POSITIVE, default=0.02, show_default=True, help="Largest angle between both [rad]."
)
@click.option(
    "--keep-plane",
    type=Numbers(4),
    metavar="X,Y,Z,HEIGHT",
    help="Normal and height [m] of a plane on which the frame stays.",
)
@click.option(
    "--distance", type=POSITIVE, default=1e-3, show_default=True, help="Largest distance from it [m]."
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="The same seed gives the same motion.")
@click.option(
    "--rounds", type=WholeNumber(1, 2**31), default=20000, show_default=True, help="Of the search, at most."
)
@click.option(
    "--velocity", type=Numbers(each=POSITIVE), metavar="V|V1,V2,…", help="Limits in place of the robot's."
)
@click.option(
    "--acceleration", type=Numbers(each=POSITIVE), metavar="A|A1,A2,…", help="Limits [rad/s² or m/s²]."
)
@click.option(
    "--out",
    type=headings.TABLE,
    metavar="FILE.csv",
    help="Write the motion: t, q, qd, qdd; - is standard output.",
)
@click.option(
    "--rate", type=POSITIVE, default=1000.0, show_default=True, help="Rows per second of the table."
)
@json_option
def command(
    robot,
    gravity,
    lock,
    base,
    mimic,
    start,
    goal,
    frame,
    world,
    keep_axis,
    tilt,
    keep_plane,
    distance,
    velocity,
    acceleration,
    out,
    rate,
    as_json,
    **options,
):
    """Find a motion from one position to another that touches nothing, in the shortest time under the limits.

    Links are spheres around the geometry of the robot's file. The clearance is proved between samples, too. The torques
    of the motors are kept, with the payload of the robot. Exit status 1: there is no motion, and why.

    \b
    Example:
      linkwise plan arm.urdf --from 0,0.3,0,-1.5,0,1.8,0 --to 1.2,0.3,0,-1.5,0,1.8,0 --world shelf.json --out motion.csv
      linkwise plan ur10e --from 0,-1.5,1,0,0,0 --to pose:0.5,0.2,0.4,3.14,0,0
      linkwise plan arm.urdf --from … --to … --keep-axis 0,0,1,0,0,-1 --tilt 0.05

    \b
    A world:
      {"obstacles": [
        {"type": "box",
         "lower": [0.3, -0.5, 0], "upper": [0.4, 0, 0.5]},
        {"type": "sphere",
         "centre": [0.5, 0, 0.6], "radius": 0.1}]}
    """
    from linkwise.collision import World, read_world
    from linkwise.motion import plan

    loaded = load_robot(robot, gravity, lock, base, mimic, moving=True)
    check_targets(out)
    if out is None:
        refuse_given(("rate",), "is for the table of --out")
    around = World() if world is None else read_world(world)
    target = _goal(goal)
    constraint = _kept(keep_axis, tilt, keep_plane, distance, frame)
    if goal[0] != "pose" and constraint is None and frame is not None:
        raise click.UsageError("--frame: only for --to pose:…, --keep-axis and --keep-plane")
    found = plan(
        loaded,
        start,
        target,
        around,
        frame=frame if goal[0] == "pose" else None,
        constraint=constraint,
        velocity=_per_joint("velocity", velocity, loaded),
        acceleration=_per_joint("acceleration", acceleration, loaded),
        **options,
    )
    if found.motion is not None and out is not None:
        motion = found.motion
        bounds.check(
            f"--rate: {motion.duration * rate:.6g} rows", motion.duration * rate * (1 + 3 * loaded.dof)
        )
        samples = motion.sampled(rate)
        table = {"t": samples.t} | numbered("q", samples.q)
        write_table(out, table | numbered("qd", samples.qd) | numbered("qdd", samples.qdd))
    if as_json:
        say_json(_facts(found, out))
    else:
        _show(found, out)
    if not found:
        raise click.exceptions.Exit(1)


def _goal(goal: tuple[str, tuple[float, ...]]) -> Any:
    kind, numbers = goal
    if kind == "positions":
        return numbers
    from linkwise.model import Transform

    pose = Transform.from_rpy(numbers[:3], numbers[3:])
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = pose.rotation, pose.translation
    return matrix


def _kept(
    axis: tuple[float, ...] | None,
    tilt: float,
    plane: tuple[float, ...] | None,
    distance: float,
    frame: str | None,
) -> Keep | None:
    if axis is None:
        refuse_given(("tilt",), "is for --keep-axis")
    if plane is None:
        refuse_given(("distance",), "is for --keep-plane")
    if axis is None and plane is None:
        return None
    from linkwise.motion import Keep

    kept: dict[str, Any] = {"frame": frame}
    vectors = {"keep-axis": axis and (axis[:3], axis[3:]), "keep-plane": plane and (plane[:3],)}
    for option, given in vectors.items():
        if not all(any(vector) for vector in given or ()):
            raise click.UsageError(f"--{option}: the numbers of a direction must not all be 0")
    if axis is not None:
        kept |= {"axis": axis[:3], "direction": axis[3:], "tilt": tilt}
    if plane is not None:
        kept |= {"normal": plane[:3], "height": plane[3], "distance": distance}
    return Keep(**kept)


def _per_joint(name: str, given: tuple[float, ...] | None, robot: Robot) -> Any:
    if given is None:
        return None
    if len(given) not in (1, robot.dof):
        raise LinkwiseError(f"--{name}: expected 1 or {robot.dof} numbers, got {len(given)}")
    return given[0] if len(given) == 1 else given


def _facts(found: MotionPlan, out: str | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"status": found.status, "message": found.message, "seed": found.seed}
    facts |= {"rounds": found.rounds, "seconds": found.seconds}
    if found.waypoints is not None:
        facts |= {"waypoints": found.waypoints, "clearance": found.clearance}
    if found.motion is not None:
        facts["duration"] = found.motion.duration
    return facts | ({"written": {"motion": out}} if out is not None and found.motion is not None else {})


def _show(found: MotionPlan, out: str | None) -> None:
    if not found:
        say(f"no motion: {found.status}" + (f": {found.message}" if found.message else ""))
        return
    assert found.motion is not None
    assert found.waypoints is not None
    say(f"a motion of {found.motion.duration:.4g} s over {len(found.waypoints)} way-points")
    say(
        f"at all times at least {100 * found.clearance:.2g} cm from obstacles and between links that are compared"
    )
    times = ", ".join(f"{key} {1e3 * value:.3g} ms" for key, value in found.seconds.items())
    say(times)
    say(f"motion written to {out}" if out is not None else "the motion was not written: give --out FILE.csv")
