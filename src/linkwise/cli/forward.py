"""``linkwise forward``."""

from __future__ import annotations

import click
import numpy as np

from linkwise.cli.support import headings
from linkwise.cli.support.options import json_option, load_robot, robot_argument, table_option
from linkwise.cli.support.output import Table, number, say, say_json, show
from linkwise.cli.support.written import check_targets, write_table
from linkwise.files.tables import finite, numbered, read_states
from linkwise.model.coordinates import coordinate_names, velocity_coordinates

_HEADINGS = {
    "Method": "algorithm no-friction",
}


@headings.command("forward", _HEADINGS)
@robot_argument
@click.option(
    "--torques", required=True, metavar="FILE", help="A table of t, q, qd, tau; - reads standard input."
)
@click.option(
    "--algorithm",
    metavar="NAME",
    help="kalman (default), compound_link, conjugate_gradient, preconditioned_conjugate_gradient.",
)
@click.option("--no-friction", is_flag=True, help="Leave friction out.")
@table_option
@json_option
def command(robot, gravity, lock, base, mimic, torques, algorithm, no_friction, out, as_json):
    """Compute the joint accelerations that torques cause.

    The file has a line per state and columns t (optional), q1 … qn, qd1 … qdn, tau1 … taun, with a header (then in any
    order, also as q.JOINT) or without. Units: s, rad, m, N·m, N.

    \b
    Example:
      linkwise forward puma560 --torques states.csv --out accelerations.csv
      linkwise inverse panda --trajectory motion.csv --states | linkwise forward panda --torques -
    """
    loaded = load_robot(robot, gravity, lock, base, mimic, moving=True)
    check_targets(out)
    t, states = read_states(torques, ("q", "qd", "tau"), *coordinate_names(loaded))
    qdd = loaded.forward_dynamics(
        states["q"], states["qd"], states["tau"], algorithm=algorithm, friction=not no_friction
    )
    table = ({} if t is None else {"t": t}) | numbered("qdd", qdd)
    finite(table)
    if out is not None:
        write_table(out, table)
    if as_json:
        say_json({"robot": loaded.name, "joints": loaded.joint_names, "out": out, "columns": table})
    elif out is None:
        write_table(None, table)
    else:
        rows = [
            [joint.name, number(float(np.abs(values).max())), "rad/s²" if joint.revolute else "m/s²"]
            for joint, values in zip(velocity_coordinates(loaded), qdd.T, strict=True)
        ]
        show(Table(f"Accelerations of {loaded.name}", ["joint", ">largest", "unit"], rows))
        say(f"{len(qdd)} states written to {out}")
