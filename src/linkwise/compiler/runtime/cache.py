"""Compiled code on disk, so that a new process need not compile again.

An entry is a file named by the hash of everything the code depends on. It is written to a temporary file that is
renamed, so a reader sees a whole entry or none, whatever other processes write and wherever a writer is interrupted.
Because entries are executed, the folder is private to its user, and owner, permissions and a checksum are verified
before an entry is used: a damaged one is removed and built anew. Where the folder cannot be used there is one
warning, and everything is compiled.

The folder is ``$LINKWISE_CACHE``, else ``linkwise`` in the user's cache folder (``$XDG_CACHE_HOME`` or
``~/.cache``; macOS: ``~/Library/Caches``; Windows: ``%LOCALAPPDATA%``). An empty ``LINKWISE_CACHE`` turns the
cache off.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from linkwise.compiler.runtime import host
from linkwise.core import identity, system
from linkwise.errors import warn
from linkwise.files import outputs

SIZE_LIMIT = 256 << 20  # bytes; when exceeded, the entries unused for longest are removed
ENTRY_COST = 16 << 10  # bytes that an entry counts at least, so that their number is bounded too
_SCANS = 16  # how often the folder is looked through while a process stores as much as the limit
_MAGIC = b"linkwise code 1\n"
_ENDING = ".code"
_READ = system.flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
_ABANDONED = 3600.0  # seconds after which an unfinished file is removed
_warned = False
_until_scan: dict[
    Path, int
] = {}  # bytes that this process may store before it looks through the folder again
creates = True
"""Whether ``store`` makes the folder where there is none."""


def key(content: bytes) -> str:
    """The name of an entry: what the caller says it depends on, and everything else that decides the machine
    code."""
    return hashlib.sha256(b"\0".join((content, host.description().encode(), _software()))).hexdigest()


def load(name: str) -> bytes | None:
    """The stored code, or None."""
    folder = _folder(create=False)
    if folder is None:
        return None
    path = folder / (name + _ENDING)
    try:
        data = _read_private(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(f"cannot read {path}: {error}")
        return None
    code = data[len(_MAGIC) + 32 :]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : len(_MAGIC) + 32] != _checksum(name, code):
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the last use decides what is removed first
    return code


def prepare() -> bool:
    """Make the folder; whether it can be used."""
    return _folder(create=True) is not None


def store(name: str, code: bytes) -> None:
    """Store code under a name; every failure is a warning."""
    folder = _folder(create=creates)
    if folder is None:
        return
    try:
        outputs.replace(
            folder / (name + _ENDING), _MAGIC + _checksum(name, code) + code, mode=0o600, durable=False
        )
    except OSError as error:
        _warn(f"cannot write to {folder}: {error}")
        return
    left = _until_scan.get(folder, 0) - max(len(code), ENTRY_COST)
    if left < 0:  # looking at thousands of files takes longer than storing one
        _trim(folder)
        left = SIZE_LIMIT // _SCANS
    _until_scan[folder] = left


def _checksum(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + code).digest()


def _folder(create: bool) -> Path | None:
    """The folder of the entries if its owner and permissions are right; created with ``create``."""
    base = _base()
    if base is None:
        return None
    folder = base / "code"
    try:
        if create:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError("it is not a folder")
        if not system.is_own(status):
            raise PermissionError("it belongs to another user")
        if status.st_mode & 0o077:
            folder.chmod(0o700)
    except FileNotFoundError:
        return None  # nothing stored yet
    except OSError as error:
        _warn(f"cannot use {folder}: {error}")
        return None
    return folder


def _base() -> Path | None:
    chosen = os.environ.get("LINKWISE_CACHE")
    if chosen is not None:
        return Path(chosen) if chosen else None
    shared = system.cache_folder()
    if not os.path.isabs(shared):
        _warn("there is no home folder")
        return None
    return Path(shared) / "linkwise"


def _read_private(path: Path) -> bytes:
    """The bytes of a regular file that only this user can write."""
    # without waiting: a FIFO would make ``open`` wait for a writer
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not system.is_private(status):
            raise PermissionError("it is not a private file of this user")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _trim(folder: Path) -> None:
    """Remove temporary files of processes that have ended, and the oldest entries while the folder is too large."""
    with contextlib.suppress(OSError):
        entries: list[tuple[float, int, str]] = []
        total = 0
        for path, status in _files(folder):
            if not path.endswith(_ENDING):
                if time.time() - status.st_mtime > _ABANDONED:
                    Path(path).unlink(missing_ok=True)
                continue
            size = max(status.st_size, ENTRY_COST)
            entries.append((status.st_mtime, size, path))
            total += size
        if total <= SIZE_LIMIT:
            return
        for _, size, path in sorted(entries):
            if total <= SIZE_LIMIT:
                break
            Path(path).unlink(missing_ok=True)
            total -= size


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as found:
        for entry in found:
            with contextlib.suppress(FileNotFoundError):  # another process may be removing it
                yield entry.path, entry.stat(follow_symlinks=False)


@functools.cache
def _software() -> bytes:
    """Versions and, for this package, the content of every file: an edited algorithm must not find old code."""
    return "\0".join((sys.version, np.__version__, _llvmlite(), identity.package_digest())).encode()


def _llvmlite() -> str:
    """The version of llvmlite without importing it."""
    found = importlib.util.find_spec("llvmlite")
    if found is None or found.origin is None:
        return ""
    try:
        return Path(found.origin).with_name("_version.py").read_text(encoding="utf-8")
    except OSError:
        from importlib import metadata

        return metadata.version("llvmlite")


def _warn(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(f"Linkwise runs without its cache of compiled code: {reason}", RuntimeWarning)
