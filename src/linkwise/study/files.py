"""Files that appear whole or not at all, and survive a loss of power once they have appeared."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_ASIDE = ".aside-"


def write(path: Path, data: bytes) -> int:
    """Write a file aside, make it durable, put it in its place; the number of its bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{_ASIDE}{path.name}-{os.getpid()}-{os.urandom(6).hex()}")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise
    return len(data)


def sweep(folder: Path) -> None:
    """Remove what writers left that died before they were done; those of Zarr's library too."""
    for here, _, names in os.walk(folder):
        for name in names:
            if name.startswith(_ASIDE) or name.endswith(".partial"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(here, name))
