"""What a law of a joint is: named numbers on the joint, and the torque that they add to the equation of motion.

A law is written over scalars, as every algorithm: its functions take numbers, arrays or symbols. The numbers are read
from a *holder*: a ``Joint`` of a model, or a prepared ``MovingLink``, whose numbers may be symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from linkwise.scalar import Scalar

_H = TypeVar("_H")


@dataclass(frozen=True)
class Parameter:
    """One number of a law. Its name is the key in TOML, the attribute of the URDF extension and the end of its label
    ``JOINT.name``."""

    name: str
    text: str
    """The name in messages."""
    units: tuple[str, str]
    """Of a joint that turns, and of one that slides."""
    coefficient: bool = True
    """Whether torques are linear in it: then it has a label and a column of the regressor."""
    angle: bool = False
    """Whether it is a position of the joint, which some formats give in degrees."""
    mjcf: str = ""
    """Its attribute in MJCF, where there is one."""
    negative: str = "allowed"
    """"allowed", "doubtful" (a warning) or "refused"."""
    doubt: str = ""
    """Why a negative value is doubtful."""
    below: float = float("inf")
    """Values from here on are refused."""
    needed_by: str = ""
    """The coefficient that makes no sense unless this number is positive."""


class Law:
    """The base of all laws. A law overrides what its torque depends on; everything else is zero.

    Further laws keep their numbers in the holder's ``terms``. The torque is what the joint *resists* with: it stands
    on the left of M(q) q̈ + c + g + joint torques = τ + Jᵀ w.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    dissipates: ClassVar[bool] = False
    """Whether it is friction, which ``friction=False`` leaves out."""
    brakes: ClassVar[bool] = True
    """Whether friction of this law never drives the joint; ripple gives back a part of what it takes."""
    jumps: ClassVar[bool] = False
    """Whether it is discontinuous at rest: simulations then ask for ``limits`` and let the joint stick."""
    uses_position: ClassVar[bool] = False
    """Whether the torque depends on q."""
    of_load: ClassVar[bool] = False
    """Whether it depends on the torque that the joint carries: see ``joint_laws.load``."""
    on_body: ClassVar[bool] = False
    """Whether it is a force on the link behind the joint, which all joints before it feel."""
    always_labelled: ClassVar[bool] = False
    """Whether every robot has its labels, not only one with a joint that has this law."""
    labelled_singly: ClassVar[bool] = False
    """Whether a coefficient has a label only where some joint has it: of many coefficients most joints have few."""

    # -- the numbers ------------------------------------------------------------------------------------------

    def numbers(self, holder: Any) -> tuple[Scalar, ...]:
        """The parameters of a joint, in their order."""
        return tuple(holder.terms.get(parameter.name, 0.0) for parameter in self.parameters)

    def absent(self, holder: Any) -> bool:
        """Whether the joint has no such law: its coefficients are all zero, or it has none. A symbol counts as not
        zero."""
        if not holder.terms and type(self).numbers is Law.numbers:
            return True  # of most joints: simulations ask for every law in every step
        pairs = zip(self.parameters, self.numbers(holder), strict=True)
        return all(is_zero(number) for parameter, number in pairs if parameter.coefficient)

    def labels(self, holders: Sequence[Any]) -> tuple[str, ...]:
        """The ends of the labels of its coefficients, for a robot with these joints."""
        if not (self.always_labelled or any(not self.absent(holder) for holder in holders)):
            return ()
        names = (parameter.name for parameter in self.parameters if parameter.coefficient)
        if self.labelled_singly:
            return tuple(n for n in names if any(not is_zero(h.terms.get(n, 0.0)) for h in holders))
        return tuple(names)

    def settable(self) -> tuple[str, ...]:
        """All names by which its numbers may be changed."""
        return tuple(parameter.name for parameter in self.parameters)

    def number(self, holder: Any, name: str) -> Scalar:
        """The number of that name, one of ``settable``."""
        return dict(zip(self.settable(), self.numbers(holder), strict=True))[name]

    def changed(self, holder: _H, name: str, value: Scalar) -> _H:
        """The joint with another number of that name."""
        terms: Mapping[str, Scalar] = {**holder.terms, name: value}  # type: ignore[attr-defined]
        return replace(holder, terms=terms)  # type: ignore[type-var]

    # -- what it adds to the equation of motion ---------------------------------------------------------------

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        """[N·m or N]; ``q`` is None where ``uses_position`` is False."""
        raise NotImplementedError

    def by_q(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        """The derivative of the torque by q."""
        return 0.0

    def by_qd(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        """The derivative of the torque by q̇; that of a jump is 0."""
        return 0.0

    def energy(self, holder: Any, q: Scalar) -> Scalar:
        """The potential energy [J], for a law that does not dissipate: its derivative by q is the torque."""
        return 0.0

    def limits(self, holder: Any, qd: Scalar) -> tuple[Scalar, Scalar]:
        """For a law that jumps: the two magnitudes of its torque in motion forward and backward [N·m or N]."""
        return 0.0, 0.0

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        """The torque for a coefficient of 1, the other coefficients being 0: an entry of the regressor."""
        raise NotImplementedError


def is_zero(x: Scalar) -> bool:
    """Whether a scalar is the number zero, rather than a symbol or an array."""
    return isinstance(x, (float, int)) and x == 0.0
