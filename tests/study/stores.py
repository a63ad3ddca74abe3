"""A small study, and a look at every byte of a store."""

from __future__ import annotations

import os
from pathlib import Path

SMALL = {
    "robot": "two_link",
    "seed": 3,
    "samples": 40_000,
    "chunk": 8192,
    "vary": {
        "q": {"uniform": [-3.0, 3.0]},
        "qd": {"normal": [0.0, 1.0]},
        "payload.mass": {"grid": [0.0, 2.0]},
    },
    "compute": {
        "tau": {"function": "inverse_dynamics", "inputs": {"qdd": 0.0}},
        "load": "max(abs(tau))",
    },
    "keep": {
        "tau": {"raw": True, "statistics": ["count", "mean", "variance", "min", "max"], "quantiles": [0.5]},
        "load": {"statistics": ["mean", "max"], "over": "sample"},
    },
    "failures": {"heavy": "load > 40"},
}


def contents(path: Path) -> dict[str, bytes]:
    """Every file of a store and its bytes."""
    return {
        os.path.relpath(os.path.join(folder, name), path): (Path(folder) / name).read_bytes()
        for folder, _, names in os.walk(path)
        for name in names
    }
