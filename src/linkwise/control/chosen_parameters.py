"""Which parameters of a robot an online estimator follows, and how torques depend on them.

Torques are linear in them: τ = known(q, q̇, q̈) + columns(q, q̇, q̈) θ. Parameters that are not chosen keep the robot's
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkwise.algorithms import coordinates, joint_terms
from linkwise.errors import LinkwiseError, UnknownNameError, suggest
from linkwise.functions.evaluation import outputs_of
from linkwise.functions.parameters import PAYLOAD, with_symbols
from linkwise.functions.table import Setting, function_named, mechanism_of
from linkwise.model import LABELS
from linkwise.model.inertia import Inertia
from linkwise.model.mechanism import Mechanism
from linkwise.robot.robot import Robot
from linkwise.scalar import Scalar, summed

BASE, FRICTION = "base", "friction"
OFFSET = "torque_offset"
Rows = list[list[Scalar]]


@dataclass(frozen=True, eq=False)
class Chosen:
    """Parameters θ of a robot.

    ``what``: "base" (base parameters of links, rotors and friction), "payload" (ten numbers of a load at ``frame``),
    "friction" (all coefficients of friction, and offsets of torques) or labels of ``robot.parameter_labels``.
    """

    robot: Robot
    what: str | Sequence[str]
    frame: str | None = None
    labels: tuple[str, ...] = field(init=False)
    start: np.ndarray = field(init=False)
    """The robot's own values."""
    _combination: np.ndarray = field(init=False)  # columns of the regressor -> columns of θ

    def __post_init__(self):
        robot = self.robot
        if robot.constraints:
            raise LinkwiseError(
                f"{robot.name}: torques of its constraints are not known; estimate without them"
            )
        if joint_terms.has_load_friction(mechanism_of(robot)):
            raise LinkwiseError(
                f"{robot.name}: torques are not linear in its parameters, because friction grows with the load; "
                "set load_friction to 0 with with_parameters"
            )
        labels, start, combination = self._parts()
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "_combination", combination)

    def _parts(self) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        robot, known = self.robot, self.robot.parameter_labels
        if self.what == BASE:
            base = robot.base_parameters()
            return base.labels, base.values, np.eye(len(known))[:, list(base.columns)]
        if self.what == PAYLOAD:
            return tuple(f"{PAYLOAD}.{label}" for label in LABELS), np.zeros(len(LABELS)), self._of_payload()
        wanted = tuple(filter(is_friction, known)) if self.what == FRICTION else self.what
        if isinstance(wanted, str):
            raise UnknownNameError(
                f"parameters: no {wanted!r}; valid: base, payload, friction, or a list of labels"
            )
        for label in wanted:
            if label not in known:
                raise UnknownNameError(f"parameters: no {label!r}; {suggest(label, known)}")
        places = [known.index(label) for label in wanted]
        return tuple(wanted), robot.parameters[places], np.eye(len(known))[:, places]

    def _of_payload(self) -> np.ndarray:
        """How the parameters of the link behind the frame change with those of a load in the frame's axes."""
        body, pose = self.robot.locate(self.frame)
        if body < 0:
            raise LinkwiseError("frame: a load on the base causes no torques; name a moving frame")
        link = mechanism_of(self.robot)[body]
        at = link.parameter_frame.inverse() @ (link.file_frame @ pose)
        units = [
            Inertia.from_parameters(unit).expressed_in(at).parameters for unit in np.eye(len(LABELS)).tolist()
        ]
        found = np.zeros((len(self.robot.parameter_labels), len(LABELS)))
        found[10 * body : 10 * body + 10] = np.array(units).T
        return np.where(np.abs(found) < 1e-15, 0.0, found)

    @property
    def size(self) -> int:
        return len(self.labels)

    def content(self) -> tuple[Any, ...]:
        """What decides the code."""
        return (self.robot.content(), self.labels, self._combination.tobytes())

    def columns(self, q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar]) -> Rows:
        """∂τ/∂θ, n rows."""
        found = outputs_of(
            function_named("regressor"),
            Setting(self.robot),
            "newton_euler",
            q=list(q),
            qd=list(qd),
            qdd=list(qdd),
        )
        rows: Rows = []
        for row in found["regressor"]:
            line: list[Scalar] = []
            for weights in self._combination.T:
                terms = [row[k] if w == 1.0 else float(w) * row[k] for k, w in enumerate(weights) if w != 0.0]
                line.append(summed([term for term in terms if not (isinstance(term, float) and term == 0.0)]))
            rows.append(line)
        return rows

    def known(self, q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar]) -> list[Scalar]:
        """The torques of everything that is not chosen."""
        if self.what == BASE:
            return [0.0] * self.robot.dof
        return coordinates.inverse_dynamics(self.links([0.0] * self.size), q, qd, qdd)

    def links(self, values: Sequence[Scalar]) -> Mechanism:
        """The robot with these values; not for base parameters."""
        links = mechanism_of(self.robot)
        named: dict[str, Sequence[Scalar]] = (
            {PAYLOAD: list(values)}
            if self.what == PAYLOAD
            else {label: [value] for label, value in zip(self.labels, values, strict=True)}
        )
        return with_symbols(links, self.robot, self.frame, named, base_parameters=False)


def is_friction(label: str) -> bool:
    """Whether a label is that of a coefficient of friction or of an offset: what changes with temperature and wear."""
    name = label.rpartition(".")[2]
    return "_friction" in name or name == OFFSET
