"""Named arrays as bytes and back: what a worker sends and the journal keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


def packed(arrays: Arrays, facts: Mapping[str, Any]) -> bytes:
    """Arrays and facts (of JSON's types): a line of JSON, then the elements of the arrays."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in contiguous.items()]
    head = json.dumps({"facts": facts, "arrays": listed}).encode()
    return b"\n".join([head, b"".join(array.tobytes() for array in contiguous.values())])


def unpacked(data: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(arrays, facts)."""
    head, _, body = data.partition(b"\n")
    known = json.loads(head)
    arrays, place = {}, 0
    for name, dtype, shape in known["arrays"]:
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(body, kind, count, place).reshape(shape).copy()
        place += count * kind.itemsize
    return arrays, known["facts"]


def facts_of(data: bytes) -> dict[str, Any]:
    """The facts alone."""
    return json.loads(data[: data.index(b"\n")])["facts"]
