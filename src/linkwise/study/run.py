"""A run from beginning to end: make or check the store, compute what is missing, write what is known at the end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from linkwise.compiler.threads import wanted
from linkwise.study import files, progress
from linkwise.study.collect import Collection
from linkwise.study.engines import Engine, LocalEngine
from linkwise.study.errors import StoppedError, StudyError
from linkwise.study.finish import finish
from linkwise.study.journal import Journal
from linkwise.study.pack import packed, unpacked
from linkwise.study.plan import Plan
from linkwise.study.store import JOURNAL, Store, read_study

Bar = Callable[[str, int, int], AbstractContextManager[progress.Advance]]


def run(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    resume: bool = False,
    cluster: str | None = None,
    threads: int | None = None,
    bar: Bar = progress.bar,
) -> Collection | None:
    """Run a plan into a store. None: it was complete already."""
    store = Store(path, plan)
    exists = check(store, resume)
    if exists and store.complete:
        return None
    engine = engine_for(plan, cluster, threads)
    try:
        if not exists:
            _create(store)
        try:
            engine.meet(store)
        except StudyError:
            if not exists:
                shutil.rmtree(store.path)
            raise
        journal = Journal(store.path / JOURNAL)
        try:
            return _complete(plan, store, engine, journal, bar)
        finally:
            journal.close()
    finally:
        engine.close()


def _create(store: Store) -> None:
    try:
        store.create()
    except OSError as problem:
        raise StudyError(f"{store.path}: cannot be made: {problem.strerror or problem}") from None


def check(store: Store, resume: bool) -> bool:
    """Whether the store is there already; that it can be made or completed."""
    if not store.path.exists():
        if resume:
            raise StudyError(f"{store.path}: there is nothing to resume")
        if not store.path.absolute().parent.is_dir():
            raise StudyError(f"{store.path}: the folder it is to be written to does not exist")
        return False
    read_study(store.path)
    if not resume:
        raise StudyError(
            f"{store.path}: exists already; resume it (--resume), or write to another folder (--out)"
        )
    store.check()
    return True


def engine_for(plan: Plan, cluster: str | None, threads: int | None) -> Engine:
    """The threads of this process, or a cluster."""
    if cluster is None:
        _ = plan.on_device  # a GPU that is asked for and not there is noticed here
        return LocalEngine(wanted(threads))
    from linkwise.study.cluster import ClusterEngine

    return ClusterEngine(cluster, plan)


def _complete(plan: Plan, store: Store, engine: Engine, journal: Journal, bar: Bar) -> Collection:
    collection = Collection(plan)
    files.sweep(store.path)  # room for what is to come
    for record in journal.records():
        arrays, facts = unpacked(record)
        if "error" in facts:
            continue  # it gets another chance
        if store.has(facts["files"]):
            collection.add(arrays, facts)
    sizes = {number: plan.axes.chunk(number).count for number in collection.done}
    missing = [number for number in range(plan.axes.chunks) if number not in collection.done]
    title = plan.description.name or store.path.name
    with _stopping(store.path):
        # closed whatever happens: an engine whose results nobody takes would wait for ever
        running = closing(engine.run(plan, store, missing))
        with bar(title, plan.axes.points, sum(sizes.values())) as advance, running as outcomes:
            for outcome in outcomes:
                if outcome.record is None:
                    collection.aside[outcome.chunk] = outcome.error
                    journal.append(packed({}, {"chunk": outcome.chunk, "error": outcome.error}))
                else:
                    journal.append(outcome.record)
                    collection.add(*unpacked(outcome.record))
                advance(plan.axes.chunk(outcome.chunk).count)
        journal.sync()
        collection.give_up()
        finish(plan, store, collection)
        files.sweep(store.path)
        if collection.aside:
            _settle(journal)
        else:
            journal.remove()
    return collection


@contextmanager
def _stopping(path: Path) -> Iterator[None]:
    """Whatever stops a run is one line, with the way to go on."""
    try:
        yield
    except (StoppedError, OSError, KeyboardInterrupt) as problem:
        reason = f"{problem}"
        if isinstance(problem, OSError):
            reason = f"{path}: {problem.strerror or problem}"
        elif isinstance(problem, KeyboardInterrupt):
            reason = "interrupted"
        raise StoppedError(
            f"{reason}; nothing that was done is lost: linkwise study {path} --resume"
        ) from None


def _settle(journal: Journal) -> None:
    """The journal stays for the chunks that were set aside: one record for each chunk, in their order."""
    latest: dict[int, bytes] = {}
    for record in journal.records():
        latest[_chunk_of(record)] = record
    journal.rewrite([latest[number] for number in sorted(latest)])


def _chunk_of(record: bytes) -> int:
    facts: dict[str, Any] = unpacked(record)[1]
    return facts["chunk"]
