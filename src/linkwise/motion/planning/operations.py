"""What ``tree_search`` calls: functions on rows of single-precision numbers (``compiler.emit.tree_vectors``).

They exist in machine code only; addresses and whole numbers are words of 64 bits.
"""

from __future__ import annotations


def nearest(tree: int, count: int, n: int, q: int) -> int:
    """The number of the node that is nearest to q; the first one of several."""
    raise NotImplementedError


def get_node(tree: int, n: int, number: int, to: int) -> int:
    """Copy the position of a node."""
    raise NotImplementedError


def set_node(tree: int, n: int, number: int, q: int) -> int:
    """Store the position of a new node."""
    raise NotImplementedError


def steer(start: int, end: int, n: int, settings: int, to: int) -> int:
    """From one position towards another by at most the longest step; 1 if it is reached."""
    raise NotImplementedError


def blocks_between(start: int, end: int, n: int, settings: int) -> int:
    """Groups of 16 positions that an edge needs, from the motion of the robot along it."""
    raise NotImplementedError


def fill(to: int, start: int, end: int, n: int, block: int, blocks: int) -> int:
    """Write 16 positions along an edge: those of one group, which are spread over the whole edge."""
    raise NotImplementedError


def any_hit(values: int) -> int:
    """Whether any of 16 numbers is not 0."""
    raise NotImplementedError


def draw(seed: int, counter: int, n: int, lower: int, extent: int, to: int) -> int:
    """A random position, a function of seed and counter."""
    raise NotImplementedError


def between(start: int, end: int, n: int, sixteenths: int, to: int) -> int:
    """The point so many sixteenths of an edge from its start."""
    raise NotImplementedError


def copy_row(to: int, source: int, n: int) -> int:
    """Copy n numbers."""
    raise NotImplementedError
