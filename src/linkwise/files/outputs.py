"""Writing output files: a file appears whole or not at all, and nothing else is touched.

Where a path leads decides how it is written:

- a regular file, or nothing yet: the content is written to a temporary file, which then replaces the file in one
step. Symbolic
  links are followed (the file they lead to is replaced, the link stays), mode and owner are kept, and a file
  without write permission is refused, for root too;
- a character device, a FIFO or a descriptor of this process (``/dev/null``, ``/dev/stdout``, ``>(command)``):
  written directly;
- a folder, a block device, a socket: refused.

A signal that ends the process leaves no temporary file. Where the file system has unnamed files (``O_TMPFILE``), the
file has no name until it is complete; elsewhere signal handlers remove it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from linkwise.core import system
from linkwise.errors import LinkwiseError

__all__ = ["ASIDE", "Aside", "Output", "OutputError", "check", "is_standard_output", "replace", "write"]

PathLike = str | os.PathLike[str]

ASIDE = ".aside-"  # how the names of unfinished files begin, where they have one
_MOST_LINKS = 40  # as in the kernel
_DESCRIPTORS = re.compile(r"/proc/(\d+)(?:/task/\d+)?/fd|/dev/fd")  # the second one: macOS, this process
_ENDING_SIGNALS = (*system.ENDING_SIGNALS, signal.SIGINT)
_NO_UNNAMED_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.ENOSYS)


class OutputError(LinkwiseError, OSError):
    """An output cannot be written; the message names the path and the reason."""


def write(path: PathLike, content: str | bytes, *, mode: int = 0o666, durable: bool = True) -> int:
    """Write a whole file; the number of its bytes.

    Args:
        path: where to; see the head of this module.
        content: bytes, or text, which is written as UTF-8.
        mode: permissions of a new file, less the process's umask; an existing file keeps its own.
        durable: wait until the content is on the disk, so that it survives a loss of power.

    Raises:
        OutputError: it cannot be written. What was there before is then unchanged.
        BrokenPipeError: the reader of a pipe has gone.
    """
    return _whole(Output(path, mode=mode, durable=durable), content)


def replace(path: PathLike, content: str | bytes, *, mode: int = 0o666, durable: bool = True) -> int:
    """Write a file in a folder of Linkwise's own, such as a cache: whatever has this path, a link too, is replaced.

    Arguments and result as for ``write``. Errors are those of the operating system.
    """
    return _whole(Aside(path, mode=mode, durable=durable), content)


def _whole(file: Output | Aside, content: str | bytes) -> int:
    try:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
        return file.put()
    except BaseException:
        file.drop()
        raise


def check(*paths: PathLike | None) -> None:
    """Raise OutputError for a path that cannot be written, before long work is done for it. None is no path."""
    for path in paths:
        if path is None:
            continue
        target = _resolve(path)
        if not target.direct and not os.access(target.folder, os.W_OK | os.X_OK):
            raise _error(path, errno.EACCES, f"no permission to write in the folder {target.folder}")


def is_standard_output(path: PathLike | None) -> bool:
    """Whether a path leads to this process's standard output: ``-``, /dev/stdout, /dev/fd/1."""
    if path is None:
        return False
    try:
        return os.fspath(path) == "-" or _resolve(path).descriptor == 1
    except OutputError:
        return False


class Output:
    """An output that is being written; ``put`` completes it, ``drop`` leaves what was there before."""

    def __init__(self, path: PathLike, *, mode: int = 0o666, durable: bool = True):
        self._path = path
        target = _resolve(path)
        with _explained(path):
            if target.direct:
                self._file: Aside | _Direct = _Direct(target)
            else:
                self._file = Aside(target.path, mode=mode, durable=durable, like=target.status)

    def write(self, data: bytes) -> None:
        with _explained(self._path):
            self._file.write(data)

    def put(self) -> int:
        """Complete the file and put it in its place; the number of its bytes."""
        with _explained(self._path):
            return self._file.put()

    def drop(self) -> None:
        """Leave nothing of it; after ``put`` this does nothing. What went into a pipe cannot be taken back."""
        self._file.drop()


