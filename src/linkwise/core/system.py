"""What the operating system offers: names that only some systems have, and what replaces them elsewhere.

Linux has everything used here, macOS has no unnamed files and no ``/proc``, Windows has neither POSIX users nor
descriptors of folders, and locks files by another module. All other files of the package use this one instead of such
names, so that they can be imported and run on every system; ``tests/test_system.py`` removes the names and checks it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import stat
import sys

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

WINDOWS = sys.platform == "win32"
MOVES_OPEN_FILES = not WINDOWS
"""Whether a file can be renamed or replaced while it is open."""
ENDING_SIGNALS = tuple(
    signal.Signals(getattr(signal, name)) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that ask a process to end."""
_LOCKED_BYTE = 0x7FFFFFFE  # Windows locks bytes also for readers: one that no journal reaches


def flags(*names: str) -> int:
    """Flags of ``os.open`` by name, without those that this system does not have.

    Windows translates line ends unless told otherwise (``O_BINARY``), so that flag is always among them.
    """
    found = 0
    for name in ("O_BINARY", *names):
        found |= getattr(os, name, 0)
    return found


# -- users ------------------------------------------------------------------------------------------------------------


def user() -> int | None:
    """The effective user of this process; None where users have no number."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to this user. On Windows the folder that it is in decides who may change it."""
    return user() in (None, status.st_uid)


def is_private(status: os.stat_result) -> bool:
    """Whether only this user can change a file; Windows: see ``is_own``."""
    return user() is None or (is_own(status) and not status.st_mode & 0o022)


def take_owner_and_mode(descriptor: int, path: str | None, like: os.stat_result) -> None:
    """Give an open file the owner, as far as that is allowed, and the mode of another one."""
    if hasattr(os, "fchown"):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, like.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
    elif path is not None:
        os.chmod(path, stat.S_IMODE(like.st_mode))


def cache_folder() -> str:
    """Where the user's programs keep files that can be made again; not absolute where there is no home folder."""
    chosen = os.environ.get("LOCALAPPDATA" if WINDOWS else "XDG_CACHE_HOME", "")
    if os.path.isabs(chosen):  # the specification says to ignore a relative path
        return chosen
    own = "~/AppData/Local" if WINDOWS else "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return os.path.expanduser(own)


def is_writable(descriptor: int) -> bool:
    """Whether an open file takes what is written; True where the system does not tell."""
    if fcntl is None:
        return True
    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR) != 0


# -- folders ----------------------------------------------------------------------------------------------------------


def open_folder(path: str | os.PathLike[str]) -> int | None:
    """A descriptor of a folder, to be closed; None where folders have none."""
    if not hasattr(os, "O_DIRECTORY"):
        if not os.path.isdir(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        return None
    return os.open(path, flags("O_RDONLY", "O_DIRECTORY", "O_CLOEXEC"))


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Make the names in a folder durable; nothing where folders have no descriptors."""
    number = open_folder(path)
    if number is not None:
        try:
            os.fsync(number)
        finally:
            os.close(number)


# -- locks ------------------------------------------------------------------------------------------------------------


def lock(descriptor: int, *, shared: bool = False) -> None:
    """Lock an open file until it is closed or unlocked.

    Args:
        descriptor: of the file.
        shared: others may have it locked in this way, too. Windows has exclusive locks only.

    Raises:
        BlockingIOError: another process has it.
        OSError: this file cannot be locked.
    """
    if fcntl is not None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return
    try:
        _lock_byte(descriptor, "LK_NBLCK")
    except PermissionError as problem:
        raise BlockingIOError(errno.EAGAIN, "another process has locked it") from problem


def unlock(descriptor: int) -> None:
    """Release a lock before the file is closed."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    else:
        _lock_byte(descriptor, "LK_UNLCK")


def _lock_byte(descriptor: int, how: str) -> None:
    try:
        import msvcrt
    except ImportError:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from None
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, getattr(msvcrt, how), 1)  # type: ignore[attr-defined]
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)


# -- the C library ----------------------------------------------------------------------------------------------------


def c_function(name: str) -> int:
    """The address of a function of the C library; 0 where there is none of this name."""
    for library in ("ucrtbase", "ntdll", "msvcrt") if WINDOWS else (None, "libm.so.6", "libm.dylib"):
        with contextlib.suppress(OSError, AttributeError):
            return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value or 0
    return 0
