"""``linkwise convert``."""

from __future__ import annotations

from pathlib import Path

import click

from linkwise.cli.support import headings, written
from linkwise.cli.support.options import json_option, load_robot, robot_argument
from linkwise.cli.support.output import say, say_json
from linkwise.core.foreign import line
from linkwise.formats.files import WRITE_ENDINGS


@headings.command("convert")
@robot_argument
@click.argument("file")
@click.option("--strict", is_flag=True, help="Refuse to write what other programs would not see.")
@json_option
def command(robot: str, file: str, gravity, lock, base, mimic, strict: bool, as_json: bool) -> None:
    """Write a robot as another FILE: .toml, .urdf or .xml (MJCF).

    Loading the new file with Linkwise gives the same robot, to the last bit. Other programs see the standard elements
    of the format alone: each term of the robot that these cannot hold is a warning, or with --strict an error.

    \b
    Example:
      linkwise convert scene.xml robot.urdf
      linkwise convert go2.urdf go2.xml --base floating
      linkwise convert panda panda.urdf --strict
      linkwise convert hand.urdf hand.toml --mimic independent --lock wrist=0
    """
    from linkwise.formats import files

    if Path(file).suffix.lower() not in WRITE_ENDINGS:
        raise click.UsageError(f"FILE: {file}: a robot is saved as {', '.join(WRITE_ENDINGS)}")
    written.check_targets(file)
    loaded = load_robot(robot, gravity, lock, base, mimic)
    lost = files.save(loaded, file, strict=strict)
    if as_json:
        facts = {"robot": loaded.name, "file": file, "dof": loaded.dof, "nq": loaded.nq}
        say_json({**facts, "lost": [str(loss) for loss in lost]})
    else:
        say(f"{file}: {line(loaded.name)}, {loaded.dof} velocities, {loaded.nq} positions")
