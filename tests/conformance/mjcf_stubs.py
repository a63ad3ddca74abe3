"""Copies of MJCF folders with small stand-ins for missing meshes and pictures, so that MuJoCo loads them."""

from __future__ import annotations

import re
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np

# a box that is not symmetric about its frame's origin
CORNERS = np.array([[x, y, z] for x in (-0.02, 0.05) for y in (-0.03, 0.04) for z in (-0.01, 0.06)])
FACES = [
    *((0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)),
    *((2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)),
]


def with_stubs(folder: Path, target: Path) -> Path:
    """A copy of the folder's XML files with stand-ins for all files that they name."""
    for path in folder.rglob("*.xml"):
        place = target / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    for path in target.rglob("*.xml"):
        text = re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL)
        folders = _folders(text, target)
        for tag, name in re.findall(r"<(mesh|texture|hfield|skin)\b[^>]*?\bfile\w*=\"([^\"]+)\"", text):
            for base in folders[tag]:
                _write(target / base / name)
    return target


def _folders(text: str, target: Path) -> dict[str, list[str]]:
    """Where files are looked for: the <compiler> may stand in any file of the folder."""
    all_text = "".join(
        re.sub(r"<!--.*?-->", "", p.read_text(), flags=re.DOTALL) for p in target.rglob("*.xml")
    )
    found = {}
    for tag, key in (
        ("mesh", "meshdir"),
        ("texture", "texturedir"),
        ("hfield", "assetdir"),
        ("skin", "assetdir"),
    ):
        names = re.findall(rf"\b(?:{key}|assetdir)=\"([^\"]*)\"", all_text)
        found[tag] = [*dict.fromkeys(names), "."]
    return found


def _write(path: Path) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = path.suffix.lower()
    if ending == ".png":
        path.write_bytes(_picture())
    elif ending == ".obj":
        lines = [f"v {x} {y} {z}" for x, y, z in CORNERS]
        lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in FACES]
        path.write_text("\n".join(lines) + "\n")
    elif ending == ".stl":
        data = struct.pack("<80xI", len(FACES))
        for face in FACES:
            data += (
                struct.pack("<3f", 0, 0, 0)
                + b"".join(struct.pack("<3f", *CORNERS[k]) for k in face)
                + b"\0\0"
            )
        path.write_bytes(data)


def _picture() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # six by eight pixels: a cube map may be cut into squares of a third or a quarter
    rows = b"".join(b"\0" + b"\x80" * 3 * 12 for _ in range(12))
    head = struct.pack(">IIBBBBB", 12, 12, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
