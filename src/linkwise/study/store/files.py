"""Files that appear whole or not at all, and survive a loss of power once they have appeared.

Every change that a study makes on disk goes through ``disk``: a test replaces it to record what a run does, and checks
every state that a loss of power could leave behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable, Mapping
from io import FileIO
from pathlib import Path

from linkwise.core import system

_ASIDE = ".aside-"


class Disk:
    """The operations that change files and folders."""

    def make_folder(self, path: Path) -> None:
        path.mkdir()

    def open(self, path: Path, mode: str = "wb") -> FileIO:
        return path.open(mode, buffering=0)  # type: ignore[return-value]

    def write(self, file: FileIO, data: bytes) -> None:
        """All of ``data``: the operating system may take it in parts."""
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) or 0 :]

    def truncate(self, file: FileIO, size: int) -> None:
        file.truncate(size)

    def sync(self, file: FileIO) -> None:
        os.fsync(file.fileno())

    def sync_folder(self, path: Path) -> None:
        """Makes the names in a folder durable."""
        system.sync_folder(path)

    def rename(self, old: Path, new: Path) -> None:
        old.replace(new)

    def unlink(self, path: Path) -> None:
        path.unlink()


disk = Disk()


class Folder:
    """A folder of files named relative to it."""

    def __init__(self, path: Path):
        self.path = path
        self._durable: set[Path] = {path}
        """Folders whose own name is known to be on the disk."""

    def aside(self, name: str) -> PendingFile:
        """A file to be written piece by piece."""
        return PendingFile(self, name)

    def write(self, name: str, data: bytes) -> None:
        """One whole file."""
        self.write_all({name: data})

    def write_all(self, files: Mapping[str, bytes]) -> None:
        """Whole files; each folder is synchronised once."""
        asides: list[PendingFile] = []
        try:
            for name, data in files.items():
                asides.append(self.aside(name))
                asides[-1].write(data)
                asides[-1].close()
            for aside in asides:
                aside.rename()
        except BaseException:
            for aside in asides:
                aside.drop()
            raise
        self.sync(files)

    def remove(self, names: Iterable[str]) -> None:
        """Delete files, and folders that are empty then."""
        changed: set[Path] = set()
        for name in names:
            path = self.path / name
            with contextlib.suppress(FileNotFoundError):
                disk.unlink(path)
            with contextlib.suppress(OSError):  # not empty
                while path.parent != self.path:
                    path = path.parent
                    changed.add(path)
                    path.rmdir()
                    changed.discard(path)
                    changed.add(path.parent)
        for folder in sorted(changed):
            if folder.is_dir():
                disk.sync_folder(folder)

    def sync(self, names: Iterable[str]) -> None:
        """Make the names of files durable, and those of the folders above them."""
        for folder in dict.fromkeys((self.path / name).parent for name in names):
            disk.sync_folder(folder)
            above = folder
            while above not in self._durable:
                disk.sync_folder(above.parent)
                self._durable.add(above)
                above = above.parent

    def make(self, folder: Path) -> None:
        """A folder inside of this one, with those above it."""
        if folder != self.path and not folder.is_dir():
            self.make(folder.parent)
            with contextlib.suppress(FileExistsError):  # another writer was faster
                disk.make_folder(folder)


class PendingFile:
    """A file that is being written beside its place; ``put`` moves it there, ``drop`` leaves nothing behind."""

    def __init__(self, folder: Folder, name: str):
        self._folder, self._name, self._path = folder, name, folder.path / name
        folder.make(self._path.parent)
        self._aside = beside(self._path)
        self._file = disk.open(self._aside)

    def write(self, data: bytes) -> None:
        disk.write(self._file, data)

    def close(self) -> None:
        """Make the content durable."""
        disk.sync(self._file)
        self._file.close()

    def rename(self) -> None:
        """Put the file in its place; its name is durable when the folder has been synchronised."""
        disk.rename(self._aside, self._path)

    def put(self) -> None:
        """All of it: afterwards the file is in its place and survives a loss of power."""
        self.close()
        self.rename()
        self._folder.sync([self._name])

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._aside.unlink()


def beside(path: Path) -> Path:
    """Where a file is written before it is put in its place."""
    return path.with_name(f"{_ASIDE}{path.name}-{os.getpid()}-{os.urandom(6).hex()}")


def mark(folder: Path, name: str) -> Path:
    """A marker file that exists as long as a run lasts."""
    return folder / f"{_ASIDE}{name}"


def sweep(folder: Path) -> None:
    """Remove temporary files of writers that were killed."""
    for here, _, names in os.walk(folder):
        for name in names:
            if is_aside(name):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(here, name))


def is_aside(name: str) -> bool:
    """Whether a file was never put in its place."""
    return name.startswith(_ASIDE)


class NewFolder:
    """A folder that is made beside its place and locked while its process lives, so that others can tell whether
    it is still being made; ``put`` moves it to its place, ``close`` leaves nothing else behind."""

    def __init__(self, path: Path):
        self._path = path
        self._lock: int | None = None
        while True:
            self._aside = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(6).hex()}")
            disk.make_folder(self._aside)
            try:
                self._lock = _lock(self._aside)
            except (BlockingIOError, FileNotFoundError):
                continue  # another process removed it before it was locked
            except OSError:
                pass  # a file system without locks
            break
        self.folder = Folder(self._aside)

    def put(self) -> None:
        disk.sync_folder(self._aside)
        disk.rename(self._aside, self._path)
        disk.sync_folder(self._path.parent)

    def close(self) -> None:
        shutil.rmtree(self._aside, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


def sweep_new_folders(path: Path) -> None:
    """Remove folders for this path that were left by processes that died while they made them."""
    parts = len(path.name) + 1
    for folder in path.absolute().parent.glob(f".{_literal(path.name)}-*-*"):
        process, _, number = folder.name[parts + 1 :].partition("-")
        if not (process.isdigit() and len(number) == 12 and folder.is_dir()):
            continue
        with contextlib.suppress(OSError):  # it is being made, or its state is unknown
            lock = _lock(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _lock(folder: Path) -> int:
    """A lock of a folder, to be closed. BlockingIOError: another process has it; FileNotFoundError: it is gone."""
    number = system.open_folder(folder)
    if number is None:
        raise OSError(errno.ENOLCK, "this system cannot lock folders")
    try:
        system.lock(number)
        if os.fstat(number).st_ino != os.stat(folder).st_ino:
            raise FileNotFoundError(folder)
    except BaseException:
        os.close(number)
        raise
    return number
