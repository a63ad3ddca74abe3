"""``linkwise demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from linkwise.cli.support import headings
from linkwise.cli.support.options import json_option
from linkwise.cli.support.output import Table, number, progress, say, say_json, show
from linkwise.cli.support.written import write_table
from linkwise.files.tables import numbered

if TYPE_CHECKING:
    from linkwise.cli.parts.counting import Row
    from linkwise.cli.parts.experiment import Experiment

COUNTED = ("inverse_dynamics", "forward_dynamics", "iterated_forward_dynamics")


@headings.command("demo", page=lambda given: str(Path(given["out"]) / "report.html"))
@click.option(
    "--out",
    metavar="DIR",
    default="linkwise-demo",
    show_default=True,
    help="Folder for the table, the plots and the report.",
)
@headings.open_option
@json_option
def command(out: str, as_json: bool) -> None:
    """Run Kozłowski's PUMA 560 experiment of 1990 end to end.

    All six joints move for 4 s along quintics, 300 points. Torques by every inverse-dynamics algorithm; accelerations
    back from them by every forward-dynamics algorithm; operation counts beside the papers'. Writes a report with plots
    (report.html, one file for any browser), its plots as SVG files (figures/) and the torques as a table
    (torques.csv).

    \b
    Example:
      linkwise demo
      linkwise demo --out results --json
    """
    from linkwise.cli.parts import demo_report, experiment
    from linkwise.cli.parts.counting import rows

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    with progress("PUMA 560", 16) as advance:
        done = experiment.run(advance)
        counted = []
        for row in rows(done.robot, COUNTED, friction=False):
            counted.append(row)
            advance()
    table = folder / "torques.csv"
    write_table(str(table), done.motion.columns() | numbered("tau", done.tau))
    report = demo_report.write(done, counted, folder)
    if as_json:
        say_json(_facts(done, counted, table) | {"report": str(report)})
        return
    _show(done, counted)
    say(f"torques written to {table}")
    say(f"report written to {report}, its plots as SVG files to {folder / 'figures'}")


def _show(done: Experiment, counted: list[Row]) -> None:
    show(_motion_table(done))
    show(_agreement_table(done))
    show(_count_table(counted))
    show(_speed_table(done))


def _motion_table(done: Experiment) -> Table:
    from linkwise.cli.parts.experiment import RANGES

    lines = []
    for k, (joint, (first, last)) in enumerate(zip(done.robot.moving_joints, RANGES, strict=True)):
        torque = done.tau[:, k]
        speed, most = (float(np.abs(values[:, k]).max()) for values in (done.motion.qd, done.tau))
        in_paper = str(done.robot.dof - k)
        rms = float(np.sqrt(np.mean(torque**2)))
        lines.append(
            [joint.name, in_paper, f"{first}°", f"{last}°", *(number(x) for x in (speed, most, rms))]
        )
    names = [
        *("joint", ">in the paper", ">from", ">to"),
        *(">top speed [rad/s]", ">largest torque [N·m]", ">rms [N·m]"),
    ]
    title = "PUMA 560 (Kozłowski 1990, section 5): quintic moves, 4 s, 300 points, no friction"
    return Table(title, names, lines)


def _agreement_table(done: Experiment) -> Table:
    lines = [
        [
            each.function,
            each.algorithm,
            f"{each.error:.1e}",
            "" if each.residual is None else f"{each.residual:.1e}",
        ]
        for each in done.judged
    ]
    notes = [
        "inverse dynamics: torques against newton_euler; forward dynamics: accelerations against those of the motion;",
        "residual: ‖ID(q̈) − τ‖ / (‖τ‖ + ‖b‖ + ‖M‖‖q̈‖), worst of the points",
    ]
    return Table(
        "Every algorithm", ["function", "algorithm", ">relative difference", ">residual"], lines, notes
    )


def _speed_table(done: Experiment) -> Table:
    from linkwise.cli.parts.experiment import RATES_OF_1990

    lines = [
        [function, f"{rate:,.0f}".replace(",", " "), f"{RATES_OF_1990[function]:.0f}"]
        for function, rate in done.rates.items()
    ]
    title = "Evaluations per second, one thread, all points in one call"
    then = "1990: Turbo Pascal on a PC with an 80386 and 80387"
    return Table(title, ["function", ">here", ">1990"], lines, [then])


def _count_table(counted: list[Row]) -> Table:
    from linkwise.cli.parts.counting import as_printed

    lines = [
        [row.function, row.algorithm]
        + [as_printed(each, row.iterations) for each in (row.own, row.general, row.general_regrouped)]
        + ["; ".join(f"{m}/{a} {source}" for source, m, a in row.printed)]
        for row in counted
    ]
    notes = [
        "multiplications and divisions / additions, without sin and cos; conjugate gradients: 6 iterations;",
        "general arm: 6 revolute joints, axes parallel or perpendicular, all offsets, ten parameters per link;",
        "regrouped: its parameters first regrouped into fewer that give the same torques, as for the PUMA 560",
    ]
    names = [
        "function",
        "algorithm",
        ">PUMA 560",
        ">general arm",
        ">regrouped",
        "published for the general arm",
    ]
    return Table("Operations", names, lines, notes)


def _facts(done: Experiment, counted: list[Row], table: Path) -> dict:
    from linkwise.cli.parts.counting import totals

    return {
        "robot": done.robot.name,
        "joints": done.robot.joint_names,
        "points": len(done.tau),
        "largest_torque": np.abs(done.tau).max(axis=0),
        "algorithms": [
            {
                "function": e.function,
                "algorithm": e.algorithm,
                "relative_difference": e.error,
                "residual": e.residual,
            }
            for e in done.judged
        ],
        "operations": [
            {
                "function": row.function,
                "algorithm": row.algorithm,
                "iterations": row.iterations,
                "multiplications_additions_divisions": totals(row.own, row.iterations),
                "general_arm": None if row.general is None else totals(row.general, row.iterations),
                "general_arm_regrouped": None
                if row.general_regrouped is None
                else totals(row.general_regrouped, row.iterations),
                "published": [{"source": s, "multiplications": m, "additions": a} for s, m, a in row.printed],
            }
            for row in counted
        ],
        "evaluations_per_second": done.rates,
        "torques": str(table),
    }
