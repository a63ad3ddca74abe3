"""Work divided among workers: every value once, in time for those who need it, evenly, and with few exchanges."""

import random

import pytest

from linkwise.compiler.ir import partition
from linkwise.compiler.ir.partition import Work, divisions


def made(count: int = 400, seed: int = 1) -> Work:
    """Some independent columns that begin with common values, as derivatives do."""
    generator = random.Random(seed)
    uses: list[tuple[int, ...]] = []
    columns: list[list[int]] = [[] for _ in range(8)]
    for value in range(count):
        if value < 20:
            uses.append(tuple(range(max(0, value - 2), value)))
            continue
        column = columns[value % 8]
        near = column[-2:] or [19]
        uses.append((*dict.fromkeys((near[0], near[-1], generator.randrange(20))),))
        column.append(value)
    return Work(uses, [1 + 9 * (value % 50 == 0) for value in range(count)])


@pytest.mark.parametrize("workers", [2, 3, 4])
@pytest.mark.parametrize("late", [False, True])
def test_arguments_are_there_in_time(workers, late):
    work = made()
    division = divisions(work, workers)[late]
    assert set(division.owner) == set(range(workers))
    for value, used in enumerate(work.uses):
        for a in used:
            own = division.owner[a] == division.owner[value]
            assert division.stage[a] < division.stage[value] + own


@pytest.mark.parametrize("workers", [2, 4])
def test_work_is_even(workers):
    work = made()
    for division in divisions(work, workers):
        load = [0] * workers
        for value, owner in enumerate(division.owner):
            load[owner] += work.cost[value]
        assert max(load) < 1.25 * sum(load) / workers


def test_late_is_later():
    work = made()
    early, late = divisions(work, 2)
    assert early.stages == late.stages
    assert sum(late.stage) > sum(early.stage)


def exchanges(work: Work, owner) -> int:
    """Pairs of a value and another worker that reads it."""
    return len({(a, owner[v]) for v, used in enumerate(work.uses) for a in used if owner[a] != owner[v]})


def test_moves_save_exchanges():
    """From owners drawn at random; the work of every stretch of time stays even."""
    work, generator = made(), random.Random(2)
    count = len(work.uses)
    owner = [generator.randrange(4) for _ in range(count)]
    before = exchanges(work, owner)
    found = partition._Moves(work, work.users(), list(owner), list(range(count)), 4).improved()
    assert exchanges(work, found) < 0.5 * before
    load = [sum(c for c, who in zip(work.cost, found, strict=True) if who == worker) for worker in range(4)]
    assert max(load) < 1.35 * sum(load) / 4


def test_nothing_to_do():
    early, late = divisions(Work([], []), 2)
    assert early.stages == late.stages == 1
