"""The two ways to go over the links of a robot, and what is done for all links in any order.

Every algorithm is written with these methods, so that loops over links can take their place (see ``functions.swept``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from linkwise.core import scan_order

if TYPE_CHECKING:
    from linkwise.model.axes import JointValue
    from linkwise.model.mechanism import MovingLink as Link
    from linkwise.model.mechanism import Turned


Value = TypeVar("Value")
Element = TypeVar("Element")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


class Traversal:
    """Goes over moving links, parents before children or the other way round."""

    links: tuple[Link, ...]

    def outward(self, step: Callable[..., Value], root: Any, *per_link: Sequence[Any]) -> list[Value]:
        """From the base to the tips: value[k] = step(link k, value of its parent (or root), *per_link of k)."""
        values: list[Any] = []
        for link, *own in zip(self.links, *per_link, strict=True):
            values.append(step(link, root if link.parent < 0 else values[link.parent], *own))
        return values

    def inward(
        self, step: Callable[..., tuple[Value, Any]], zero: Any, *per_link: Sequence[Any]
    ) -> list[Value]:
        """From tips to base: value[k], carried = step(link k, sum of its children's carried, *per_link of k)."""
        received: list[Any] = [None] * len(self.links)
        values: list[Any] = [None] * len(self.links)
        for link, *own in reversed(list(zip(self.links, *per_link, strict=True))):
            k = link.index
            values[k], carried = step(link, zero if received[k] is None else received[k], *own)
            if link.parent >= 0:
                known = received[link.parent]
                received[link.parent] = carried if known is None else known + carried
        return values

    @overload
    def each(self, step: Callable[[Link, A], Value], a: Sequence[A], /) -> list[Value]: ...
    @overload
    def each(self, step: Callable[[Link, A, B], Value], a: Sequence[A], b: Sequence[B], /) -> list[Value]: ...
    @overload
    def each(
        self, step: Callable[[Link, A, B, C], Value], a: Sequence[A], b: Sequence[B], c: Sequence[C], /
    ) -> list[Value]: ...
    @overload
    def each(self, step: Callable[..., Value], /, *per_link: Sequence[Any]) -> list[Value]: ...
    def each(self, step: Callable[..., Any], *per_link: Sequence[Any]) -> list[Any]:
        """value[k] = step(link k, *per_link of k): no order needed."""
        return [step(link, *own) for link, *own in zip(self.links, *per_link, strict=True)]

    def turned(self, q: Sequence[JointValue]) -> list[Turned]:
        """Where every joint is, see ``MovingLink.turned``."""
        return self.each(lambda link, q: link.turned(q), q)

    def scan(
        self,
        join: Callable[[Element, Element], Element],
        apply: Callable[[Value, Element], Value],
        start: Value,
        elements: Sequence[Element],
        inward: bool = False,
    ) -> list[Value]:
        """What the elements of all links before each link do to the start, in logarithmic depth; for chains.

        Links are taken from the base, or ``inward`` from the tip. ``join(first, second)`` is an element that does what
        both do, one after the other; ``apply(known, element)`` does it.
        """
        last = len(self.links) - 1

        def row(i: int) -> int:
            return last - i if inward else i

        runs = list(elements)
        for level in scan_order.joins(len(self.links)):
            for left, right in level:
                runs[row(right)] = join(runs[row(left)], runs[row(right)])
        known = {scan_order.START: start}
        for level in scan_order.applications(len(self.links)):
            for left, right in level:
                known[right] = apply(known[left], runs[row(right)])
        return [known[row(k) - 1] for k in range(len(self.links))]
