"""``linkwise operations``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import linkwise
from linkwise.cli.parts.counting import Row, as_printed, axes_of, rows, totals
from linkwise.cli.support import headings
from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import ROBOT_OPTIONS, json_option, load_robot, robot_options
from linkwise.cli.support.output import Table, progress, say_json, say_verbatim, show
from linkwise.errors import LinkwiseError

_HEADINGS = {
    "Counting": "function stages no-friction",
    "Published counts": "compare markdown",
}


@headings.command("operations", _HEADINGS)
@robot_options(required=False)
@click.option(
    "--function", "names", multiple=True, metavar="NAME", help="Count this function only; may be repeated."
)
@click.option("--stages", is_flag=True, help="Split the counts by the passes of each algorithm.")
@click.option("--no-friction", is_flag=True, help="Leave friction out.")
@click.option("--compare", is_flag=True, help="No ROBOT: the table of records, published counts beside ours.")
@click.option("--markdown", is_flag=True, help="With --compare: the whole page, as docs/records.md has it.")
@json_option
def command(
    robot: str | None,
    gravity,
    lock,
    base,
    mimic,
    names,
    stages: bool,
    no_friction: bool,
    compare: bool,
    markdown: bool,
    as_json: bool,
):
    """Count the operations of every algorithm on this robot, beside the published counts.

    A multiplication or addition counts even by a constant; a change of sign is free; what depends on constants alone
    is folded. Papers count a general arm, so the same count of a general arm with as many joints is shown beside
    theirs.

    \b
    Example:
      linkwise operations puma560
      linkwise operations arm.urdf --function inverse_dynamics --stages
      linkwise operations --compare
    """
    if compare:
        about_robots = ("robot", "names", "stages", "no_friction", *ROBOT_OPTIONS)
        refuse_given(about_robots, "does not go with --compare, which is about general arms")
        _show_records(markdown, as_json)
        return
    refuse_given(("markdown",), "belongs to --compare")
    if robot is None:
        raise click.UsageError("Missing argument 'ROBOT'")
    loaded = load_robot(robot, gravity, lock, base, mimic)
    counted = []
    with progress("counting", 20) as advance:
        for row in rows(loaded, names or None, not no_friction):
            counted.append(row)
            advance()
    if not counted:
        raise LinkwiseError(f"{loaded.name} has {loaded.dof} joints: there is no straight-line code to count")
    if as_json:
        say_json({"robot": loaded.name, "axes": axes_of(loaded), "counts": [_plain(row) for row in counted]})
        return
    show(_table(loaded, counted))
    if stages:
        for row in counted:
            show(_stage_table(row))


def _records_page() -> Any:
    """What counts the operations of the papers and of this library: ``research/records`` of the repository."""
    root = Path(linkwise.__file__).parents[2]
    if not (root / "research" / "records").is_dir():
        raise click.UsageError(
            "--compare needs the folder research of Linkwise's repository, which is not installed"
        )
    if str(root) not in sys.path:
        sys.path.append(str(root))
    from research.records import page

    return page


def _show_records(markdown: bool, as_json: bool) -> None:
    page = _records_page()
    if markdown:
        say_verbatim(page.render(Path("docs")).rstrip("\n"))
        return
    if as_json:
        say_json(page.data())
        return
    for table in page.tables():
        show(table)


def _table(robot, counted: list[Row]) -> Table:
    axes = axes_of(robot)
    columns = ["function", "algorithm", ">×", ">+", ">÷", ">sin/cos"]
    if axes is not None:
        columns += [">general arm ×/+", ">regrouped", "published ×/+"]
    lines = []
    for row in counted:
        multiplications, additions, divisions = totals(row.own, row.iterations)
        cells = [row.function, row.algorithm, str(multiplications), str(additions), str(divisions)]
        cells.append(str(row.own.trigonometric))
        if axes is not None:
            cells += [as_printed(each, row.iterations) for each in (row.general, row.general_regrouped)]
            cells.append("; ".join(f"{m}/{a} {source}" for source, m, a in row.printed))
        lines.append(cells)
    notes = []
    if any(row.iterations for row in counted):
        notes.append(f"conjugate gradients: {robot.dof} iterations")
    if axes is not None:
        notes.append(
            f"general arm: {robot.dof} revolute joints, {_AXES[axes]}, all offsets, ten parameters per link;"
        )
        notes.append(
            "regrouped: its parameters first regrouped into fewer that give the same torques, as every call does;"
        )
        notes.append(
            "divisions are among its multiplications, as in the papers, and sin and cos are not counted"
        )
    return Table(f"Operations for {robot.name}", columns, lines, notes)


_AXES = {"general": "any twist angles", "perpendicular": "axes parallel or perpendicular"}


def _stage_table(row: Row) -> Table:
    lines = [
        [
            name or "the rest",
            str(part.multiplications),
            str(part.additions),
            str(part.divisions),
            str(part.trigonometric),
        ]
        for name, part in row.own.by_stage.items()
    ]
    loop = row.own.per_iteration
    if loop is not None:
        lines.append(
            [
                "each iteration",
                *map(str, (loop.multiplications, loop.additions, loop.divisions, loop.trigonometric)),
            ]
        )
    return Table(f"{row.function}, {row.algorithm}", ["stage", ">×", ">+", ">÷", ">sin/cos"], lines)


def _plain(row: Row) -> dict[str, Any]:
    return {
        "function": row.function,
        "algorithm": row.algorithm,
        "iterations": row.iterations,
        **_counts(row.own),
        "general_arm": None if row.general is None else _counts(row.general),
        "general_arm_regrouped": None if row.general_regrouped is None else _counts(row.general_regrouped),
        "published": [
            {"source": source, "multiplications": m, "additions": a} for source, m, a in row.printed
        ],
    }


def _counts(operations) -> dict[str, Any]:
    loop = operations.per_iteration
    return {
        **operations.counts(),
        "trigonometric": operations.trigonometric,
        "by_stage": {name: part.counts() for name, part in operations.by_stage.items()},
        "per_iteration": None if loop is None else _counts(loop),
    }
