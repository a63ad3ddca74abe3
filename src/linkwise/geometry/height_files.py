"""Height fields of MJCF files: numbers in the file itself, PNG images, and MuJoCo's binary files.

As in MuJoCo, numbers are scaled so that the lowest is 0 and the highest the elevation of the field. The first row of
images and of numbers in the file is that of the largest y, of binary files that of the smallest.
"""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from linkwise.errors import ModelError
from linkwise.formats.xml import Element
from linkwise.geometry.mesh_files import find_mesh
from linkwise.model.shapes import MOST_HEIGHTS

MAX_BYTES = 16 * 1024 * 1024
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Numbers of a pixel, by the colour type of PNG: grey, RGB, grey and alpha, RGB and alpha."""


def height_field(
    asset: Element, folder: str, roots: Sequence[Path]
) -> tuple[np.ndarray, tuple[float, float], str]:
    """(heights [m] along x first, extent along x and y [m], what is said about them).

    Args:
        asset: the element <hfield>.
        folder: of assets, as the file says.
        roots: folders inside which files are searched.
    """
    width, depth, elevation, _ = asset.numbers("size", 4)
    rows, columns = asset.integer("nrow", 0), asset.integer("ncol", 0)
    if "file" in asset.attrib:
        data = _from_file(asset, str(PurePosixPath(folder) / asset.text_of("file")), roots)
    elif "elevation" in asset.attrib:
        data = np.array(asset.numbers("elevation", rows * columns)).reshape(rows, columns)[::-1]
    else:
        raise asset.error("a height field without elevation= and file= has no heights")
    if min(data.shape) < 2:
        raise asset.error(f"expected at least two rows and columns, got {data.shape}")
    low, high = float(data.min()), float(data.max())
    heights = elevation * ((data - low) / (high - low) if high > low else np.zeros(data.shape)).T
    note = "heights between grid points are bilinear, MuJoCo's are two triangles"
    if heights.size > MOST_HEIGHTS:
        before, heights = heights.shape, _coarser(heights)
        note = (
            f"{heights.shape[0]} × {heights.shape[1]} of {before[0]} × {before[1]} heights are taken; {note}"
        )
    return heights, (2.0 * width, 2.0 * depth), note


def _coarser(heights: np.ndarray) -> np.ndarray:
    """Heights on a coarser grid of the same extent, linear between those that are given."""
    scale = (MOST_HEIGHTS / heights.size) ** 0.5
    for axis in (0, 1):
        count = heights.shape[axis]
        at = np.linspace(0.0, count - 1.0, max(int(scale * count), 2))
        low = np.minimum(at.astype(int), count - 2)
        part = (at - low)[:, None] if axis == 0 else (at - low)[None]
        heights = (1.0 - part) * heights.take(low, axis) + part * heights.take(low + 1, axis)
    return heights


def _from_file(asset: Element, name: str, roots: Sequence[Path]) -> np.ndarray:
    path = find_mesh(name, roots)
    if path is None:
        raise asset.error(f"{name}: no such file inside {' or '.join(map(str, roots))}")
    info = path.stat()
    if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES:
        raise ModelError(f"{path}: not a regular file of at most {MAX_BYTES} bytes")
    data = path.read_bytes()
    try:
        return _png(data)[::-1] if data.startswith(b"\x89PNG") else _binary(data)
    except (ValueError, struct.error, zlib.error) as error:
        raise ModelError(f"{path}: {error}") from None


def _binary(data: bytes) -> np.ndarray:
    """MuJoCo's own format: two integers of four bytes, rows and columns, then as many single floats."""
    rows, columns = struct.unpack_from("<ii", data)
    if rows < 1 or columns < 1 or len(data) != 8 + 4 * rows * columns:
        raise ValueError(f"not a PNG image, nor rows, columns and as many heights: {len(data)} bytes")
    heights = np.frombuffer(data, "<f4", offset=8).astype(float).reshape(rows, columns)
    if not np.isfinite(heights).all():
        raise ValueError("a height is not finite")
    return heights


def _png(data: bytes) -> np.ndarray:
    """The first channel of an image with 8 or 16 bits and no interlacing."""
    packed, header, at = b"", None, 8
    while at + 8 <= len(data):
        (length,), kind = struct.unpack_from(">I", data, at), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        header = struct.unpack(">IIBBBBB", body) if kind == b"IHDR" else header
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    if header is None:
        raise ValueError("an image without a header")
    columns, rows, bits, colour, _, _, interlaced = header
    if bits not in (8, 16) or colour not in _CHANNELS or interlaced:
        raise ValueError("expected a grey or RGB image of 8 or 16 bits without interlacing")
    pixel = _CHANNELS[colour] * bits // 8
    width = columns * pixel
    if not 0 < rows * (width + 1) <= MAX_BYTES:
        raise ValueError(f"an image of {columns} × {rows} pixels is too large")
    unpacked = zlib.decompressobj().decompress(packed, rows * (width + 1))
    lines = np.frombuffer(unpacked, np.uint8)
    if lines.size != rows * (width + 1):
        raise ValueError("the image ends too early")
    image = _unfiltered(lines.reshape(rows, width + 1), pixel)
    pixels = image.reshape(rows, columns, pixel).astype(float)
    return pixels[..., 0] if bits == 8 else 256.0 * pixels[..., 0] + pixels[..., 1]


def _unfiltered(lines: np.ndarray, pixel: int) -> np.ndarray:
    """Bytes of an image from those of PNG, which are differences to the left, above, or both."""
    rows, width = lines.shape[0], lines.shape[1] - 1
    above, found = [0] * width, np.zeros((rows, width), np.uint8)
    for row in range(rows):
        kind, own = int(lines[row, 0]), lines[row, 1:].tolist()
        for k in range(width):
            a = own[k - pixel] if k >= pixel else 0
            b, c = above[k], above[k - pixel] if k >= pixel else 0
            own[k] = (own[k] + _predicted(kind, a, b, c)) & 255
        found[row], above = own, own
    return found


def _predicted(kind: int, a: int, b: int, c: int) -> int:
    """From the byte to the left, above, and above the left one."""
    if kind == 4:
        errors = abs(b - c), abs(a - c), abs(a + b - 2 * c)
        return (a, b, c)[errors.index(min(errors))]
    if kind > 4:
        raise ValueError(f"a line of the image has the unknown filter {kind}")
    return (0, a, b, (a + b) // 2)[kind]
