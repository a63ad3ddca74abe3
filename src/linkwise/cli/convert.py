"""``linkwise convert``."""

from __future__ import annotations

from pathlib import Path

import click

from linkwise.cli import headings, written
from linkwise.cli.options import json_option, load_robot, robot_argument
from linkwise.cli.output import say, say_json
from linkwise.model.files import WRITE_ENDINGS


@headings.command("convert")
@robot_argument
@click.argument("file")
@json_option
def command(robot: str, file: str, gravity, lock, base, mimic, as_json: bool) -> None:
    """Write a robot as another FILE: .toml, .urdf or .xml (MJCF).

    Loading the new file gives the same robot, to the last bit. What a format cannot hold is an error that names it.

    \b
    Example:
      linkwise convert scene.xml robot.urdf
      linkwise convert go2.urdf go2.xml --base floating
      linkwise convert hand.urdf hand.toml --mimic independent --lock wrist=0
    """
    import linkwise as lw

    if Path(file).suffix.lower() not in WRITE_ENDINGS:
        raise click.UsageError(f"FILE: {file}: a robot is saved as {', '.join(WRITE_ENDINGS)}")
    written.check_targets(file)
    loaded = load_robot(robot, gravity, lock, base, mimic)
    lw.save(loaded, file)
    if as_json:
        say_json({"robot": loaded.name, "file": file, "dof": loaded.dof, "nq": loaded.nq})
    else:
        say(f"{file}: {loaded.name}, {loaded.dof} velocities, {loaded.nq} positions")
