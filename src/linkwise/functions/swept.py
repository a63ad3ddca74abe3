"""A robot whose links are swept in loops: used by an algorithm in place of the list of links.

For the algorithm nothing changes: it goes outward and inward over ``links``. Here each step is traced once for all
links of a kind (revolute, prismatic, helical, ball, floating), with the constants that differ between links read from
a table. A ball or floating joint has several scalars of every input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from linkwise.algorithms import gravity_compensation
from linkwise.algorithms.manifold import position_rates
from linkwise.compiler.ir.structures import Rows
from linkwise.compiler.ir.sweeps import Array, Sweeper, SweptProgram
from linkwise.functions.table import POSITIONS
from linkwise.model.axes import MOVING_TYPES, joint_value
from linkwise.model.mechanism import Mechanism, MovingLink, Turn
from linkwise.model.transform import Transform
from linkwise.spatial import Matrix, RigidInertia, Symmetric, Vector


def _kind(link: MovingLink) -> str:
    """The first type of joints with the link's axes."""
    plain, screws = tuple(replace(axis, pitch=0.0) for axis in link.axes), link.axes[0].screws
    return next(name for name, kind in MOVING_TYPES.items() if kind.axes == plain and kind.screws == screws)


def _with_prepared_terms(link: MovingLink) -> MovingLink:
    """The link with numbers that the file gives in its own frame turned into the prepared frame."""
    law = gravity_compensation.LAW
    if law.absent(link):
        return link
    m, h = gravity_compensation.compensated(link)
    names = [parameter.name for parameter in law.parameters]
    return replace(link, terms={**link.terms, **dict(zip(names, (m, *h), strict=True))})


class _Fields:
    """Properties of the links of one kind, each as one value for all of them."""

    def __init__(self, links: Sequence[MovingLink], constant: Callable[[Sequence[float]], Any]):
        self.links, self.constant = links, constant

    def __call__(self, get: Callable[[MovingLink], Any]) -> Any:
        return self.constant([get(link) for link in self.links])

    def turn(self, get: Callable[[MovingLink], Turn]) -> Turn:
        return Turn(
            self(lambda link: get(link).angle),
            self(lambda link: get(link).c),
            self(lambda link: get(link).s),
        )

    def vector(self, get: Callable[[MovingLink], Vector]) -> Vector:
        return Vector(
            self(lambda link: get(link).x),
            self(lambda link: get(link).y),
            self(lambda link: get(link).z),
        )

    def second_moment(self) -> Symmetric:
        names = ("xx", "xy", "xz", "yy", "yz", "zz")
        return Symmetric(
            *(self(lambda link, name=name: getattr(link.inertia.second_moment, name)) for name in names)
        )

    def drag(self) -> tuple[tuple[Any, ...], ...]:
        """As many boxes and ellipsoids as some link has; those that a link has not are zeros."""
        rows: list[tuple[Any, ...]] = []
        own: list[list[Any]]
        for size in sorted({len(numbers) for link in self.links for numbers in link.drag}):
            own = [[numbers for numbers in link.drag if len(numbers) == size] for link in self.links]
            for place in range(max(map(len, own))):
                padded = [each[place] if place < len(each) else (0.0,) * size for each in own]
                rows.append(tuple(self.constant([row[k] for row in padded]) for k in range(size)))
        return tuple(rows)

    def orientation(self) -> Matrix | None:
        if self.links[0].orientation is None:
            return None
        return Matrix(*(self(lambda link, k=k: list(link.orientation or ())[k]) for k in range(9)))


