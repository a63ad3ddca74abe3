"""Options and output of ``linkwise identify --method didim`` and ``--method cloe``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import NOT_NEGATIVE, POSITIVE, Numbers, OneOf
from linkwise.cli.support.output import Table, number, say, show
from linkwise.control import CONTROLLERS

if TYPE_CHECKING:
    from linkwise.control import Controller
    from linkwise.identify import ClosedLoopIdentification, Layout, Log
    from linkwise.robot.robot import Robot

METHODS = ("inverse", "didim", "cloe")
OWN = ("reference", "controller", "frequency", "damping", "kp", "kd")
"""Options that belong to the closed-loop methods."""
OTHERS = ("derivatives", "decimation", "estimator", "significance", "network")
"""Options that these methods do not have: they take no derivatives of recorded positions, and fit no residuals."""


def closed_loop_options(command: Callable) -> Callable:
    """--method and what belongs to it."""
    decorators = [
        click.option(
            "--method",
            type=OneOf(METHODS, "method"),
            default="inverse",
            show_default=True,
            help="inverse: least squares along the recorded motion; didim, cloe: motions from simulations of the "
            "closed loop, torques alone from the recording.",
        ),
        click.option(
            "--reference",
            metavar="COLUMNS",
            help="For didim and cloe: columns of the recording with the positions that the controller was told to "
            "follow, such as 'qr{}'; default: the recorded motion, smoothed.",
        ),
        click.option(
            "--controller",
            type=OneOf(tuple(CONTROLLERS), "name"),
            help=f"For didim and cloe, the recorded robot's, with ROBOT as its model: {', '.join(CONTROLLERS)}; "
            "default: one that follows as the recorded robot did.",
        ),
        click.option(
            "--frequency", type=POSITIVE, metavar="RAD/S", help="Natural frequency of --controller."
        ),
        click.option("--damping", type=NOT_NEGATIVE, metavar="ZETA", help="Its damping; 1."),
        click.option(
            "--kp", type=Numbers(each=NOT_NEGATIVE), metavar="KP,…", help="Its gains instead: one or n."
        ),
        click.option("--kd", type=Numbers(each=NOT_NEGATIVE), metavar="KD,…", help="The same."),
    ]
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def check_method(options: dict[str, Any]) -> None:
    """Raise for options that do not belong together."""
    if options["method"] == "inverse":
        refuse_given(OWN, "belongs to --method didim or cloe")
        return
    refuse_given(OTHERS, "belongs to --method inverse")
    if options["controller"] is None:
        refuse_given(("frequency", "damping", "kp", "kd"), "belongs to --controller")
    elif options["reference"] is None:
        raise click.UsageError("--controller needs --reference: what it was told to follow")


def closed_loop_identified(
    robot: Robot,
    train: list[Log],
    tests: list[Log],
    references: list[np.ndarray] | None,
    options: dict[str, Any],
) -> ClosedLoopIdentification:
    """The robot by the chosen method."""
    from linkwise import identify as library

    method = {"didim": library.didim, "cloe": library.cloe}[options["method"]]
    strength = {} if options["strength"] is None else {"strength": options["strength"]}
    return method(
        robot,
        train,
        reference=references,
        controller=_controller(robot, options),
        validation=tests or None,
        cutoff=options["cutoff"],
        friction=options["friction"],
        lag=options["lag"],
        **strength,
    )


def reference_layout(layout: Layout, columns: str) -> Layout:
    """A layout under which the positions of a recording are those of the reference."""
    wanted: Any = int(columns) if columns.isdigit() else columns
    if "," in columns:
        wanted = [int(part) if part.isdigit() else part for part in (x.strip() for x in columns.split(","))]
    return replace(layout, columns={**layout.columns, "position": wanted})


def same_stamps(logs: Sequence[Log], references: Sequence[Log]) -> list[np.ndarray]:
    """The reference of every recording, (N, n)."""
    for log, each in zip(logs, references, strict=True):
        if len(log) != len(each) or not np.array_equal(log.t, each.t):
            raise click.UsageError(
                f"--reference: {log.name}: the columns of the reference have {len(each)} usable rows, the others "
                f"{len(log)}"
            )
    return [each.q for each in references]


def _controller(robot: Robot, options: dict[str, Any]) -> Controller | None:
    from linkwise.control import Gains, named

    name = options["controller"]
    if name is None:
        return None
    gains = None
    if options["kp"] is not None or options["kd"] is not None:
        if options["kp"] is None or options["kd"] is None:
            raise click.UsageError("--kp and --kd are given together")
        gains = Gains(*(np.array(x) if len(x) > 1 else x[0] for x in (options["kp"], options["kd"])))
    damping = 1.0 if options["damping"] is None else options["damping"]
    return named(name, robot, gains, frequency=options["frequency"], damping=damping)


def show_closed_loop(found: ClosedLoopIdentification) -> None:
    """How the simulations went, one row each."""
    rows = [
        [str(each.number), number(each.residual, 3), number(each.distance, 3), number(each.change, 3)]
        for each in found.history
    ]
    columns = [">simulation", ">residual [%]", ">distance [rad or m]", ">change [%]"]
    notes = [
        "residual: 100·‖τ − τ̂‖/‖τ‖ of measured and simulated torques; change: of the torques by the next estimate;",
        "distance: root mean square of simulated minus recorded positions",
    ]
    show(Table(f"{found.identification.prior.name} by {found.method.upper()}", columns, rows, notes))
    say("converged" if found.converged else "NOT converged")


def closed_loop_facts(found: ClosedLoopIdentification) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "method": found.method,
        "converged": found.converged,
        "simulations": [vars(each) for each in found.history],
        "relative_simulated": found.relative,
    }
