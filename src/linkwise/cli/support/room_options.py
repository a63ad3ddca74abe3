"""Options of commands that keep a robot away from itself and from what is around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.support.options import NOT_NEGATIVE, POSITIVE, Number, Numbers

if TYPE_CHECKING:
    from linkwise.collision import Room, Tool

NAMES = ("floor", "box", "forbid", "clearance", "links_may_touch", "tool", "tool_frame", "radius", "meshes")


class Height(click.ParamType):
    """A number of metres, or none."""

    name = "height"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
        return Number().convert(value, param, ctx)


def room_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; ``room_of`` takes their values."""
    corners = Numbers(6)
    for option in reversed(
        (
            click.option(
                "--floor",
                type=Height(),
                default="0",
                show_default=True,
                metavar="H|none",
                help="Height of the floor above the origin of the base frame [m], against gravity.",
            ),
            click.option(
                "--box",
                type=corners,
                metavar="X,Y,Z,X,Y,Z",
                help="Lower and upper corner of the space that moving links must not leave [m], base frame.",
            ),
            click.option(
                "--forbid",
                type=corners,
                multiple=True,
                metavar="X,Y,Z,X,Y,Z",
                help="Lower and upper corner of a box that moving links must not touch; may be repeated.",
            ),
            click.option(
                "--clearance",
                type=NOT_NEGATIVE,
                default=0.02,
                show_default=True,
                help="Least distance to all of these and between links [m].",
            ),
            click.option("--links-may-touch", is_flag=True, help="Do not check distances between links."),
            click.option(
                "--tool",
                metavar="R|R,L|FILE",
                help="What is fixed to the tip: a sphere of radius R [m], a capsule of length L along z, or a mesh.",
            ),
            click.option(
                "--tool-frame", metavar="NAME", help="The frame of the tool; by default the only leaf."
            ),
            click.option(
                "--radius",
                type=POSITIVE,
                help="Radius of links whose geometry is unknown [m]; by default 6 % of the reach and less.",
            ),
            click.option(
                "--meshes",
                multiple=True,
                metavar="DIR",
                type=click.Path(exists=True, file_okay=False),
                help="Look for meshes here too; may be repeated.",
            ),
        )
    ):
        command = option(command)
    return command


def room_of(options: dict[str, Any]) -> Room:
    """The room of a command's options, which are taken out of ``options``."""
    from linkwise.collision import Box, Room

    given = {name: options.pop(name) for name in NAMES}
    try:
        return Room(
            floor=given["floor"],
            inside=None if given["box"] is None else Box(given["box"][:3], given["box"][3:]),
            forbidden=tuple(Box(corners[:3], corners[3:]) for corners in given["forbid"]),
            clearance=given["clearance"],
            links=not given["links_may_touch"],
            tool=_tool(given["tool"], given["tool_frame"]),
            radius=given["radius"],
            meshes=given["meshes"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _tool(given: str | None, frame: str | None) -> Tool | None:
    from linkwise.collision import Tool

    if given is None:
        if frame is not None:
            raise click.UsageError("--tool-frame: give --tool, too")
        return None
    try:
        numbers = [float(part) for part in given.split(",")]
    except ValueError:
        return Tool(mesh=given, frame=frame)
    if len(numbers) > 2:
        raise click.UsageError(f"--tool: expected a radius, a radius and a length, or a file, got {given!r}")
    return Tool(numbers[0], numbers[1] if len(numbers) > 1 else 0.0, frame=frame)
