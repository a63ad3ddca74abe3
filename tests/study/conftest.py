"""Small studies to be changed and run."""

from __future__ import annotations

import copy

import pytest
from stores import SMALL

import linkwise as lw


@pytest.fixture
def small():
    """The tables of a small study; change them freely."""
    return copy.deepcopy(SMALL)


@pytest.fixture
def run(tmp_path):
    """Run tables into a folder of their own: ``run(tables, threads=2)`` gives the results."""
    count = iter(range(1000))

    def go(tables, **options):
        options.setdefault("threads", 2)
        return lw.study(tables).run(tmp_path / f"store{next(count)}", progress=False, **options)

    return go
