"""``linkwise view``."""

from __future__ import annotations

import warnings

import click

from linkwise.cli import headings
from linkwise.cli.options import WholeNumber, json_option, load_robot, robot_argument
from linkwise.cli.pages import announce, until_interrupted
from linkwise.cli.warned import show_warnings

_HEADINGS = {
    "Page": "open port host dark no-shadows",
    "Robot": "frame meshes gravity lock base mimic",
    "Motion": "trajectory",
    "Output": "json",
}


@headings.command("view", _HEADINGS)
@robot_argument
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
@click.option("--dark", is_flag=True, help="A dark page.")
@click.option(
    "--no-shadows", is_flag=True, help="No shadows and reflections: much faster without a graphics card."
)
@click.option("--open", "open_browser", is_flag=True, help="Open it in the browser.")
@json_option
def command(
    robot: str,
    gravity,
    lock,
    base,
    mimic,
    port,
    host,
    meshes,
    trajectory,
    frame,
    dark,
    no_shadows,
    open_browser,
    as_json,
) -> None:
    """Show a robot in the browser: joints to move, the torques that hold them, motions, controllers, generated code.

    URDF and MJCF files are shown with their meshes where these lie inside the file's own folder tree or inside
    --meshes; every other robot as capsules and cylinders. Ends with Ctrl+C.

    The printed address contains a token: requests without it, for another host name or from pages of other web sites
    are refused.

    \b
    Example:
      linkwise view panda
      linkwise view arm.urdf --meshes ../arm_meshes --trajectory motion.csv
    """
    from linkwise import motion
    from linkwise.model.coordinates import check_one_axis
    from linkwise.view import serve

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load_robot(robot, gravity, lock, base, mimic)
    show_warnings(caught)  # now, as the command goes on until it is stopped
    if trajectory is not None:
        check_one_axis(loaded, "--trajectory")
    played = None if trajectory is None else motion.read_csv(trajectory, loaded.joint_names)
    if played is not None and played.dof != loaded.dof:
        raise click.UsageError(
            f"{trajectory}: a motion of {played.dof} joints, {loaded.name} has {loaded.dof}"
        )
    page = serve(
        loaded,
        meshes=meshes,
        motion=played,
        frame=frame,
        host=host,
        port=port,
        dark=dark,
        shadows=not no_shadows,
    )
    announce(page, port, as_json)
    if open_browser:
        headings.open_in_browser(page.url)
    until_interrupted(page, as_json)
