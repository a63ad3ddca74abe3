"""Faults for stores: flipped bits, and every state that a loss of power could leave behind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

TINY = {
    "robot": "two_link",
    "seed": 5,
    "samples": 300,
    "chunk": 128,
    "vary": {"q": {"uniform": [-3.0, 3.0]}, "payload.mass": {"grid": [0.0, 2.0]}},
    "compute": {"g": {"function": "gravity_torques"}, "load": "max(abs(g))"},
    "keep": {
        "g": {"raw": True, "statistics": ["count", "mean", "max"], "quantiles": [0.5]},
        "load": {"statistics": ["mean"], "over": "sample"},
    },
    "failures": {"heavy": "load > 30"},
}


def flips(store: Path, count: int, seed: int) -> Iterator[str]:
    """Flip one bit after the other, each at a random place of a random file (of a random byte of the store half of the
    time), and turn it back when the next one is asked for. Gives where it was."""
    choice = random.Random(seed)
    files = sorted(path for path in store.rglob("*") if path.is_file() and path.stat().st_size)
    sizes = [path.stat().st_size for path in files]
    for number in range(count):
        path = choice.choice(files) if number % 2 else choice.choices(files, sizes)[0]
        data = path.read_bytes()
        place, bit = choice.randrange(len(data)), choice.randrange(8)
        changed = bytearray(data)
        changed[place] ^= 1 << bit
        path.write_bytes(changed)
        yield f"{path.relative_to(store)}, byte {place}, bit {bit}"
        path.write_bytes(data)
