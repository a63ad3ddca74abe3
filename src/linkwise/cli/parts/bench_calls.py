"""``linkwise bench --calls``: every method by every kind of call."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from linkwise.cli.support.output import Table, progress, say, say_json, show

COLUMNS = (
    *("arrays", "float32", "out", "threads=1", "names", "friction=False", "algorithm", "conjugate_gradient"),
    *("frame", "wrench"),
    *("lists", "tuples", "strided", "mixed precision", "batch 2", "batch 16", "batch 256", "broadcast"),
    *("kernel", "jacobian"),
)


def run(robot: Any, functions: tuple[str, ...], rounds: int, as_json: bool) -> None:
    """Measure and print."""
    from linkwise.bench import calls, other_calls
    from linkwise.bench.clock import is_busy, one_core
    from linkwise.bench.peers import find
    from linkwise.bench.pinocchio_calls import one_state
    from linkwise.bench.subject import Subject
    from linkwise.robot.robot import Robot

    names = functions or calls.methods(robot)
    lines, busy = [], is_busy()
    with tempfile.TemporaryDirectory() as folder:
        peers, missing = find(Subject.of(robot, Path(folder)), ["pinocchio"])
        with progress("timing", len(names)) as advance, one_core():
            for name in names:
                args = calls.states(robot, getattr(Robot, name))
                peer: Any = peers[0] if peers else None
                theirs = None if peer is None else one_state(peer, robot, name, args)
                actions = [] if theirs is None else [theirs]
                costs, others = calls.measure(list(calls.kinds(robot, name)), rounds, actions)
                lines.append((name, costs, others[0] if others else None))
                advance()
            for title, kinds in () if functions else other_calls.rows(robot):
                lines.append((title, calls.measure(kinds, rounds)[0], None))
    slow = [(cost, _slow(cost)) for _, costs, _ in lines for cost in costs if cost.is_out_of_line]
    near = [text for name, costs, other in lines if (text := _near(name, costs, other))]
    if as_json:
        say_json({"robot": robot.name, "busy": busy, "calls": _facts(lines), "absent": missing})
        return
    _show(robot, lines, missing)
    for text in [*(text for _, text in slow), *near]:
        say(f"out of line: {text}")
    if not slow and not near:
        say("nothing is out of line")
    if busy:
        say("other programs were running on this machine: the figures are rough")


def _slow(cost: Any) -> str:
    kind = cost.kind
    return f"{kind.function}, {kind.name}: {_us(cost.over)} µs over the arithmetic, limit {_us(kind.limit)}"


def _near(name: str, costs: list[Any], other: float | None) -> str:
    """Says where Pinocchio is nearer than it should be, by the slowest call with arrays of one state."""
    from linkwise.bench.calls import DENSE, FASTER_THAN_PINOCCHIO, KEYWORD

    if other is None:
        return ""
    wanted = FASTER_THAN_PINOCCHIO.get(name, 5.0)
    compared = [
        cost
        for cost in costs
        if cost.kind.limit in (DENSE, KEYWORD) and cost.kind.states == 1 and cost.kind.name != "jacobian"
    ]
    slowest = max(compared, key=lambda cost: cost.seconds)
    ratio = other / slowest.seconds
    how = f"{name}, {slowest.kind.name}: {ratio:.1f} times faster than Pinocchio, goal {wanted:.0f}"
    return how if ratio < wanted else ""


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:.2f}"


def _show(robot: Any, lines: list[Any], missing: dict[str, str]) -> None:
    from linkwise.bench.peers import absent

    rows = []
    for name, costs, other in lines:
        by_name = {cost.kind.name: cost for cost in costs}
        plain = by_name["arrays"]
        cells = [
            "" if column not in by_name else _us(by_name[column].over) + "!" * by_name[column].is_out_of_line
            for column in COLUMNS
        ]
        peer = ["", ""] if other is None else [_us(other), f"{other / plain.seconds:.1f}"]
        rows.append([name, _us(plain.arithmetic), *cells, *peer])
    columns = ["function", ">arithmetic", *(f">{column}" for column in COLUMNS), ">pinocchio", ">ratio"]
    notes = [
        "µs that a call costs beyond its arithmetic; ! beyond its limit; pinocchio: one state, and over arrays"
    ]
    notes += absent(missing)
    show(Table(f"{robot.name}, {robot.dof} joints, one core", columns, rows, notes))


def _facts(lines: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            "function": name,
            "kind": cost.kind.name,
            "states": cost.kind.states,
            "seconds": cost.seconds,
            "arithmetic": cost.arithmetic,
            "over": cost.over,
            "limit": cost.kind.limit,
            "out_of_line": cost.is_out_of_line,
            "pinocchio": other,
        }
        for name, costs, other in lines
        for cost in costs
    ]
