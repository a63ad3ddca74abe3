"""A large straight-line program divided among workers that compute it together, in stages.

A GPU's thread has 255 registers. A program with more values alive at once is computed by several warps, each for the
same states: a warp computes a part of the values and passes what others need through memory that they share. Between
stages all wait for each other, so a value can be read by others one stage after it was computed. No value is computed
twice.

Who computes a value is decided in two steps. A greedy schedule shares out the work evenly over time; then values move
to other workers as long as fewer of them have to be passed on (the moves of Fiduccia and Mattheyses, *A linear-time
heuristic for improving network partitions*, 1982), with the work of every stretch of time kept even. From the owners
follow the stages: as few as the longest chain of exchanges needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

_PASSES = 6  # of moves; later ones find next to nothing
_FRUITLESS = 400  # moves without a gain after which a pass ends
_BANDS = 8  # stretches of time in which the work is even
_SLACK = 1.15  # and by how much it may differ from that
_TARGET = 60  # work of one worker in a stage of the greedy schedule
_MANY_USERS = 40  # of a value whose users are not looked at again after every move


@dataclass(frozen=True)
class Work:
    """A program as numbers, arguments first: what each value needs, and what it costs."""

    uses: Sequence[Sequence[int]]
    cost: Sequence[int]

    def users(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.uses]
        for value, used in enumerate(self.uses):
            for a in used:
                found[a].append(value)
        return found


@dataclass(frozen=True)
class Division:
    """For each value the worker that computes it, and when."""

    workers: int
    owner: Sequence[int]
    stage: Sequence[int]

    @property
    def stages(self) -> int:
        return 1 + max(self.stage, default=0)


def divisions(work: Work, workers: int) -> tuple[Division, Division]:
    """The work shared out among so many workers: with every value computed as early, and as late as the work of the
    stages allows."""
    users = work.users()
    owner, time = _evenly(work, users, workers)
    owner = _Moves(work, users, owner, time, workers).improved()
    early = _staged(work, users, owner, workers)
    # the latest stages are the earliest of the same work from the end to the beginning
    last = len(owner) - 1
    mirrored = [[last - user for user in users[value]] for value in reversed(range(len(owner)))]
    back = Work(mirrored, work.cost[::-1])
    late = _staged(back, back.users(), owner[::-1], workers)[::-1]
    stages = max(late, default=0)
    return Division(workers, owner, early), Division(workers, owner, [stages - at for at in late])


# -- a first division -------------------------------------------------------------------------------------------------


def _evenly(work: Work, users: list[list[int]], workers: int) -> tuple[list[int], list[int]]:
    """(owner, stage) of a greedy schedule: the worker with the least to do takes the value that it can compute best.

    Preferred are values at the beginning of long chains, and those whose arguments the worker has.
    """
    uses, cost, count = work.uses, work.cost, len(work.uses)
    chain = _chains(work, users)
    owner, stage = [-1] * count, [-1] * count
    missing = [len(u) for u in uses]
    known = {value for value in range(count) if not uses[value]}  # can be computed by anyone
    fetched: list[set[int]] = [set() for _ in range(workers)]
    longest = max(chain, default=1)

    def merit(value: int, worker: int) -> float:
        here = sum(1 if owner[a] == worker else 0 if a in fetched[worker] else -1 for a in uses[value])
        beside = 0.0
        for user in users[value][:6]:
            for a in uses[user]:
                if a != value and owner[a] >= 0:
                    beside += 1.0 if owner[a] == worker else -0.5
        return 4.0 * chain[value] / longest + here + beside / (1 + len(users[value]))

    number = 0
    while known:
        load, own, taken = [0] * workers, [set[int]() for _ in range(workers)], list[int]()
        active = set(range(workers))
        while active:
            worker = min(active, key=lambda w: (load[w], w))
            if load[worker] >= _TARGET:
                break
            best = max((*own[worker], *known), key=lambda value: (merit(value, worker), -value), default=None)
            if best is None:
                active.discard(worker)
                continue
            known.discard(best)
            own[worker].discard(best)
            owner[best], stage[best] = worker, number
            load[worker] += cost[best]
            taken.append(best)
            fetched[worker].update(a for a in uses[best] if owner[a] != worker)
            for user in users[best]:
                missing[user] -= 1
                if not missing[user] and all(owner[a] == worker or stage[a] < number for a in uses[user]):
                    own[worker].add(user)
        known.update(*own)
        known.update(u for value in taken for u in users[value] if owner[u] < 0 and not missing[u])
        number += 1
    return owner, stage


def _chains(work: Work, users: list[list[int]]) -> list[int]:
    """For each value the cost of the longest chain that starts with it."""
    chain = [0] * len(work.uses)
    for value in reversed(range(len(chain))):
        chain[value] = work.cost[value] + max((chain[user] for user in users[value]), default=0)
    return chain


# -- fewer exchanges --------------------------------------------------------------------------------------------------


class _Moves:
    """Values change their owner, so that fewer are stored for others and loaded."""

    def __init__(self, work: Work, users: list[list[int]], owner: list[int], time: list[int], workers: int):
        self.work, self.users, self.owner, self.workers = work, users, owner, workers
        last = 1 + max(time, default=0)
        self.band = [at * _BANDS // last for at in time]
        self.load = [[0] * _BANDS for _ in range(workers)]
        self.readers = [[0] * workers for _ in owner]  # how many users of a value each worker has
        for value, mine in enumerate(owner):
            self.load[mine][self.band[value]] += work.cost[value]
            for a in work.uses[value]:
                self.readers[a][mine] += 1
        totals = [sum(load[band] for load in self.load) for band in range(_BANDS)]
        self.most = [_SLACK * total / workers + 4 for total in totals]

    def improved(self) -> list[int]:
        for _ in range(_PASSES):
            if not self._pass():
                break
        return self.owner

    def _price(self, value: int, owner: int) -> int:
        """Stores and loads that a value costs."""
        others = sum(1 for worker, count in enumerate(self.readers[value]) if count and worker != owner)
        return others + 1 if others else 0

    def _best(self, value: int) -> tuple[int, int] | None:
        """(gain, new owner) of the best move of a value."""
        mine, band, cost = self.owner[value], self.band[value], self.work.cost[value]
        best: tuple[int, int] | None = None
        for worker in range(self.workers):
            if worker == mine or self.load[worker][band] + cost > self.most[band]:
                continue
            gain = self._price(value, mine) - self._price(value, worker)
            for a in self.work.uses[value]:
                readers, before = self.readers[a], self._price(a, self.owner[a])
                readers[mine] -= 1
                readers[worker] += 1
                gain += before - self._price(a, self.owner[a])
                readers[mine] += 1
                readers[worker] -= 1
            if best is None or gain > best[0]:
                best = gain, worker
        return best

    def _move(self, value: int, worker: int) -> None:
        mine, band, cost = self.owner[value], self.band[value], self.work.cost[value]
        self.owner[value] = worker
        self.load[mine][band] -= cost
        self.load[worker][band] += cost
        for a in self.work.uses[value]:
            self.readers[a][mine] -= 1
            self.readers[a][worker] += 1

    def _near(self, value: int) -> set[int]:
        """Values whose gain a move may change."""
        near = set(self.users[value])
        for a in self.work.uses[value]:
            near.add(a)
            if len(self.users[a]) < _MANY_USERS:
                near.update(self.users[a])
        for user in self.users[value]:
            near.update(self.work.uses[user])
        return near

    def _pass(self) -> bool:
        """Every value moves at most once, the best first; kept are the moves up to the least that was reached."""
        known = {value: best for value in range(len(self.owner)) if (best := self._best(value)) is not None}
        heap = [(-gain, value) for value, (gain, _) in known.items()]
        heapify(heap)
        moved: dict[int, int] = {}  # with the owner before
        total = most = kept = 0
        while heap and len(moved) - kept < _FRUITLESS:
            gain, value = heappop(heap)
            if value in moved or (best := self._best(value)) is None:
                continue
            if best[0] < -gain:  # has become worse since
                heappush(heap, (-best[0], value))
                known[value] = best
                continue
            moved[value] = self.owner[value]
            self._move(value, best[1])
            total += best[0]
            if total > most:
                most, kept = total, len(moved)
            for other in self._near(value) - moved.keys():
                best = self._best(other)
                if best is not None and best != known.get(other):
                    known[other] = best
                    heappush(heap, (-best[0], other))
        for value, before in list(moved.items())[: kept - 1 if kept else None : -1]:
            self._move(value, before)
        return most > 0


# -- stages -----------------------------------------------------------------------------------------------------------


def _staged(work: Work, users: list[list[int]], owner: list[int], workers: int) -> list[int]:
    """The stage of each value: as few stages as its owners allow, with the work of a stage shared out evenly.

    Values that can wait are computed as early as the worker has time, in the order of the program, which keeps few
    values alive.
    """
    uses, cost, count = work.uses, work.cost, len(owner)
    first = [0] * count
    for value in range(count):
        first[value] = max((first[a] + (owner[a] != owner[value]) for a in uses[value]), default=0)
    stages = 1 + max(first, default=0)
    last = [stages - 1] * count
    for value in reversed(range(count)):
        last[value] = min((last[u] - (owner[u] != owner[value]) for u in users[value]), default=stages - 1)
    stage = [-1] * count
    pending = [[value for value in range(count) if owner[value] == worker] for worker in range(workers)]
    left = [_sum(cost, mine) for mine in pending]
    for number in range(stages):
        must = [_sum(cost, (value for value in mine if last[value] <= number)) for mine in pending]
        target = max(*must, max(left) / (stages - number), 0)
        for worker, mine in enumerate(pending):
            spare = target - must[worker]
            for value in mine:
                if any(stage[a] < 0 or (owner[a] != worker and stage[a] == number) for a in uses[value]):
                    continue
                waits = last[value] > number
                if waits and spare < cost[value]:
                    continue
                spare -= cost[value] if waits else 0
                stage[value] = number
                left[worker] -= cost[value]
            pending[worker] = [value for value in mine if stage[value] < 0]
    return stage


def _sum(cost: Sequence[int], values: Iterable[int]) -> int:
    return sum(cost[value] for value in values)