class SweptLinks(Mechanism):
    """Records what an algorithm does with the links of a mechanism."""

    def __init__(self, mechanism: Mechanism):
        super().__init__(
            mechanism.name,
            mechanism.links,
            mechanism.gravity,
            mechanism.base,
            mechanism.original,
            mechanism.wind,
        )
        self._sweeper = Sweeper(
            [link.parent for link in mechanism],
            [_kind(link) for link in mechanism],
            self._row,
            joint_value,
            {_kind(link): len(link.axes) for link in mechanism},
        )
        self._velocities = {_kind(link): len(link.axes) for link in mechanism}
        self._positions = {_kind(link): len(link.axes) + link.free for link in mechanism}

    def outward(self, step: Callable[..., Any], root: Any, *per_link: Any) -> Any:
        return self._sweeper.outward(step, root, *per_link)

    def inward(self, step: Callable[..., tuple[Any, Any]], zero: Any, *per_link: Any) -> Any:
        return self._sweeper.inward(step, zero, *per_link)

    def each(self, step: Callable[..., Any], *per_link: Any) -> Any:
        return self._sweeper.each(step, *per_link)

    def scan(
        self,
        join: Callable[[Any, Any], Any],
        apply: Callable[[Any, Any], Any],
        start: Any,
        elements: Any,
        inward: bool = False,
    ) -> Any:
        return self._sweeper.scan(join, apply, start, elements, inward)

    def _row(
        self, kind: str, members: Sequence[int], constant: Callable[[Sequence[float]], Any]
    ) -> MovingLink:
        """One link that represents all of its kind."""
        links = [_with_prepared_terms(self.links[k]) for k in members]
        field = _Fields(links, constant)
        I, orientation = field.second_moment(), field.orientation()
        axes = MOVING_TYPES[kind].axes
        if MOVING_TYPES[kind].screws:
            axes = (replace(axes[0], pitch=field(lambda link: link.axes[0].pitch)),)
        return MovingLink(
            index=-1,
            parent=-1,
            children=(),
            joint_name=f"any {kind} joint",
            axes=axes,
            branch=field.turn(lambda link: link.branch),
            twist=field.turn(lambda link: link.twist),
            offset=field.turn(lambda link: link.offset),
            lever=field.vector(lambda link: link.lever),
            inertia=RigidInertia(
                field(lambda link: link.inertia.mass), field.vector(lambda link: link.inertia.first_moment), I
            ),
            rotor_inertia=field(lambda link: link.rotor_inertia),
            viscous_friction=field(lambda link: link.viscous_friction),
            coulomb_friction=(
                field(lambda link: link.coulomb_friction[0]),
                field(lambda link: link.coulomb_friction[1]),
            ),
            file_frame=Transform.identity(),  # see _with_prepared_terms
            parameter_frame=Transform.identity(),  # not used by sweeps
            orientation=orientation,
            drag=field.drag(),
            terms={
                name: field(lambda link, name=name: link.terms.get(name, 0.0))
                for name in dict.fromkeys(name for link in links for name in link.terms)
            },
        )

    def program(
        self,
        name: str,
        function: Callable[..., Any],
        inputs: Sequence[str],
        outputs: Sequence[str],
        dtype: str,
        derivatives: bool = False,
    ) -> SweptProgram:
        """Trace ``function(links, **inputs)``, which gives one value per link.

        With ``derivatives`` the outputs are the derivatives by each of the inputs, matrices; else there is one output.
        """
        kinds = [_kind(link) for link in self.links]
        sizes = {key: self._positions if key in POSITIONS else self._velocities for key in inputs}
        layouts = {key: Rows.of([sizes[key][kind] for kind in kinds]) for key in inputs}
        result = function(self, **{key: Array(0.0, given=key, sizes=sizes[key]) for key in inputs})
        found = self._sweeper.differentiated(result, inputs, _along) if derivatives else [result]
        return self._sweeper.program(
            name,
            {key: layout.total for key, layout in layouts.items()},
            dict(zip(outputs, found, strict=True)),
            dtype,
            layouts,
            Rows.of([self._velocities[kind] for kind in kinds]),
            directions=derivatives,
        )


def _along(link: MovingLink, name: str, value: Any, direction: Any) -> Any:
    """How an input of a joint changes along its velocity coordinates."""
    return position_rates(link, value, direction) if name in POSITIONS else direction
