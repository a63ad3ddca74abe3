"""Whether the bytes of a store are those that were written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from linkwise.core.summaries import Summarised
from linkwise.study.errors import StudyError
from linkwise.study.store import digests, files
from linkwise.study.store.digests import Entry
from linkwise.study.store.folder import DATA, JOURNAL, STUDY, TABLES, read_study
from linkwise.study.store.journal import Torn, scan
from linkwise.study.store.pack import facts_of

READERS = 4
STRAY = "was not written by the study"
UNKNOWN = "it is not known what was computed"


@dataclass(frozen=True)
class Damage:
    """A file that differs from what was written: its name in the store, the array and chunk in it, and how."""

    file: str
    problem: str

    @property
    def array(self) -> str | None:
        parts = self.file.split("/")
        return parts[1] if parts[0] == DATA and len(parts) > 2 else None

    @property
    def chunk(self) -> str | None:
        """The place of a chunk of the array in Zarr's grid of chunks."""
        parts = self.file.split("/")
        return ", ".join(parts[3:]) if self.array and parts[2] == "c" else None

    def __str__(self) -> str:
        where = f" (array {self.array}{f', chunk {self.chunk}' if self.chunk is not None else ''})"
        return f"{self.file}{where if self.array else ''} {self.problem}"


@dataclass
class ExpectedFiles:
    """What the files of a store should be."""

    entries: dict[str, list[Entry]] = field(default_factory=dict)
    """By name; several where a run stopped between two versions of a file."""
    required: set[str] = field(default_factory=set)
    damage: list[Damage] = field(default_factory=list)
    """Of the list itself."""
    torn: bool = False
    """A run was killed while it appended to the journal: no damage, the chunk is computed again."""

    def add(self, found: dict[str, Entry], required: bool) -> None:
        for name, entry in found.items():
            self.entries.setdefault(name, []).append(entry)
            if required:
                self.required.add(name)

    def problem(
        self, path: Path, name: str, compare: Callable[[Path, Entry], str | None] = digests.problem
    ) -> Damage | None:
        """What is wrong with a file."""
        if name not in self.required and not (path / name).exists():
            return None
        told = ""
        for entry in self.entries[name]:
            difference = compare(path / name, entry)
            if difference is None:
                return None
            told = told or difference
        return Damage(name, told)


@dataclass(frozen=True, repr=False)
class Verification(Summarised):
    """What was compared, and what differs."""

    files: int
    bytes: int
    complete: bool
    torn: bool
    damage: tuple[Damage, ...]


def known(path: Path, study: str | None = None) -> ExpectedFiles:
    """The entries of a store: of its list if it is complete, else of its journal.

    Args:
        path: the store.
        study: digest of its study, which a journal must belong to; None: not compared.
    """
    expected = ExpectedFiles()
    if not (path / JOURNAL).exists():
        if not (path / digests.NAME).exists():
            expected.damage.append(Damage(JOURNAL, f"and {digests.NAME} are missing: {UNKNOWN}"))
            return expected
        try:
            expected.add(digests.read(path), required=True)  # type: ignore[arg-type]
        except StudyError as error:
            expected.damage.append(Damage(digests.NAME, str(error).partition(f"{digests.NAME} ")[2]))
        return expected
    chunks: dict[int, dict[str, Entry]] = {}
    begun = False
    last: dict[str, Entry] = {}
    with (path / JOURNAL).open("rb") as file:
        for place, record in scan(file):
            if record is None:
                expected.damage.append(Damage(JOURNAL, f"is damaged at byte {place}"))
            elif isinstance(record, Torn):
                expected.torn = True
            else:
                facts = facts_of(record)
                if "chunk" in facts:  # the last record of a chunk counts
                    chunks[facts["chunk"]] = facts.get("files", {})
                if study is not None and facts.get("study", study) != study:
                    expected.damage.append(Damage(JOURNAL, "belongs to another study"))
                begun = begun or "finished" in facts or "created" in facts
                last = facts.get("finished") or facts.get("created") or last
                expected.add(facts.get("finishing", {}), required=False)
    if not begun and not expected.damage:
        expected.damage.append(Damage(JOURNAL, "does not begin with the files of the study"))
    expected.add(last, required=True)
    for entries in chunks.values():
        expected.add(entries, required=True)
    return expected


def verify(path: Path) -> Verification:
    """Compare every file of a store with what was written. A StudyError: the folder holds nothing to compare with."""
    damage: list[Damage] = []
    digest = None
    try:
        study = read_study(path)
        digest = study["digest"]
        if study["study"].get("format") == 1:
            raise StudyError(f"{path}: made by a version of Linkwise that kept no digests")
    except StudyError as error:
        _, _, problem = str(error).partition(f"{STUDY} ")
        if not problem:
            raise
        damage.append(Damage(STUDY, problem.partition(";")[0]))
    listed = known(path, digest)
    complete = not (path / JOURNAL).exists()
    damage += listed.damage
    damage += problems(path, listed, listed.entries)
    if complete and not listed.damage:
        damage += strays(path, listed)
    size = sum((path / name).stat().st_size for name in listed.entries if (path / name).is_file())
    manifest = {STUDY, digests.NAME if complete else JOURNAL}
    return Verification(len({*listed.entries, *manifest}), size, complete, listed.torn, tuple(damage))


def quick_problems(path: Path, listed: ExpectedFiles) -> list[Damage]:
    """Files that are missing or have another size or another table of checksums than was written; the rest of their
    bytes is not read. What reads them compares it: Zarr has checksums of all pieces."""
    return [
        damage
        for name in sorted(listed.entries)
        if (damage := listed.problem(path, name, digests.quick_problem)) is not None
    ]


def strays(path: Path, listed: ExpectedFiles) -> list[Damage]:
    """Files among the arrays and tables that have no entry."""
    return [Damage(name, STRAY) for name in files_of(path) if name not in listed.entries]


def problems(path: Path, listed: ExpectedFiles, names: Iterable[str]) -> list[Damage]:
    """What is wrong with some files."""
    with ThreadPoolExecutor(READERS, "linkwise-study-reader") as readers:
        differences = readers.map(lambda name: listed.problem(path, name), sorted(names))
        return [damage for damage in differences if damage is not None]


def files_of(path: Path) -> list[str]:
    """Every file among the arrays and tables, but temporary ones, by its name in the store."""
    listed = []
    for part in (DATA, TABLES):
        for here, _, names in os.walk(path / part):
            for name in names:
                if not files.is_aside(name):
                    listed.append(Path(os.path.relpath(os.path.join(here, name), path)).as_posix())
    return sorted(listed)
