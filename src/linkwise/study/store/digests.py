"""What the bytes of a store should be: an entry for each file, and how a file is compared with it.

An entry is what JSON can hold: size and SHA-256 of a file, or for a shard of a raw array the length and the CRC-32C of
each of its pieces, from which its index follows. The CRC-32C of a whole shard would not do: every piece is followed by
its own checksum, and then the checksum of both does not depend on the piece.
"""

from __future__ import annotations

import functools
import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from linkwise.errors import LinkwiseError
from linkwise.study.errors import StudyError, needed

Entry = Mapping[str, Any]
Entries = Mapping[str, Entry]
"""By the name of the file in the store."""
NAME = "digests.json"
"""Where the entries of a complete store are."""
CHECKSUM_BYTES = 4


def of(data: bytes) -> Entry:
    """The entry of a whole file."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def checksum(data: bytes) -> int:
    """CRC-32C, as Zarr's codec of this name computes it."""
    return _crc32c()(data)


@functools.cache
def _crc32c() -> Callable[[bytes], int]:
    """The function that comes with Zarr: of google_crc32c from Zarr 3.1.4 on, of crc32c before."""
    try:
        return needed("google_crc32c").value
    except LinkwiseError:
        return needed("crc32c").crc32c


def behind(checksum: int) -> bytes:
    """A checksum as Zarr's codec crc32c writes it behind the bytes that it is of."""
    return struct.pack("<I", checksum)


def of_pieces(pieces: Sequence[tuple[int, int]], missing: int) -> Entry:
    """The entry of a shard: length and checksum of each piece, and how many are missing at its end."""
    return {"pieces": [list(piece) for piece in pieces], "missing": missing}


def index(lengths: Sequence[int], missing: int) -> bytes:
    """The index at the end of a shard: offset and length of every piece, and a checksum of that; of a missing piece
    all bits are set."""
    words, offset = [], 0
    for length in lengths:
        words += [offset, length]
        offset += length
    words += [(1 << 64) - 1] * (2 * missing)
    table = struct.pack(f"<{len(words)}Q", *words)
    return table + behind(checksum(table))


def size(entry: Entry) -> int:
    """Bytes of the file of an entry."""
    if "pieces" in entry:
        count = len(entry["pieces"]) + entry["missing"]
        return sum(length for length, _ in entry["pieces"]) + 16 * count + CHECKSUM_BYTES
    return entry["bytes"]


def problem(path: Path, entry: Entry) -> str | None:
    """How a file differs from its entry, in a few words; None: it does not."""
    try:
        present = path.stat().st_size
        if present != size(entry):
            return f"has {present} bytes instead of {size(entry)}"
        with path.open("rb") as file:
            if "pieces" in entry:
                return _problem_of_pieces(file, entry)
            if hashlib.file_digest(file, "sha256").hexdigest() != entry["sha256"]:
                return "has other bytes than were written"
    except (FileNotFoundError, NotADirectoryError):
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return None


def quick_problem(path: Path, entry: Entry) -> str | None:
    """How a file differs from its entry, without reading all of a shard: its size, its index, and the checksums
    behind its pieces. What reads a piece compares it with the checksum behind it."""
    if "pieces" not in entry:
        return problem(path, entry)
    try:
        present = path.stat().st_size
        if present != size(entry):
            return f"has {present} bytes instead of {size(entry)}"
        with path.open("rb", buffering=0) as file:
            end = 0
            for number, (length, expected) in enumerate(entry["pieces"]):
                end += length
                file.seek(end - CHECKSUM_BYTES)
                if file.read(CHECKSUM_BYTES) != behind(expected):
                    return f"has other bytes than were written in piece {number} of {len(entry['pieces'])}"
            if file.read() != index([length for length, _ in entry["pieces"]], entry["missing"]):
                return "has other bytes than were written in its index"
    except (FileNotFoundError, NotADirectoryError):
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return None


def _problem_of_pieces(file: Any, entry: Entry) -> str | None:
    pieces = entry["pieces"]
    for number, (length, expected) in enumerate(pieces):
        body, stored = file.read(length - CHECKSUM_BYTES), file.read(CHECKSUM_BYTES)
        if checksum(body) != expected or stored != behind(expected):
            return f"has other bytes than were written in piece {number} of {len(pieces)}"
    if file.read() != index([length for length, _ in pieces], entry["missing"]):
        return "has other bytes than were written in its index"
    return None


def text(entries: Entries) -> str:
    """The content of the file of entries, which begins with its own digest."""
    lines = (f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries))
    body = "{\n" + ",\n".join(lines) + "\n}"
    return f'{{"sha256": "{hashlib.sha256(body.encode()).hexdigest()}",\n"files": {body}}}\n'


def read(path: Path) -> dict[str, Entry]:
    """The entries of a complete store; a StudyError says that they cannot be trusted."""
    try:
        data = (path / NAME).read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: {NAME} cannot be read ({error.strerror or error})") from None
    try:
        entries = json.loads(data)["files"]
        if text(entries).encode() == data:
            return entries
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise StudyError(f"{path}: {NAME} has other bytes than were written")
