"""``linkwise view``."""

from __future__ import annotations

import sys
import time
import warnings

import click

from linkwise.cli.options import WholeNumber, json_option, load_robot, robot_argument
from linkwise.cli.output import say, say_json
from linkwise.cli.warned import show_warnings


@click.command("view")
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
@click.option("--no-shadows", is_flag=True, help="Twice as fast on machines without a graphics card.")
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
    _announce(page, port, as_json)
    if open_browser:
        click.launch(page.url)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        page.close()
        if not as_json:
            say()


def _announce(page, wanted: int, as_json: bool) -> None:
    problems = page.looks.problems
    if as_json:
        say_json(
            {"url": page.url, "port": page.port, "meshes": len(page.looks.visuals), "problems": problems}
        )
    else:
        if wanted not in (0, page.port):
            say(f"port {wanted} is busy, {page.port} is not")
        for problem in problems[:3]:
            say(f"not shown: {problem}")
        if len(problems) > 3:
            say(f"and {len(problems) - 3} more, listed on the page")
        say(f"{page.robot.name} is at {page.url} (Ctrl+C ends it)")
        if page.network_url is not None:
            say(f"from other machines: {page.network_url}")
    sys.stdout.flush()
