"""``linkwise robots``."""

from __future__ import annotations

from linkwise.cli.support import headings
from linkwise.cli.support.options import json_option
from linkwise.cli.support.output import Table, number, say_json, show


@headings.command("robots")
@json_option
def command(as_json: bool) -> None:
    """List the bundled robots.

    \b
    Example:
      linkwise robots
    """
    import linkwise as lw

    bundled = [(name, lw.load(name)) for name in lw.robots()]
    if as_json:
        say_json([{"name": name, "dof": robot.dof, "mass": _mass(robot)} for name, robot in bundled])
        return
    rows = [[name, str(robot.dof), _letters(robot), number(_mass(robot))] for name, robot in bundled]
    show(
        Table(
            "Bundled robots",
            ["name", ">joints", "types", ">mass [kg]"],
            rows,
            ["linkwise info NAME shows more"],
        )
    )


def _letters(robot) -> str:
    """R for a joint that turns, P for one that slides."""
    return "".join("R" if joint.revolute else "P" for joint in robot.coordinate_joints)


def _mass(robot) -> float:
    return sum(link.inertia.mass for link in robot.links)
