"""What a store has: how much is done, whether a run is active, which code computes it. Nothing is changed."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from linkwise.core import identity as package
from linkwise.core.summaries import Summarised
from linkwise.study import identity
from linkwise.study.errors import StudyError
from linkwise.study.sampling.axes import Axes
from linkwise.study.store.folder import DATA, JOURNAL, STUDY, read_study
from linkwise.study.store.journal import read, running
from linkwise.study.store.pack import facts_of
from linkwise.study.store.verify import known as files_known
from linkwise.study.store.verify import quick_problems, strays


@dataclass(repr=False)
class Status(Summarised):
    """Times are in UTC, ``rate`` in points per second."""

    store: str
    complete: bool
    running: bool | None
    """None: the file system cannot tell."""
    points: int
    points_done: int = 0
    chunks: int = 0
    chunks_done: int = 0
    chunks_set_aside: int = 0
    points_failed: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    created: str = ""
    last_written: str = ""
    run: dict[str, Any] | None = None
    """The last run that began: when, host, process, chunks done before it."""
    rate: float | None = None
    """Of the last run; of a complete store: from its beginning to its end."""
    identity: dict[str, Any] = field(default_factory=dict)
    changed_since: list[str] = field(default_factory=list)
    """Files of Linkwise that differ from those that compute the store."""
    accepted_changes: list[dict[str, Any]] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    """Files that are missing or differ from what was written, as far as their sizes and checksums show it, and files
    that do not belong to the store."""

    def facts(self) -> dict[str, Any]:
        """In types that JSON has."""
        return asdict(self)


def begun(done: int) -> dict[str, Any]:
    """The record of a run that begins."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"run": {"when": now, "host": platform.node(), "process": os.getpid(), "chunks_done": done}}


def status(path: str | os.PathLike[str]) -> Status:
    """What is known about a store, while it is running or after."""
    path = Path(path)
    known = read_study(path)
    if "axes" not in known:
        raise StudyError(f"{path}: made by a version of linkwise that did not keep what --status needs")
    axes = Axes.of(known["axes"])
    sets = list(known["study"].get("failures", {}))
    state = Status(str(path), True, running(path / JOURNAL), axes.points, chunks=axes.chunks)
    state.created = _time(path / STUDY)
    state.accepted_changes = known.get("accepted_changes", [])
    made_by = known.get("identity") or {}
    state.changed_since = identity.changed_files(made_by)
    state.identity = {
        "linkwise": known["linkwise"],
        "source": package.tree_digest(made_by.get("package", {})),
        **{key: made_by[key] for key in ("robot", "functions", "python") if key in made_by},
    }
    listed = files_known(path, known["digest"]) if known["study"].get("format") != 1 else None
    if listed is not None and listed.damage and not (path / JOURNAL).exists():
        raise StudyError(f"{path}: {listed.damage[0]}; linkwise study {path} --resume computes it again")
    try:
        _of_journal(state, path / JOURNAL, axes, sets)
    except FileNotFoundError:
        _of_results(state, path, axes)
    if listed is not None:
        damage = [*listed.damage, *quick_problems(path, listed)]
        state.damage = [str(one) for one in (*damage, *(strays(path, listed) if state.complete else ()))]
        state.complete = state.complete and not damage
    return state


def _of_journal(found: Status, path: Path, axes: Axes, sets: list[str]) -> None:
    """Of a store that is not complete. Records of one chunk replace each other."""
    latest: dict[int, dict[str, Any]] = {}
    since: set[int] = set()
    for record in read(path):
        facts = facts_of(record)
        if "run" in facts:
            found.run, since = facts["run"], set()
        elif "chunk" in facts:
            latest[facts["chunk"]] = facts
            since.add(facts["chunk"])
    found.complete = False
    found.last_written = _time(path)
    done = {number: facts for number, facts in latest.items() if "error" not in facts}
    aside = set(latest) - set(done)
    found.chunks_done, found.chunks_set_aside = len(done), len(aside)
    found.points_done = sum(axes.chunk(number).count for number in done)
    found.points_failed = sum(facts.get("errors", 0) for facts in done.values())
    found.points_failed += sum(axes.chunk(number).count for number in aside)
    counts = [sum(column) for column in zip(*(facts["failures"] for facts in done.values()), strict=True)]
    found.failures = dict(zip(sets, counts or [0] * len(sets), strict=True))
    if found.run is not None and since:
        seconds = path.stat().st_mtime - datetime.fromisoformat(found.run["when"]).timestamp()
        points = sum(axes.chunk(number).count for number in since)
        found.rate = points / max(seconds, 1.0)  # the beginning is known to a second


def _of_results(found: Status, path: Path, axes: Axes) -> None:
    """Of a complete store."""
    group = path / DATA / "zarr.json"
    found.complete, found.running = True, False
    found.chunks_done, found.points_done = axes.chunks, axes.points
    try:
        attributes = json.loads(group.read_text(encoding="utf-8"))["attributes"]
        found.failures = attributes.get("failures", {})
        found.last_written = _time(group)
        seconds = group.stat().st_mtime - (path / STUDY).stat().st_mtime
    except (OSError, ValueError, KeyError):
        raise StudyError(f"{path}: {DATA} cannot be read; linkwise study --verify {path}") from None
    if not found.accepted_changes and seconds > 0.0:
        found.rate = axes.points / seconds


def _time(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
