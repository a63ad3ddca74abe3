"""Files of packages that are the same for all robots."""

from __future__ import annotations

from importlib import resources


def support_file(name: str, part: str = "linkwise.embedded") -> str:
    """The text of a file that is the same for all robots.

    Args:
        name: of the file.
        part: the package whose folder ``files`` has it.
    """
    return resources.files(part).joinpath("files", name).read_text(encoding="utf-8")
