"""``linkwise bench``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from linkwise.cli.parts import bench_calls
from linkwise.cli.support import headings
from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import Numbers, OneOf, WholeNumber, json_option, load_robot
from linkwise.cli.support.output import Table, progress, say, say_json, show

FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix")
PEERS = ("pinocchio", "mujoco", "casadi", "pybullet", "robotics_toolbox", "adam", "frax")
OURS = ("linkwise", "generated_c")


_HEADINGS = {
    "What is timed": "function batch dtype peer calls",
    "How": "rounds no-cold",
}


@headings.command("bench", _HEADINGS)
@click.argument("robot", default="panda", metavar="[NAME]")
@click.option(
    "--function",
    "functions",
    multiple=True,
    type=OneOf(FUNCTIONS, "function"),
    help="May be repeated; default: all.",
)
@click.option(
    "--batch",
    type=Numbers(each=WholeNumber(1, 10**8)),
    default="1,64,4096",
    show_default=True,
    metavar="N,…",
    help="States per call.",
)
@click.option(
    "--dtype", "dtypes", multiple=True, type=OneOf(("float64", "float32"), "dtype"), help="Default: both."
)
@click.option(
    "--peer", "peers", multiple=True, type=OneOf(PEERS, "peer"), help="May be repeated; default: all."
)
@click.option(
    "--rounds", type=WholeNumber(1, 10**6), default=15, show_default=True, help="Interleaved repeats."
)
@click.option("--no-cold", is_flag=True, help="Leave out cold starts, which start new processes.")
@click.option("--calls", is_flag=True, help="Time every method by every kind of call instead.")
@json_option
def command(robot, functions, batch, dtypes, peers, rounds, no_cold, calls, as_json) -> None:
    """Time Linkwise side by side with the libraries that are installed, for one robot: NAME is a bundled
    one, by default panda, or a file.

    One core, the same robot (without rotor inertia and friction) and the same states for all. Results are checked
    first; times are medians of interleaved repeats, in processor time. Linkwise's counted operations per second are
    shown beside the machine's own limit, measured in the same run. A library without float32 runs in float64 beside
    float32.

    ``--calls`` times every method of a robot by every kind of call (options, out=, lists, strided arrays, small
    batches, kernels), beside the arithmetic alone and Pinocchio, and lists what is out of line.

    \b
    Example:
      linkwise bench
      linkwise bench puma560 --calls
      linkwise bench arm.urdf --function inverse_dynamics --batch 1,4096 --dtype float64 --json
    """
    from linkwise.bench.clock import is_busy, one_core
    from linkwise.bench.comparison import Group, compare
    from linkwise.bench.peak import Peak
    from linkwise.bench.peers import find
    from linkwise.bench.subject import Subject, without_drives
    from linkwise.files.tables import bounds

    if calls:
        refuse_given(("batch", "dtypes", "peers", "no_cold"), "does not go with --calls")
    loaded = without_drives(load_robot(robot, moving=True))
    if calls:
        bench_calls.run(loaded, functions, rounds, as_json)
        return
    sizes = [int(size) for size in batch]
    bounds.check(f"--batch: {max(sizes)} states", max(sizes) * (loaded.dof**2 + 3 * loaded.dof))
    groups = [
        Group(function, size, dtype)
        for function in functions or FUNCTIONS
        for dtype in dtypes or ("float64", "float32")
        for size in sizes
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subject = Subject.of(loaded, folder)
        installed, missing = find(subject, (*OURS, *(peers or PEERS)))
        timings, busy = [], is_busy()
        with progress("timing", len(groups)) as advance, one_core():
            peaks = {dtype: Peak(dtype).measure() for dtype in dict.fromkeys(group.dtype for group in groups)}
            for group in groups:
                timings += compare(loaded, installed, group, rounds)
                advance()
        shares = _shares(loaded, timings, peaks)
        cold = (
            []
            if no_cold or subject.urdf is None
            else _cold(subject.urdf, folder, [*peers] or [*PEERS], missing)
        )
    if as_json:
        say_json({"busy": busy, **_facts(loaded, timings, shares, peaks, cold, missing)})
        return
    _show(loaded, timings, shares, cold, missing)
    if busy:
        say("other programs were running on this machine: the figures are rough")


def _shares(robot, timings, peaks: dict[str, float]) -> list[dict[str, Any]]:
    """Counted operations per second of Linkwise over the limit of the machine, for batches."""
    from linkwise.cli.parts.counting import count, functions

    shares = []
    for timing in timings:
        if timing.who != "linkwise" or timing.nanoseconds is None or timing.group.states == 1:
            continue
        (function,) = functions([timing.group.function])
        operations = count(robot, function, function.default, friction=True)
        if operations is None:
            continue
        rate = operations.total / (timing.nanoseconds * 1e-9)
        limit = peaks[timing.dtype]
        shares.append({"group": timing.group, "operations": operations.total, "rate": rate, "limit": limit})
    return shares


def _cold(urdf: Path, folder: Path, peers: list[str], missing: dict[str, str]) -> list[dict[str, Any]]:
    from linkwise.bench import cold

    cache = folder / "cache"
    lines: list[dict[str, Any]] = []
    for what in ("nothing compiled", "from the cache"):
        took = cold.measure("linkwise", urdf, cache)
        if took is not None:
            lines.append({"who": "linkwise", "what": what, **took})
    for name in peers:
        took = cold.measure(name, urdf, cache) if name not in missing else None
        if took is not None:
            lines.append({"who": name, "what": "with its import", **took})
    lines.append(
        {
            "who": "linkwise",
            "what": "import linkwise alone",
            "load": cold.import_seconds(),
            "first call": None,
        }
    )
    return lines


def _show(robot, timings, shares, cold, missing: dict[str, str]) -> None:
    from linkwise.bench.peers import absent

    base = {timing.group: timing.nanoseconds for timing in timings if timing.who == "linkwise"}
    rows = []
    for timing in timings:
        group, took = timing.group, timing.nanoseconds
        ours = base.get(group)
        ratio = f"{took / ours:.1f}" if took is not None and ours else ""
        shown = (
            f"{took:.0f}" if took is not None and took >= 10 else f"{took:.1f}" if took is not None else "—"
        )
        rows.append(
            [group.function, str(group.states), timing.dtype, f"{timing.who} {timing.version}", shown, ratio]
            + [timing.problem or timing.path]
        )
    columns = ["function", ">states", "precision", "library", ">ns/state", ">/ linkwise", "how"]
    notes = absent(missing)
    show(Table(f"{robot.name}, {robot.dof} joints, one core", columns, rows, notes))
    rows = [
        [share["group"].function, str(share["group"].states), share["group"].dtype, str(share["operations"])]
        + [
            f"{share['rate'] * 1e-9:.1f}",
            f"{share['limit'] * 1e-9:.1f}",
            f"{share['rate'] / share['limit']:.0%}",
        ]
        for share in shares
    ]
    columns = ["function", ">states", "precision", ">operations", ">G/s", ">FMA limit G/s", ">share"]
    note = "operations: multiplications, additions and divisions, without sin and cos, which cost more than these"
    if rows:
        show(Table("Linkwise beside the limit of this machine", columns, rows, [note]))
    if cold:
        rows = [
            [line["who"], line["what"], f"{1e3 * line['load']:.0f}", _milliseconds(line["first call"])]
            for line in cold
        ]
        columns = ["library", "state", ">load [ms]", ">first torques [ms]"]
        show(Table("Cold starts: inverse dynamics in a new process", columns, rows))
    say("ratios above 1: slower than linkwise in the same line of function, states and precision")


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.1f}"


def _facts(robot, timings, shares, peaks, cold, missing) -> dict[str, Any]:
    return {
        "robot": robot.name,
        "dof": robot.dof,
        "timings": [
            {
                "function": timing.group.function,
                "states": timing.group.states,
                "group": timing.group.dtype,
                "precision": timing.dtype,
                "library": timing.who,
                "version": timing.version,
                "how": timing.path,
                "nanoseconds_per_state": timing.nanoseconds,
                "problem": timing.problem or None,
            }
            for timing in timings
        ],
        "limits": peaks,
        "shares": [
            {
                "function": share["group"].function,
                "states": share["group"].states,
                "precision": share["group"].dtype,
                "operations": share["operations"],
                "operations_per_second": share["rate"],
                "share_of_limit": share["rate"] / share["limit"],
            }
            for share in shares
        ],
        "cold": cold,
        "absent": missing,
    }
