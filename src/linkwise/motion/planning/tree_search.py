"""The search for a path, in the subset of Python that ``compiler.emit.routines`` turns into machine code.

RRT-Connect (Kuffner and LaValle 2000): two trees, from the start and from the goals. In each round the smaller tree
grows by one step towards a random position, then the other one grows towards the new node until it reaches it or
something is in the way. Edges are checked in groups of 16 positions that are spread over the edge, so that what is in
the way is found early. Random numbers are functions of a seed and a counter.

``p`` is the address of words of 64 bits, ``Words``.
"""

from __future__ import annotations

from linkwise.compiler.entry.operations import call, load, store
from linkwise.motion.planning.operations import (
    any_hit,
    between,
    blocks_between,
    copy_row,
    draw,
    fill,
    get_node,
    nearest,
    set_node,
    steer,
)


class Words:
    """Places of the words, in bytes."""

    validity = 0  # address of the code that checks 16 positions
    arguments = 8  # of that code
    scratch = 16
    positions = 24  # where it reads them: 16 rows
    collides = 32  # where it writes 16 numbers
    n = 40  # coordinates of a position
    settings = 48  # longest step, then groups of positions that a unit of each coordinate needs
    lower = 56  # of random positions
    extent = 64
    seed = 72
    rounds = 80  # at most
    capacity = 88  # nodes of a tree
    trees = 96  # two addresses: positions
    parents = 112  # two addresses: numbers of parents, −1 for roots
    counts = 128  # nodes of both trees
    room = 144  # for four positions
    ends = 152  # two numbers: the nodes at which the trees meet
    used = 168  # rounds so far
    groups = 176  # groups of positions checked so far
    path = 184  # address of way-points
    points = 192  # their number
    passes = 200  # over the corners of a path
    path_room = 208  # for as many way-points


def is_free(p: int, start: int, end: int) -> int:
    """Whether no position of an edge collides; the start is not checked."""
    n = load(p + Words.n)
    blocks = blocks_between(start, end, n, load(p + Words.settings))
    k = blocks
    while k > 0:
        k -= 1
        fill(load(p + Words.positions), start, end, n, k, blocks)
        store(p + Words.groups, load(p + Words.groups) + 1)
        call(load(p + Words.validity), 0, 16, load(p + Words.arguments), load(p + Words.scratch))
        if any_hit(load(p + Words.collides)):
            return 0
    return 1


def add(p: int, side: int, q: int, parent: int) -> int:
    """The number of a new node."""
    number = load(p + Words.counts + 8 * side)
    set_node(load(p + Words.trees + 8 * side), load(p + Words.n), number, q)
    store(load(p + Words.parents + 8 * side) + 8 * number, parent)
    store(p + Words.counts + 8 * side, number + 1)
    return number


def connect(p: int, side: int, new: int, near: int, step: int) -> int:
    """Grow a tree to a position until it is reached: the number of the node next to it; −1 if it is not reached."""
    n = load(p + Words.n)
    number = nearest(load(p + Words.trees + 8 * side), load(p + Words.counts + 8 * side), n, new)
    while load(p + Words.counts + 8 * side) < load(p + Words.capacity):
        get_node(load(p + Words.trees + 8 * side), n, number, near)
        reached = steer(near, new, n, load(p + Words.settings), step)
        if is_free(p, near, step) == 0:
            return 0 - 1
        if reached:
            return number
        number = add(p, side, step, number)
    return 0 - 1


def plan_tree(p: int) -> int:
    """1 if the trees meet, 0 if not after all rounds or where a tree is full."""
    n = load(p + Words.n)
    sample = load(p + Words.room)
    near = sample + 4 * n
    new = near + 4 * n
    step = new + 4 * n
    turn = load(p + Words.used)
    while turn < load(p + Words.rounds):
        turn += 1
        store(p + Words.used, turn)
        side = 0 if load(p + Words.counts) <= load(p + Words.counts + 8) else 1
        if load(p + Words.counts + 8 * side) >= load(p + Words.capacity):
            return 0
        draw(load(p + Words.seed), turn, n, load(p + Words.lower), load(p + Words.extent), sample)
        number = nearest(load(p + Words.trees + 8 * side), load(p + Words.counts + 8 * side), n, sample)
        get_node(load(p + Words.trees + 8 * side), n, number, near)
        steer(near, sample, n, load(p + Words.settings), new)
        if is_free(p, near, new):
            mine = add(p, side, new, number)
            other = connect(p, 1 - side, new, near, step)
            if other >= 0:
                store(p + Words.ends + 8 * side, mine)
                store(p + Words.ends + 8 * (1 - side), other)
                return 1
    return 0


def check_path(p: int) -> int:
    """The number of the first edge of the path that is not free; −1 if all are."""
    n = load(p + Words.n)
    path = load(p + Words.path)
    for k in range(load(p + Words.points) - 1):
        if is_free(p, path + 4 * n * k, path + 4 * n * (k + 1)) == 0:
            return k
    return 0 - 1


def skip_points(p: int) -> int:
    """Leave out way-points: from each one go to the last one that can be reached on a straight line."""
    n = load(p + Words.n)
    path = load(p + Words.path)
    count = load(p + Words.points)
    left = 1
    here = 0
    while here < count - 1:
        there = count - 1
        while there > here + 1 and is_free(p, path + 4 * n * here, path + 4 * n * there) == 0:
            there -= 1
        copy_row(path + 4 * n * left, path + 4 * n * there, n)
        here = there
        left += 1
    store(p + Words.points, left)
    return left


def cut_off(p: int, k: int, sixteenths: int) -> int:
    """Replace a way-point by one on each of its edges, as far from it, where the line between them is free."""
    n = load(p + Words.n)
    size = 4 * n
    corner = load(p + Words.path) + size * k
    one = load(p + Words.room)
    two = one + size
    between(corner, corner - size, n, sixteenths, one)
    between(corner, corner + size, n, sixteenths, two)
    if is_free(p, one, two) == 0:
        return 0
    count = load(p + Words.points)
    last = count
    while last > k + 1:
        copy_row(load(p + Words.path) + size * last, load(p + Words.path) + size * (last - 1), n)
        last -= 1
    copy_row(corner, one, n)
    copy_row(corner + size, two, n)
    store(p + Words.points, count + 1)
    return 1


def cut_corners(p: int) -> int:
    """Cut off every corner: half of its edges, or else a quarter or an eighth."""
    k = 1
    while k < load(p + Words.points) - 1 and load(p + Words.points) < load(p + Words.path_room):
        sixteenths = 8
        while sixteenths > 1:
            if cut_off(p, k, sixteenths):
                sixteenths = 0
                k += 1
            sixteenths = sixteenths // 2
        k += 1
    return 0


def shorten_path(p: int) -> int:
    """Shortcuts; the number of way-points that are left. The path must have room for one more than it has.

    Corners are cut off at fixed places: a pass costs a check or two for each, and random places need several times as
    many checks for a path of the same length.
    """
    skip_points(p)
    turn = 0
    while turn < load(p + Words.passes) and load(p + Words.points) > 2:
        turn += 1
        cut_corners(p)
        skip_points(p)
    return load(p + Words.points)
