"""Files that a command is going to write: checked before long work, written whole or not at all."""

from __future__ import annotations

from pathlib import Path


def check_folders(*targets: str | None) -> None:
    """An error now, instead of after minutes of work, where the folder of a file does not exist."""
    for target in targets:
        if target is None:
            continue
        folder = Path(target).parent
        if not folder.is_dir():
            raise FileNotFoundError(2, "no such folder", str(folder))
        if Path(target).is_dir():
            raise IsADirectoryError(21, "a folder; expected the name of a file", target)
