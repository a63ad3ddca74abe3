"""Recordings named on the command line: tables, or layouts that name their files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from linkwise.identify import Layout, Log
    from linkwise.robot.robot import Robot


def read_layout(path: str | None) -> Layout:
    """The layout of a file; the default one where none is given."""
    from linkwise.identify import Layout

    return Layout() if path is None else Layout.read(path)


def read_source(
    robot: Robot,
    source: str,
    layout: Layout,
    rows: tuple[int, int] | None,
    *,
    drop_bad_rows: bool,
    topic: str | None = None,
    currents: bool = False,
) -> Log:
    """A recording; a source that ends in .toml is a layout that names its files.

    Args:
        robot: the robot.
        source: the file.
        layout: of files that are no layouts themselves.
        rows: first and last row, from 1.
        drop_bad_rows: leave out rows that hold no numbers.
        topic: of a rosbag.
        currents: use what was recorded as it is, without gains.
    """
    from linkwise.identify import read_log

    if source.endswith(".toml"):
        layout = read_layout(source)
        if not layout.files:
            raise click.UsageError(
                f"{source}: a layout without files; give it as --layout, or name recording.files"
            )
    if topic is not None:
        layout = replace(layout, topic=topic)
    if currents:
        layout = replace(layout, gains=(1.0,) * robot.dof)
    return read_log(source, robot, layout, rows=rows, drop_bad_rows=drop_bad_rows, name=Path(source).name)
