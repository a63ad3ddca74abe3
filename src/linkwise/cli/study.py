"""``linkwise study``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from linkwise.cli.support import headings
from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import WholeNumber
from linkwise.cli.support.output import Table, number, say, say_json, show

INCOMPLETE = 1
_NAMED = 4  # damaged files that --status names


_HEADINGS = {
    "Run": "resume threads cluster accept-changed-code",
    "Inspection": "check status verify",
}


@headings.command("study", _HEADINGS)
@click.argument("file", metavar="FILE.toml|STORE")
@click.option(
    "--out", metavar="STORE", help="Folder for the results; default: the name of the file with .study."
)
@click.option("--resume", is_flag=True, help="Complete a folder that was left unfinished.")
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="A Dask scheduler, such as tcp://host:8786 or tls://host:8786; default: this machine.",
)
@click.option("--threads", type=WholeNumber(1, 4096), help="Threads of this machine; default: all cores.")
@click.option(
    "--check", "only_check", is_flag=True, help="Read and check the study, state its size, compute nothing."
)
@click.option(
    "--verify", "only_verify", is_flag=True, help="Compare every byte of a folder with what was written."
)
@click.option(
    "--accept-changed-code",
    is_flag=True,
    help="Resume although Linkwise, the robot or a function changed; the folder keeps a record of it.",
)
@click.option(
    "--status", "only_status", is_flag=True, help="Show the state of a folder, during a run or after."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(
    file, out, resume, cluster, threads, only_check, only_verify, accept_changed_code, only_status, as_json
) -> int:
    """Run a parameter sweep or a Monte Carlo study, or compute data for learning.

    The file names a robot, what varies, what is computed and what is kept (see docs/studies.md). Results go to a folder
    with Zarr arrays and Parquet tables. A run that was killed is completed with --resume, to the same bytes; then the
    folder alone is enough. The exit status is 0, 1 when points or chunks kept failing and were left out or when
    --verify or --status finds damage, 2 for bad input or a run that had to stop, and 128 plus the number of the
    signal that stopped it (143 for SIGTERM, 130 for Ctrl+C).

    \b
    Example:
      linkwise study torques.toml --out torques.study
      linkwise study torques.toml --cluster tcp://head:8786
      linkwise study torques.study --resume
      linkwise study --verify torques.study
      linkwise study --status torques.study
    """
    running = ("resume", "cluster", "threads", "accept_changed_code")
    if only_verify:
        refuse_given(("out", "only_check", "only_status", *running), "does not go with --verify")
        return _verify(Path(file), as_json)
    if only_status:
        refuse_given(("out", "only_check", *running), "does not go with --status")
        return _say_status(Path(file), as_json)
    if not resume:
        refuse_given(("accept_changed_code",), "belongs to --resume")
    if cluster is not None:
        refuse_given(("threads",), "is for this machine; --cluster computes on others")
    study, folder = _read(Path(file), out, resume)
    if only_check:
        _say_size(study, folder, threads, as_json)
        return 0
    results = study.run(
        folder,
        resume=resume,
        cluster=cluster,
        threads=threads,
        accept_changed_code=accept_changed_code,
        progress=not headings.is_quiet(),
    )
    facts = _facts(study, results)
    if as_json:
        say_json(facts)
    else:
        _say(facts)
    return 0 if results.complete else INCOMPLETE


def _verify(path: Path, as_json: bool) -> int:
    from linkwise.study.store.verify import verify

    verified = verify(path)
    damage = [
        {"file": one.file, "array": one.array, "chunk": one.chunk, "problem": one.problem}
        for one in verified.damage
    ]
    if as_json:
        facts = {
            "store": str(path),
            "files": verified.files,
            "bytes": verified.bytes,
            "complete": verified.complete,
        }
        say_json({**facts, "torn_record": verified.torn, "damage": damage})
    else:
        for one in verified.damage:
            say(str(one))
        if verified.torn:
            say("the last record of the journal is incomplete, as a killed run leaves it; --resume continues")
        state = f"{len(damage)} damaged" if damage else "all as they were written"
        say(f"{path}: {verified.files} files, {verified.bytes / 1e6:.3g} MB: {state}")
        if damage:
            say(f"linkwise study {path} --resume computes what is damaged again")
    return INCOMPLETE if damage else 0


def _read(file: Path, out: str | None, resume: bool) -> tuple[Any, Path]:
    """The study, and the folder of its results."""
    import linkwise as lw
    from linkwise.study.errors import StudyError
    from linkwise.study.store.folder import read_study

    if file.is_dir():
        if not resume:
            raise StudyError(f"{file}: a folder; give the file of a study, or --resume to complete this one")
        if out is not None and Path(out) != file:
            raise StudyError("--out: a folder is completed where it is")
        tables = {k: v for k, v in read_study(file)["study"].items() if k not in ("format", "robot_content")}
        if _objects(tables):
            raise StudyError(
                f"{file}: {_objects(tables)[0]} was an object of Python; resume it there: study.run(…, resume=True)"
            )
        try:
            return lw.study(tables), file
        except StudyError as error:
            raise StudyError(
                f"{error}; or give its own file: linkwise study FILE.toml --out {file} --resume"
            ) from None
    return lw.study(file), Path(out) if out is not None else Path(f"{file.stem}.study")


def _objects(tables: dict[str, Any]) -> list[str]:
    """Entries that cannot be read from a folder: robots and functions that only existed in a process."""
    entries = {
        "robot": tables.get("robot"),
        **{f"compute.{k}": v for k, v in tables.get("compute", {}).items()},
    }
    return [name for name, value in entries.items() if isinstance(value, dict) and set(value) == {"object"}]


def _say_size(study: Any, folder: Path, threads: int | None, as_json: bool) -> None:
    from linkwise.compiler.runtime.threads import wanted

    used = wanted(threads)
    size = {
        "axes": study.shape,
        "points": study.points,
        "chunks": study.chunks,
        "threads": used,
        "memory": study.memory(used),
        "raw": study.raw_bytes,
        "free": shutil.disk_usage(folder.absolute().parent).free,
    }
    if as_json:
        say_json(size)
        return
    axes = " × ".join(f"{n} {name}" for name, n in study.shape.items()) or "1"
    say(f"{study.points} points ({axes}) in {study.chunks} chunks")
    say(f"memory with {used} threads: at most {size['memory'] / 2**20:.0f} MiB beside the interpreter")
    say(f"raw arrays: {size['raw'] / 1e9:.3g} GB before compression; {size['free'] / 1e9:.3g} GB are free")


def _facts(study: Any, results: Any) -> dict[str, Any]:
    """Report of a finished run: statistics by quantity, failures, chunks set aside."""
    data = results.dataset()
    statistics: dict[str, Any] = {}
    for keep in study.plan.description.keeps:
        if keep.statistics and not keep.by_cell:
            labels = study.plan.quantity(keep.name).labels(study.plan.robot)
            unit = study.plan.quantity(keep.name).unit
            values = {s: data[f"{keep.name}_{s}"].values.ravel().tolist() for s in keep.statistics}
            if f"{keep.name}_left_out" in data:
                values["left_out"] = data[f"{keep.name}_left_out"].values.ravel().tolist()
            statistics[keep.name] = {"unit": unit, "elements": labels, **values}
    return {
        "store": str(results.path),
        "points": study.points,
        "chunks": study.chunks,
        "complete": results.complete,
        "chunks_set_aside": data.attrs["chunks_set_aside"],
        "points_failed": data.attrs["points_failed"],
        "left_out": _left_out(study, data),
        "failures": data.attrs["failures"],
        "failures_left_out": data.attrs.get("failures_left_out", {}),
        "statistics": statistics,
        "tables": results.tables(),
        "accepted_changes": results.accepted_changes,
    }


def _left_out(study: Any, data: Any) -> dict[str, dict[str, int]]:
    """Quantities whose reductions leave points out: how many at most, and of how many."""
    counts = {}
    for keep in study.plan.description.keeps:
        if f"{keep.name}_left_out" in data:
            most = int(data[f"{keep.name}_left_out"].max())
            of = study.plan.axes.per_cell if keep.by_cell else study.points
            counts[keep.name] = {"points": most, "of": of}
    return counts


def _say(facts: dict[str, Any]) -> None:
    for name, summary in facts["statistics"].items():
        kinds = [key for key in summary if key not in ("unit", "elements")]
        rows = [
            [label, *(number(summary[kind][k]) for kind in kinds)]
            for k, label in enumerate(summary["elements"][:40])
        ]
        notes = [f"and {len(summary['elements']) - 40} more"] if len(summary["elements"]) > 40 else []
        title = f"{name} [{summary['unit']}]" if summary["unit"] else name
        show(Table(title, ["", *(f">{kind.replace('_', ' ')}" for kind in kinds)], rows, notes))
    for name, left in facts["left_out"].items():
        say(f"{name}: what is kept leaves out up to {left['points']} of {left['of']} points (failed or NaN)")
    for name, count in facts["failures"].items():
        unknown = facts["failures_left_out"].get(name, 0)
        left = f" ({unknown} more left out: they failed)" if unknown else ""
        say(f"{name}: {count} of {facts['points'] - unknown} points{left}")
    if facts["points_failed"]:
        say(f"{facts['points_failed']} points failed: see the table errors; --resume tries them again")
    if facts["chunks_set_aside"]:
        aside = facts["chunks_set_aside"]
        say(f"{aside} chunks kept failing and were set aside: see the table aside; --resume tries again")
    _say_accepted(facts["accepted_changes"])
    say(f"{facts['points']} points in {facts['store']}")


def _say_accepted(changes: list[dict[str, Any]]) -> None:
    for change in changes:
        count = sum(last - first + 1 for first, last in change["chunks_before"])
        say(
            f"{count} chunks were computed before: {'; '.join(change['changed'])} (accepted {change['when']})"
        )


def _say_status(path: Path, as_json: bool) -> int:
    from linkwise.study.progress import line, short
    from linkwise.study.store.status import status

    found = status(path)
    if as_json:
        say_json(found.facts())
        return INCOMPLETE if found.damage else 0
    state = {
        True: "running",
        False: "not running",
        None: "running or not: unknown, its file system has no locks",
    }
    say(f"{path}: {'complete' if found.complete else state[found.running]}")
    for one in found.damage[:_NAMED]:
        say(f"damaged: {one}")
    if len(found.damage) > _NAMED:
        say(f"and {len(found.damage) - _NAMED} more: linkwise study --verify {path}")
    rate = found.rate if found.running else None
    say(f"points: {line(found.points, found.points_done, rate)}")
    aside = f", {found.chunks_set_aside} set aside" if found.chunks_set_aside else ""
    say(f"chunks: {found.chunks_done} of {found.chunks}{aside}")
    if found.points_failed:
        say(f"failed: {found.points_failed} points")
    for name, count in found.failures.items():
        say(f"{name}: {count} of {found.points_done} points")
    if found.run is not None:
        run = found.run
        say(f"last run: began {run['when']} on {run['host']}, process {run['process']}")
    say(f"created {found.created}, last written {found.last_written}")
    if found.rate and not found.running:
        say(f"rate: {short(found.rate)} points/s")
    source = found.identity["source"][:16]
    differs = f"; {len(found.changed_since)} files differ from this one" if found.changed_since else ""
    say(f"computed by linkwise {found.identity['linkwise']} (source {source}{differs})")
    for label in (label for parts in found.identity.get("functions", {}).values() for label in parts):
        say(f"  with {label}")
    _say_accepted(found.accepted_changes)
    return INCOMPLETE if found.damage else 0
