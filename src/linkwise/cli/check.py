"""``linkwise check``."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import click

from linkwise.cli.support import headings
from linkwise.cli.support.options import SEED, WholeNumber, json_option, load_robot, robot_argument
from linkwise.cli.support.output import Table, progress, say, say_json, show

ENGINES = ("pinocchio", "mujoco")


_HEADINGS = {
    "Comparison": "states seed float32",
}


@headings.command("check", _HEADINGS)
@robot_argument
@click.option(
    "--states", type=WholeNumber(1, 10**6), default=20, show_default=True, help="Random states to compare at."
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the random states.")
@click.option(
    "--float32",
    is_flag=True,
    help="Say which errors to expect of float32 instead: of inputs and of algorithms.",
)
@json_option
def command(
    robot: str, gravity, lock, base, mimic, states: int, seed: int, float32: bool, as_json: bool
) -> int:
    """Compare every algorithm, and every installed engine, on one robot at random states.

    Engines: Pinocchio (it reads the same URDF, or one written for it) and MuJoCo (MJCF files). With a moving base, ball
    joints or joints that follow others both get the robot joint by joint. Friction, springs and constraints are left
    out.
    The exit status is 0 when all agree (or refuse, with a reason), 1 when one disagrees or nothing could be compared,
    2 for bad input.

    \b
    Example:
      linkwise check arm.urdf
      linkwise check panda --states 100 --json
      linkwise check quadruped.urdf --base floating
      linkwise check panda --float32 --states 500
    """
    if float32:
        return _check_float32(
            load_robot(robot, gravity, lock, base, mimic, moving=True), states, seed, as_json
        )
    from linkwise.bench import agreement
    from linkwise.bench.peers import find
    from linkwise.bench.subject import Subject, random_states, rigid

    loaded = rigid(load_robot(robot, gravity, lock, base, mimic, moving=True))
    unchanged = Path(robot) if gravity is None and not lock else None
    with tempfile.TemporaryDirectory() as folder:
        subject = Subject.of(loaded, Path(folder), unchanged, base)
        engines = ENGINES if subject.mjcf is not None or subject.general else ENGINES[:1]
        peers, missing = find(subject, engines)
        given = random_states(loaded, states, seed)
        findings = []
        with progress("comparing", agreement.count(loaded, peers)) as advance:
            for finding in agreement.compare(loaded, given, peers):
                findings.append(finding)
                advance()
    disagree = any(finding.verdict == "DISAGREES" for finding in findings)
    agree = not disagree and any(finding.verdict == "agrees" for finding in findings)
    if as_json:
        rows = [
            {
                "function": finding.function,
                "who": finding.who,
                "verdict": finding.verdict,
                "difference": finding.difference,
                "tolerance": finding.tolerance,
                "reason": finding.refusal or None,
            }
            for finding in findings
        ]
        say_json(
            {
                "robot": loaded.name,
                "states": states,
                "agree": agree,
                "findings": rows,
                "absent": missing,
            }
        )
    else:
        _show(loaded.name, states, findings, missing)
    return int(not agree)


def _show(name: str, states: int, findings, missing: dict[str, str]) -> None:
    from linkwise.bench.peers import absent

    rows = [
        [
            f.function,
            f.who,
            "" if f.difference is None else f"{f.difference:.1e}",
            f"{f.tolerance:.0e}",
            f.verdict,
        ]
        for f in findings
    ]
    notes = [*_refusals([(f.function, f.who, f.refusal) for f in findings]), *absent(missing)]
    columns = ["function", "by", ">worst difference", ">allowed", "verdict"]
    show(Table(f"{name} at {states} random states", columns, rows, notes))
    wrong = [f for f in findings if f.verdict == "DISAGREES"]
    if wrong:
        say(f"{len(wrong)} of {len(findings)} comparisons disagree")
    else:
        verdicts = Counter(f.verdict for f in findings)
        rest = {"refuses": "refused, with the reasons above", "only zeros": "compared nothing but zeros"}
        rest["not compared"] = "could not be compared"
        said = [f"{verdicts[verdict]} {words}" for verdict, words in rest.items() if verdicts[verdict]]
        counted = f"{verdicts['agrees']} comparisons agree" if verdicts["agrees"] else "nothing was compared"
        say("; ".join([counted, *said]))


def _refusals(found: list[tuple[str, str, str]]) -> list[str]:
    """Each reason once, with the functions and algorithms that have it."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for function, who, reason in found:
        if reason:
            reasons.setdefault(reason, {}).setdefault(function, []).append(who)
    return [
        "; ".join(f"{function} by {', '.join(by)}" for function, by in refused.items()) + f": {reason}"
        for reason, refused in reasons.items()
    ]


def _check_float32(robot, states: int, seed: int, as_json: bool) -> int:
    """Which errors to expect of float32; the exit status is 1 where one is above the bound."""
    from linkwise.bench import float32
    from linkwise.bench.subject import random_states

    given = random_states(robot, states, seed)
    rows = []
    with progress("computing in float32", float32.count()) as advance:
        for row in float32.rounding_errors(robot, given):
            rows.append(row)
            advance()
    doubtful = [row for row in rows if row.doubtful]
    if as_json:
        parts = [{**vars(row), "doubtful": row.doubtful} for row in rows]
        say_json({"robot": robot.name, "states": states, "bound": float32.BOUND, "errors": parts})
        return int(bool(doubtful))
    cells = [
        [row.function, row.algorithm, *(f"{x:.1e}" for x in (row.inputs, row.arithmetic, row.large))]
        for row in rows
        if not row.refusal
    ]
    columns = ["function", "by", ">inputs rounded", ">computed in float32", ">both, 99 % below"]
    notes = _refusals([(row.function, row.algorithm, row.refusal) for row in rows])
    notes.append("errors in parts of the largest entry of a result; medians over the states")
    show(Table(f"{robot.name} in float32 at {states} random states", columns, cells, notes))
    for row in doubtful:
        say(
            f"{row.function} by {row.algorithm}: errors of {row.large:.1e}, above {float32.BOUND:g}: use float64 here"
        )
    if not doubtful:
        say(f"all errors are below {float32.BOUND:g} in 99 % of the states")
    return int(bool(doubtful))
