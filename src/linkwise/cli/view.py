"""``linkwise view``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.support import headings
from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import WholeNumber, json_option, load_robot, robot_argument
from linkwise.cli.support.output import say, say_json
from linkwise.cli.support.pages import announce, until_interrupted
from linkwise.cli.support.warned import show_warnings
from linkwise.cli.support.written import check_targets, write
from linkwise.core.foreign import line
from linkwise.files.outputs import is_standard_output

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot

_HEADINGS = {
    "Page": "open port host dark no-shadows",
    "Robot": "frame contact meshes gravity lock base mimic",
    "Motion": "trajectory",
    "Output": "out json",
}


@headings.command("view", _HEADINGS)
@robot_argument
@click.argument("others", nargs=-1, metavar="[OTHER]...")
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    default=8080,
    show_default=True,
    help="Port; the next free one if it is busy.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to bind; 0.0.0.0 serves the page to the network.",
)
@click.option(
    "--meshes",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Look for meshes here too; may be repeated.",
)
@click.option(
    "--trajectory", metavar="FILE", help="A motion to play: a table with t, q1 … qn and, if known, qd, qdd."
)
@click.option("--frame", metavar="NAME", help="The frame that carries the load and can be dragged.")
@click.option(
    "--contact",
    is_flag=True,
    help="Contacts of the file with the ground: a robot with feet stands, and its body can be dragged.",
)
@click.option("--dark", is_flag=True, help="A dark page.")
@click.option(
    "--no-shadows", is_flag=True, help="No shadows and reflections: much faster without a graphics card."
)
@click.option("--open", "open_browser", is_flag=True, help="Open it in the browser.")
@click.option(
    "--out",
    type=headings.PAGE,
    metavar="FILE.html",
    help="Write one file that works without a network instead of serving a page: to send to a colleague.",
)
@json_option
def command(
    robot: str,
    others,
    gravity,
    lock,
    base,
    mimic,
    port,
    host,
    meshes,
    trajectory,
    frame,
    contact,
    dark,
    no_shadows,
    open_browser,
    out,
    as_json,
) -> None:
    """Show a robot in the browser: joints to move, the torques that hold them, motions, controllers, generated code.

    URDF and MJCF files are shown with their meshes where these lie inside the file's own folder tree or inside
    --meshes; every other robot as capsules and cylinders. Ends with Ctrl+C.

    The printed address contains a token: requests without it, for another host name or from pages of other web sites
    are refused.

    Further robots are shown beside the first, such as an arm before and after identification; those with as many
    coordinates follow its sliders, and their torques are listed below its own.

    With --out one file is written instead, at most 6 MB, with meshes of at most 60 000 triangles: sliders, gravity
    torques, motions and C code, computed in the browser that opens it.

    \b
    Example:
      linkwise view panda
      linkwise view arm.urdf --meshes ../arm_meshes --trajectory motion.csv
      linkwise view arm.urdf identified.toml
      linkwise view arm.urdf --out arm.html
      linkwise view scene.xml --contact
    """
    check_targets(out)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded, *beside = (
            load_robot(each, gravity, lock, base, mimic, contact=contact) for each in (robot, *others)
        )
    show_warnings(caught)  # now, as the command goes on until it is stopped
    options: dict[str, Any] = {"meshes": meshes, "motion": _motion(loaded, trajectory), "frame": frame}
    if out is not None:
        if beside:
            raise click.UsageError(
                "--out: a page file shows one robot; leave out --out to see several side by side"
            )
        refuse_given(("port", "host", "no_shadows"), "is for a page that is served; --out writes one")
        _write(loaded, out, {**options, "dark": True if dark else None}, as_json, open_browser)
        return
    from linkwise.view import serve

    page = serve(loaded, host=host, port=port, dark=dark, shadows=not no_shadows, others=beside, **options)
    with until_interrupted(page, as_json):
        announce(page, port, as_json)
        if open_browser:
            headings.open_in_browser(page.url)


def _motion(robot: Robot, trajectory: str | None) -> Any:
    """The motion of the option --trajectory."""
    from linkwise import motion
    from linkwise.model.coordinates import check_one_axis

    if trajectory is None:
        return None
    check_one_axis(robot, "--trajectory")
    played = motion.read_csv(trajectory, robot.joint_names)
    if played.dof != robot.dof:
        raise click.UsageError(f"{trajectory}: a motion of {played.dof} joints, {robot.name} has {robot.dof}")
    return played


def _write(robot: Robot, out: str, options: dict[str, Any], as_json: bool, shown: bool) -> None:
    """Write a page file, and say how large it is."""
    from linkwise.view.offline import page_file

    text = page_file(robot, **options)
    write(out, text)
    size = len(text.encode())
    if as_json:
        say_json({"file": out, "bytes": size})
    else:
        say(f"{out}: {line(robot.name)}, {size / 1e6:.2f} MB, works without a network")
    if shown and not is_standard_output(out):
        headings.open_in_browser(Path(out).resolve().as_uri())
