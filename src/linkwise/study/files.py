"""Files that appear whole or not at all, and survive a loss of power once they have appeared."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_ASIDE = ".aside-"


class Aside:
    """A file that is being written beside its place; ``put`` moves it there, ``drop`` leaves nothing behind."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._aside = path.with_name(f"{_ASIDE}{path.name}-{os.getpid()}-{os.urandom(6).hex()}")
        self._file = self._aside.open("wb")
        self._size = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._size += len(data)

    def put(self) -> int:
        """Make it durable and put it in its place; the number of its bytes."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._aside.replace(self._path)
        return self._size

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._aside.unlink()


def write(path: Path, data: bytes) -> int:
    """A whole file at once; the number of its bytes."""
    aside = Aside(path)
    try:
        aside.write(data)
        return aside.put()
    except BaseException:
        aside.drop()
        raise


def sweep(folder: Path) -> None:
    """Remove what writers left that died before they were done; those of Zarr's library too."""
    for here, _, names in os.walk(folder):
        for name in names:
            if name.startswith(_ASIDE) or name.endswith(".partial"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(here, name))
