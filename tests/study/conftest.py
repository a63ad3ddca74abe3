"""Small studies, and a look at every byte of a store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import linkwise as lw


def contents(path: Path) -> dict[str, bytes]:
    """Every file of a store and its bytes."""
    return {
        os.path.relpath(os.path.join(folder, name), path): (Path(folder) / name).read_bytes()
        for folder, _, names in os.walk(path)
        for name in names
    }


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
        "load": {"statistics": ["mean", "max"], "over": "sample", "quantiles": []},
    },
    "failures": {"heavy": "load > 60"},
}
SMALL["keep"]["load"].pop("quantiles")


@pytest.fixture
def small():
    """The tables of a small study; change them freely."""
    import copy

    return copy.deepcopy(SMALL)


@pytest.fixture
def run(tmp_path):
    """Run tables into a folder of their own: ``run(tables, threads=2)`` gives the results."""
    count = iter(range(1000))

    def go(tables, **options):
        options.setdefault("threads", 2)
        return lw.study(tables).run(tmp_path / f"store{next(count)}", progress=False, **options)

    return go
