"""Whether the bytes of a store are those that were written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from linkwise.study import digests, files
from linkwise.study.digests import Entry
from linkwise.study.errors import StudyError
from linkwise.study.journal import Torn, scan
from linkwise.study.pack import facts_of
from linkwise.study.store import DATA, JOURNAL, STUDY, TABLES, read_study
from linkwise.summaries import Summarised

READERS = 4


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

    def problem(self, path: Path, name: str) -> Damage | None:
        """What is wrong with a file."""
        if name not in self.required and not (path / name).exists():
            return None
        told = ""
        for entry in self.entries[name]:
            found = digests.problem(path / name, entry)
            if found is None:
                return None
            told = told or found
        return Damage(name, told)


@dataclass(frozen=True, repr=False)
class Verification(Summarised):
    """What was compared, and what differs."""

    files: int
    bytes: int
    complete: bool
    torn: bool
    damage: tuple[Damage, ...]


def known(path: Path) -> ExpectedFiles:
    """The entries of a store: of its list if it is complete, else of its journal."""
    found = ExpectedFiles()
    if not (path / JOURNAL).exists():
        try:
            found.add(digests.read(path), required=True)  # type: ignore[arg-type]
        except StudyError as error:
            found.damage.append(Damage(digests.NAME, str(error).partition(f"{digests.NAME} ")[2]))
        return found
    chunks: dict[int, dict[str, Entry]] = {}
    last: dict[str, Entry] = {}
    with (path / JOURNAL).open("rb") as file:
        for place, record in scan(file):
            if record is None:
                found.damage.append(Damage(JOURNAL, f"is damaged at byte {place}"))
            elif isinstance(record, Torn):
                found.torn = True
            else:
                facts = facts_of(record)
                if "files" in facts:
                    chunks[facts["chunk"]] = facts["files"]
                last = facts.get("finished") or facts.get("created") or last
                found.add(facts.get("finishing", {}), required=False)
    found.add(last, required=True)
    for entries in chunks.values():
        found.add(entries, required=True)
    return found


def verify(path: Path) -> Verification:
    """Compare every file of a store with what was written. A StudyError: the folder holds nothing to compare with."""
    damage: list[Damage] = []
    try:
        study = read_study(path)
        if study["study"].get("format") == 1:
            raise StudyError(f"{path}: made by a version of Linkwise that kept no digests")
    except StudyError as error:
        _, _, problem = str(error).partition(f"{STUDY} ")
        if not problem:
            raise
        damage.append(Damage(STUDY, problem.partition(";")[0]))
    listed = known(path)
    complete = not (path / JOURNAL).exists()
    damage += listed.damage
    damage += problems(path, listed, listed.entries)
    if complete and not listed.damage:
        damage += [Damage(name, "was not written by the study") for name in _unknown(path, listed)]
    size = sum((path / name).stat().st_size for name in listed.entries if (path / name).is_file())
    return Verification(len(listed.entries) + 2, size, complete, listed.torn, tuple(damage))


def problems(path: Path, listed: ExpectedFiles, names: Iterable[str]) -> list[Damage]:
    """What is wrong with some files."""
    with ThreadPoolExecutor(READERS, "linkwise-study-reader") as readers:
        found = readers.map(lambda name: listed.problem(path, name), sorted(names))
        return [damage for damage in found if damage is not None]


def _unknown(path: Path, listed: ExpectedFiles) -> list[str]:
    """Files among the arrays and tables that have no entry."""
    found = []
    for part in (DATA, TABLES):
        for here, _, names in os.walk(path / part):
            for name in names:
                relative = os.path.relpath(os.path.join(here, name), path)
                if relative not in listed.entries and not files.is_aside(name):
                    found.append(relative)
    return sorted(found)
