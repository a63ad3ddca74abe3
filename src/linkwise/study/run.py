"""A run from beginning to end: make or check the store, compute what is missing, write what is known at the end."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linkwise.compiler.runtime.threads import wanted
from linkwise.errors import warn
from linkwise.study import progress
from linkwise.study.engines.local import ChunkOutcome, Engine, LocalEngine
from linkwise.study.errors import StoppedError, StudyError, StudyWarning
from linkwise.study.identity import listed
from linkwise.study.plan import Plan
from linkwise.study.reduce.collect import Collection
from linkwise.study.reduce.finish import finished
from linkwise.study.signals import Terminated, terminable
from linkwise.study.store import digests, files
from linkwise.study.store.folder import JOURNAL, STUDY, Store, read_study
from linkwise.study.store.journal import Journal
from linkwise.study.store.pack import facts_of, packed, unpacked
from linkwise.study.store.status import begun
from linkwise.study.store.verify import READERS, STRAY, files_of, verify

Bar = Callable[[str, int, int], AbstractContextManager[progress.Advance]]


def run(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    resume: bool = False,
    cluster: Any = None,
    threads: int | None = None,
    accept_changed_code: bool = False,
    bar: Bar = progress.bar,
) -> Collection | None:
    """Run a plan into a store. None: it was complete already."""
    store = Store(path, plan)
    exists = check(store, resume)
    changes = store.check() if exists else []
    if changes and not accept_changed_code:
        raise StudyError(
            f"{store.path}: {listed(changes)}; start anew (--out), go on with the code of before, "
            "or mix the results knowingly (--accept-changed-code)"
        )
    if exists and not (store.path / JOURNAL).exists() and not _is_damaged(store):
        return None
    engine = engine_for(plan, cluster, threads)
    with terminable():
        try:
            if not exists:
                _create(store)
            try:
                engine.meet(store)
                journal = Journal(store.path / JOURNAL)
            except StudyError:
                if not exists:
                    shutil.rmtree(store.path)
                raise
            try:
                return _complete(plan, store, engine, journal, bar, changes)
            finally:
                journal.close()
        finally:
            engine.close()


def _is_damaged(store: Store) -> bool:
    """Whether a store without a journal is damaged. Then everything is computed again: what the chunks added to the
    reductions is no longer known."""
    damage = list(verify(store.path).damage)
    if not damage:
        return False
    foreign = [one for one in damage if one.problem == STRAY]
    if len(foreign) == len(damage):
        more = f"; and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise StudyError(f"{store.path}: {foreign[0]}: remove it{more}")
    more = f" and {len(damage) - 1} more" if len(damage) > 1 else ""
    _say(store.path, f"{damage[0]}{more}; all of it is computed again")
    store.reopen(set(files_of(store.path)) - {one.file for one in foreign})
    return True


def _create(store: Store) -> None:
    try:
        store.create()
    except OSError as problem:
        raise StudyError(f"{store.path}: cannot be made: {problem.strerror or problem}") from None
    except Terminated as ended:
        raise StoppedError(f"{store.path}: terminated before anything was computed", ended.number) from None


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
    return True


def engine_for(plan: Plan, cluster: Any, threads: int | None) -> Engine:
    """The threads of this process, or a cluster."""
    if cluster is None:
        _ = plan.on_device  # a requested GPU that is missing is noticed here
        return LocalEngine(wanted(threads))
    from linkwise.study.engines.cluster import ClusterEngine

    return ClusterEngine(cluster, plan)


def _complete(
    plan: Plan, store: Store, engine: Engine, journal: Journal, bar: Bar, changes: list[str]
) -> Collection:
    files.sweep(store.path)  # room for what is to come
    found = _progress_of(plan, store, journal)
    collection = found.collection
    done = sum(plan.axes.chunk(number).count for number in collection.done)
    with _stopping(store.path):
        if changes:
            store.accept(changes, collection.done)
        journal.append(packed({}, begun(len(collection.done))))
        with bar(plan.description.name or store.path.name, plan.axes.points, done) as advance:

            def compute(chunks: Sequence[int]) -> None:
                # closed in any case: an engine whose results are not taken would wait forever
                with closing(engine.run(plan, store, chunks)) as outcomes:
                    for outcome in outcomes:
                        found.take(outcome, journal)
                        advance(plan.axes.chunk(outcome.chunk).count)

            compute([number for number in range(plan.axes.chunks) if number not in collection.done])
            _check_written(store, collection, compute)
        journal.sync()
        collection.give_up()
        _finish(plan, store, journal, found)
    return collection


@dataclass
class _Progress:
    """What a journal says, and what is added to it."""

    collection: Collection
    records: dict[int, bytes] = field(default_factory=dict)
    """The last one of each chunk."""
    files: set[str] = field(default_factory=set)
    """Every file that was ever written, or was going to be."""

    def take(self, outcome: ChunkOutcome, journal: Journal) -> None:
        """What became of a chunk."""
        record = outcome.record
        if record is None:
            self.collection.aside[outcome.chunk] = outcome.error
            record = packed({}, {"chunk": outcome.chunk, "error": outcome.error})
            journal.append(record)
        else:
            journal.append(record)
            arrays, facts = unpacked(record)
            self.files |= set(facts["files"])
            self.collection.add(arrays, facts)
        self.records[outcome.chunk] = record


def _progress_of(plan: Plan, store: Store, journal: Journal) -> _Progress:
    """What the journal says is done, and can be found on disk; the rest is computed again."""
    progress = _Progress(Collection(plan))
    others: list[bytes] = []
    for record in journal.records():
        facts = facts_of(record)
        for key in ("created", "finishing", "finished", "files", "leftovers"):
            progress.files |= set(facts.get(key, ()))
        if "chunk" in facts:
            progress.records[facts["chunk"]] = record
        else:
            others.append(record)
    if journal.damaged:
        _say(store.path, f"{JOURNAL} is damaged; chunks without a record are computed again")
        journal.rewrite([*others, *progress.records.values()])
    wanted = {number: unpacked(record) for number, record in progress.records.items()}
    # chunks that were set aside, or with points that failed, get another chance
    wanted = {number: parts for number, parts in wanted.items() if parts[1].get("errors") == 0}
    with ThreadPoolExecutor(READERS, "linkwise-study-reader") as readers:
        problems = readers.map(lambda parts: store.problem(parts[1]["files"]), wanted.values())
        damage = dict(zip(wanted, problems, strict=True))
    for number, (arrays, facts) in wanted.items():
        if damage[number] is None:
            progress.collection.add(arrays, facts)
    _say_damage(store.path, damage)
    store.restore()
    return progress


def _check_written(store: Store, collection: Collection, compute: Callable[[Sequence[int]], None]) -> None:
    """Read back what was written; what differs is computed once more."""
    chunks: Iterable[int] = sorted(collection.files)
    for last in (False, True):
        with ThreadPoolExecutor(READERS, "linkwise-study-reader") as readers:
            problems = readers.map(lambda number: store.problem(collection.files[number]), chunks)
            damage = {n: problem for n, problem in zip(chunks, problems, strict=True) if problem}
        if not damage:
            return
        if last:
            break
        _say_damage(store.path, damage)
        chunks = sorted(damage)
        compute(chunks)
    raise StoppedError(f"{store.path}: {next(iter(damage.values()))}, also after it was written again")


def _say_damage(path: Path, damage: Mapping[int, str | None]) -> None:
    told = [problem for problem in damage.values() if problem]
    if told:
        more = f" and {len(told) - 1} more" if len(told) > 1 else ""
        _say(path, f"{told[0]}{more}; computed again")


def _say(path: Path, text: str) -> None:
    warn(f"{path}: {text}", StudyWarning)


def _finish(plan: Plan, store: Store, journal: Journal, found: _Progress) -> None:
    """Write what is known only at the end. The journal first lists what is going to be written; it is removed, or
    shortened, when all of that is durable."""
    collection = found.collection
    content = finished(plan, store, collection)
    entries = {name: digests.of(data) for name, data in content.items()}
    journal.append(packed({}, {"finishing": entries}))
    journal.sync()
    store.folder.write_all(content)
    written = {name: entry for files_of in collection.files.values() for name, entry in files_of.items()}
    store.folder.remove(sorted(found.files - set(entries) - set(written)))
    files.sweep(store.path)
    if collection.complete:
        written[STUDY] = digests.of((store.path / STUDY).read_bytes())
        store.folder.write(digests.NAME, digests.text({**entries, **written}).encode())
        journal.remove()
    else:
        # the journal stays for the points that are missing: one record for each chunk, in their order
        records = [found.records[number] for number in sorted(found.records)]
        finished_record = packed({}, {"finished": entries, "study": plan.description.digest()})
        journal.rewrite([finished_record, *records])


@contextmanager
def _stopping(path: Path) -> Iterator[None]:
    """Errors that stop a run become one line that says how to continue."""
    try:
        yield
    except (StoppedError, OSError, KeyboardInterrupt, Terminated) as problem:
        reason, number = f"{problem}", getattr(problem, "signal", None)
        if isinstance(problem, OSError):
            reason = f"{path}: {problem.strerror or problem}"
        elif isinstance(problem, KeyboardInterrupt):
            reason, number = "interrupted", int(signal.SIGINT)
        elif isinstance(problem, Terminated):
            reason, number = "terminated", problem.number
        raise StoppedError(
            f"{reason}; nothing that was done is lost: linkwise study {path} --resume", number
        ) from None