# -- where a path leads -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Target:
    """What a path leads to after all links; ``status`` is None where nothing is there yet."""

    path: str
    status: os.stat_result | None
    descriptor: int | None = None
    direct: bool = False

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def _resolve(path: PathLike) -> _Target:
    """Follow a path and decide how it is written, or raise OutputError."""
    with _explained(path):
        shown = os.fsdecode(path)
        if not shown:
            raise FileNotFoundError(errno.ENOENT, "an empty path; expected the name of a file")
        if shown.endswith((os.sep, os.altsep or os.sep)) or os.path.basename(shown) in (".", ".."):
            raise IsADirectoryError(errno.EISDIR, "a folder; expected the name of a file")
        here = os.path.abspath(shown)
        for _ in range(_MOST_LINKS):
            folder, name = os.path.realpath(os.path.dirname(here)), os.path.basename(here)
            here = os.path.join(folder, name)
            process = _DESCRIPTORS.fullmatch(folder)
            if process:  # a link to an open file: its own name may have gone, and its offset counts
                own = int(process[1] or os.getpid()) == os.getpid() and name.isdecimal()
                return _Target(here, os.stat(here), int(name) if own else None, direct=True)
            if not os.path.islink(here):
                break
            here = os.path.normpath(os.path.join(folder, os.readlink(here)))
        else:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        try:
            status = os.stat(here)
        except FileNotFoundError:
            if not os.path.isdir(folder):
                raise FileNotFoundError(errno.ENOENT, f"no such folder as {folder}") from None
            return _Target(here, None)
        return _Target(here, status, direct=_is_direct(here, status))


def _is_direct(path: str, status: os.stat_result) -> bool:
    kind = status.st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, "a folder; expected the name of a file")
    if stat.S_ISBLK(kind):
        raise OSError(errno.EINVAL, "a block device, which is not written")
    if stat.S_ISSOCK(kind):
        raise OSError(errno.EINVAL, "a socket, which is not written")
    # root may write everywhere; a file that its owner protected stays protected all the same
    protected = system.user() == 0 and not kind & stat.S_IWUSR
    if protected or not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission to write it")
    return not stat.S_ISREG(kind)


class _Direct:
    """A device, a pipe or an open file, written as the bytes come."""

    def __init__(self, target: _Target):
        self._size = 0
        self._descriptor = _descriptor(target)

    def write(self, data: bytes) -> None:
        _write_all(self._descriptor, data)
        self._size += len(data)

    def put(self) -> int:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        return self._size

    def drop(self) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                self.put()


