"""Which code this is: a digest of the package's own files by their content.

Versions and modification times do not identify code: two checkouts have the same version, and files in container
images and package stores have the same times. The cache of compiled code and the stores of studies use this digest.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from linkwise.core import system

PACKAGE = Path(__file__).parents[1]
_COMPILED = "__pycache__"
_PROCESS = os.urandom(16)
_READ = system.flags("O_RDONLY", "O_NONBLOCK", "O_CLOEXEC")
_HOUR = 3600 * 10**9  # [ns]; clocks of file servers differ by less


class Imported:
    """Tells which files were changed after this moment, also where the clock is wrong.

    A clock that is behind the times of files (a board without a battery, a clock that was set back) would make all of
    them newer than the process. Then the state of every file is kept instead, and compared for equality.

    Args:
        folder: the package.
        known: one of its files, whose times are compared with the clock.
    """

    def __init__(self, folder: Path, known: str):
        self._when = time.time_ns()
        self._states: dict[str, tuple[int, ...]] | None = None
        try:
            behind = _newest(os.stat(known)) > self._when
        except OSError:  # in an archive
            behind = False
        if behind:
            self._states = {path: _state(path) for path in _paths(str(folder))}

    def before(self, path: str, status: os.stat_result) -> bool:
        """Whether a file has not been changed since."""
        if self._states is not None:
            return self._states.get(path) == _signature(status)
        # a time far in the future is no time of a change since then
        return not self._when < _newest(status) <= time.time_ns() + _HOUR


def _newest(status: os.stat_result) -> int:
    return max(status.st_mtime_ns, status.st_ctime_ns)


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _state(path: str) -> tuple[int, ...]:
    try:
        return _signature(os.stat(path))
    except OSError:
        return ()


def digest(*parts: bytes) -> str:
    """SHA-256 of byte strings; their lengths are part of it."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()


@functools.cache
def package_digest() -> str:
    """One digest of all files of this package."""
    return tree_digest(package_files())


@functools.cache
def package_files() -> dict[str, str]:
    """Digest of every file of this package, by its path inside the package.

    A file that was changed after this process had imported the package gets a digest that no other process has: the
    code in memory may be the one from before, so nothing may be shared under the digest of the new content.
    """
    return dict(files_below(PACKAGE, IMPORTED))


def tree_digest(files: dict[str, str]) -> str:
    """One digest for many files."""
    return digest(*(f"{path}\0{content}".encode() for path, content in sorted(files.items())))


def files_below(
    folder: Path, imported: Imported | None = None, endings: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """(path, digest) of every file below a folder, or of those with an ending; without compiled Python files."""
    if not folder.is_dir():  # imported from an archive: its digest is that of all its files
        archive = next((parent for parent in folder.parents if parent.is_file()), None)
        if archive is not None:
            yield archive.name, _content(str(archive), imported)
        return
    root = str(folder)
    for path in _paths(root, endings):
        yield path[len(root) + 1 :], _content(path, imported)


def _paths(root: str, endings: tuple[str, ...] = ()) -> Iterator[str]:
    """Every file below a folder, or those with an ending; without compiled Python files."""
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != _COMPILED)
        for name in sorted(names):
            if not endings or name.endswith(endings):
                yield f"{here}{os.sep}{name}"


def _content(path: str, imported: Imported | None) -> str:
    try:
        descriptor = os.open(path, _READ)  # half the time of ``open``
        try:
            status = os.fstat(descriptor)
            data = os.read(descriptor, status.st_size + 1) if stat.S_ISREG(status.st_mode) else b""
            while len(data) > status.st_size and (part := os.read(descriptor, 1 << 20)):
                data += part  # it grows while it is read
        finally:
            os.close(descriptor)
    except OSError as error:  # a broken link that an editor left, say
        return digest(f"unreadable {error.errno}".encode())
    if imported is not None and not imported.before(path, status):
        return digest(data, _PROCESS)
    return digest(data)


IMPORTED = Imported(PACKAGE, __file__)