def _descriptor(target: _Target) -> int:
    if target.descriptor is None:
        return os.open(target.path, system.flags("O_WRONLY", "O_CLOEXEC", "O_NOCTTY"))
    if not system.is_writable(target.descriptor):
        raise OSError(errno.EBADF, "not open for writing")
    for stream in (sys.stdout, sys.stderr):  # text that was printed before must come first
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    return os.dup(target.descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # a pipe that another program made non-blocking
            select.select([], [descriptor], [])


# -- a regular file, aside --------------------------------------------------------------------------------------------


class Aside:
    """A regular file that replaces whatever has its path when ``put`` is called; ``drop`` leaves nothing of it.

    For files in folders of Linkwise's own, such as caches: links are not followed. Outputs of users go through
    ``Output``, which first resolves their path. Its folder must exist.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        mode: int = 0o666,
        durable: bool = True,
        like: os.stat_result | None = None,
    ):
        """``like``: the file that it replaces, whose mode and owner it takes."""
        self._folder_path, self._final = os.path.split(os.path.abspath(os.fsdecode(path)))
        self._durable = durable
        self._like = like
        self._size = 0
        self._name: str | None = None  # unnamed, or gone
        self._descriptor = -1
        self._folder: int | None = None
        self._guard = contextlib.ExitStack()
        try:
            self._folder = system.open_folder(self._folder_path)
            self._open(mode)
        except BaseException:
            self.drop()
            raise

    def _open(self, mode: int) -> None:
        if self._open_unnamed(mode):
            return
        self._name = self._some_name()
        self._guard.enter_context(_removed_by_signals(os.path.join(self._folder_path, self._name)))
        flags = system.flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_CLOEXEC")
        self._descriptor = os.open(self._place(self._name), flags, mode, dir_fd=self._folder)

    def _open_unnamed(self, mode: int) -> bool:
        """Open a file without a name; False where there are no such files."""
        if self._folder is None or not hasattr(os, "O_TMPFILE"):
            return False
        try:
            self._descriptor = os.open(self._folder_path, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode)
        except OSError as error:
            if error.errno not in _NO_UNNAMED_FILES:
                raise
            return False
        if os.path.exists(f"/proc/self/fd/{self._descriptor}"):
            return True
        os.close(self._descriptor)
        self._descriptor = -1
        return False

    def _place(self, name: str) -> str:
        """A name in the folder; relative to its descriptor where it has one, which stays right if it is renamed."""
        return name if self._folder is not None else os.path.join(self._folder_path, name)

    def write(self, data: bytes) -> None:
        _write_all(self._descriptor, data)
        self._size += len(data)

    def put(self) -> int:
        """Put it in its place; the number of its bytes."""
        if self._like is not None:
            named = None if self._name is None else os.path.join(self._folder_path, self._name)
            system.take_owner_and_mode(self._descriptor, named, self._like)
        if self._durable:
            os.fsync(self._descriptor)
        if self._name is None and not self._linked(self._final):
            name = self._some_name()
            self._linked(name)
            self._name = name
        if self._name is not None:
            if not system.MOVES_OPEN_FILES:
                descriptor, self._descriptor = self._descriptor, -1
                os.close(descriptor)
            here, there = self._place(self._name), self._place(self._final)
            os.replace(here, there, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._name = None
        if self._durable and self._folder is not None:
            os.fsync(self._folder)
        self.drop()
        return self._size

    def drop(self) -> None:
        """Close it; where it is not in its place yet, it is gone. After ``put`` this does nothing."""
        if self._descriptor >= 0:  # first: Windows removes no open file
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
        self._descriptor = -1
        if self._name is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._place(self._name), dir_fd=self._folder)
            self._name = None
        if self._folder is not None:
            with contextlib.suppress(OSError):
                os.close(self._folder)
        self._folder = None
        self._guard.close()

    def _linked(self, name: str) -> bool:
        """Give the unnamed file a name; False where that name is taken."""
        try:
            # with a folder's descriptor, Python follows the link in /proc to the file itself
            os.link(f"/proc/self/fd/{self._descriptor}", name, dst_dir_fd=self._folder)
        except FileExistsError:
            return False
        return True

    def _some_name(self) -> str:
        return f"{ASIDE}{self._final[:100]}-{os.getpid()}-{os.urandom(6).hex()}"


@contextlib.contextmanager
def _removed_by_signals(path: str) -> Iterator[None]:
    """Remove a file when a signal ends the process in the block; signals that are handled already are left alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def remove(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(OSError):
            os.unlink(path)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    changed = [number for number in _ENDING_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, remove)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


# -- errors -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _explained(path: PathLike) -> Iterator[None]:
    """Turn errors of the operating system into OutputError with the path as it was given."""
    try:
        yield
    except (OutputError, BrokenPipeError):
        raise
    except OSError as error:
        raise _error(path, error.errno, error.strerror or str(error)) from error
    except ValueError as error:  # a NUL character in the name
        raise _error(path, errno.EINVAL, str(error)) from error


def _error(path: PathLike, number: int | None, reason: str) -> OutputError:
    shown = str(Path(os.fsdecode(path))) if path else repr(path)
    if "\0" in shown:
        shown = repr(shown)
    error = OutputError(f"{shown}: cannot be written: {reason}")
    error.errno = number
    return error
