"""Methods of robots that touch the ground, other links or their stops: steps in time, forces, gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.compiler.runtime.arrays import Array
from linkwise.errors import ArgumentError, ModelError
from linkwise.functions.contact_functions import CONTACT_INPUTS, DEFAULT_STEP
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.model import Model
from linkwise.model import contacts as parts
from linkwise.robot.kernels import evaluate
from linkwise.robot.methods import computed

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot

MOST_CANDIDATES = 512
"""Candidates of a step. It has an operation for every one of them, whether they touch or not."""


def too_many(model: Model) -> str:
    """What a step with all candidates would cost, and how to have fewer."""
    count = parts.candidate_count(model)
    operations = FUNCTIONS["contact_step"].size(model)
    return (
        f"{model.name} has {count} candidates of contact, of which at most {MOST_CANDIDATES} are taken: a step would "
        f"need about {operations:.1e} operations. Name the shapes that matter; take the nearest of many, as in "
        "lw.Contact(FRAME, points=POINTS, nearest=8); describe meshes by lw.Shape.hull, whose contact has four"
    )


def with_contacts(
    self: Robot, contacts: Sequence[parts.Part], *, stops: bool | Sequence[str] = False
) -> Robot:
    """A new robot with these contacts, in place of those it had.

    Args:
        contacts: what may touch the ground or another link (``lw.Contact``); at most one ``lw.Ground``; a
            ``lw.Stop`` for single joints, a ``lw.Tendon`` for sums of their positions.
        stops: whether joints stop at the ends of their range: True for all that have one, or names of joints.

    Raises:
        UnknownNameError: no such frame or joint.
        ModelError: a frame that does not move, a joint without a range, or a number that makes no sense.
    """
    if isinstance(contacts, (parts.Contact, parts.Ground, parts.Stop, parts.Tendon, str)):
        raise ModelError(f"contacts: expected a list of lw.Contact, got {contacts!r:.80}")
    return self._with(contacts=[*contacts, *parts.stops_for(self, stops)])


@computed
def contact_step(
    self: Robot,
    q: Array,
    qd: Array,
    tau: Array,
    *,
    step: float = DEFAULT_STEP,
    contact_friction: Array | None = None,
    ground_height: Array | None = None,
    friction: bool = True,
    accuracy: float | None = None,
    smoothing: float = 0.0,
    out: Any = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions and velocities after a step in time with contact, and the impulses of the contacts.

    Contacts keep Signorini's condition and Coulomb's cone, joints their stops and dry friction, constraints their
    rows, all in the velocities after the step (Moreau and Jean). See ``contact_residual`` for how well.

    Returns:
        Positions (..., nq), velocities (..., n) and impulses [N·s], shape (..., contacts, 3): on the robot, in the
        axes of the contact, the normal last; of the ground those of the world.
    """
    return _touched(self, "contact_step", locals())


@computed
def contact_forces(
    self: Robot,
    q: Array,
    qd: Array,
    tau: Array,
    *,
    step: float = DEFAULT_STEP,
    contact_friction: Array | None = None,
    ground_height: Array | None = None,
    friction: bool = True,
    accuracy: float | None = None,
    smoothing: float = 0.0,
    out: Any = None,
    threads: int | None = None,
) -> np.ndarray:
    """Forces of the contacts on the robot [N], shape (..., contacts, 3): the impulses of a step over its length."""
    return _touched(self, "contact_forces", locals())


@computed
def contact_velocities(
    self: Robot,
    q: Array,
    qd: Array,
    tau: Array,
    *,
    step: float = DEFAULT_STEP,
    contact_friction: Array | None = None,
    ground_height: Array | None = None,
    friction: bool = True,
    accuracy: float | None = None,
    smoothing: float = 0.0,
    out: Any = None,
    threads: int | None = None,
) -> np.ndarray:
    """Velocities of the candidates after ``contact_step`` [m/s], shape (..., contacts, 3), the normal last."""
    return _touched(self, "contact_velocities", locals())


@computed
def contact_residual(
    self: Robot,
    q: Array,
    qd: Array,
    tau: Array,
    *,
    step: float = DEFAULT_STEP,
    contact_friction: Array | None = None,
    ground_height: Array | None = None,
    friction: bool = True,
    accuracy: float | None = None,
    out: Any = None,
    threads: int | None = None,
) -> np.ndarray:
    """How far the result of ``contact_step`` is from the laws of contact, shape (...).

    The largest violation of complementarity, cone and gap as a velocity, relative to the largest velocity that
    contacts would have without impulses.
    """
    return _touched(self, "contact_residual", locals())


@computed
def contact_gaps(
    self: Robot, q: Array, *, ground_height: Array | None = None, out: Any = None, threads: int | None = None
) -> np.ndarray:
    """Distances of the candidates to what they may touch [m], shape (..., contacts); negative inside."""
    return _touched(self, "contact_gaps", locals())


@computed
def contact_frames(
    self: Robot, q: Array, *, ground_height: Array | None = None, out: Any = None, threads: int | None = None
) -> np.ndarray:
    """Where and in which axes the candidates touch: 4×4 poses in the base frame [m], shape (..., contacts, 4, 4).

    The third axis is the normal, towards the contact's ``frame``; the origin is the point of contact. Forces and
    impulses of contacts are in these axes: ``frames[..., :3, :3] @ forces[..., None]`` has them in base axes.
    """
    return _touched(self, "contact_frames", locals())


def _touched(robot: Robot, name: str, given: Mapping[str, Any]) -> Any:
    """A function of the table with the arguments of a call."""
    options = dict(given)
    inputs = {key: options[key] for key in ("q", "qd", "tau") if key in options}
    for key in CONTACT_INPUTS:
        if options.get(key) is not None:
            inputs[key] = _for_candidates(robot, key, options[key])
    options |= {key: key in inputs for key in CONTACT_INPUTS}
    return evaluate(name, robot.contact_setting(options), None, inputs, options["out"], options["threads"])


def contact_setting(self: Robot, options: Mapping[str, Any]) -> Setting:
    """What the options of a call of a contact function mean.

    Args:
        options: ``step``, ``friction``, ``accuracy``, ``smoothing``, and for each of ``CONTACT_INPUTS`` whether it
            is given.
    """
    stopped = parts.stops_of(self.contact_parts) or parts.tendons_of(self.contact_parts)
    if not (parts.candidate_count(self) or stopped):
        raise ModelError(
            f"{self.name} touches nothing; give it contacts with robot.with_contacts([lw.Contact(FRAME)])"
        )
    if parts.candidate_count(self) > MOST_CANDIDATES:
        raise ModelError(too_many(self))
    step, accuracy = options.get("step", DEFAULT_STEP), options.get("accuracy")
    for what, value in (("step", step), ("accuracy", 1.0 if accuracy is None else accuracy)):
        if not (isinstance(value, (int, float, np.floating)) and 0.0 < value < math.inf):
            raise ArgumentError(f"{what}: expected a number above 0, got {value!r:.80}")
    smoothing = options.get("smoothing", 0.0)
    if not (isinstance(smoothing, (int, float, np.floating)) and 0.0 <= smoothing < math.inf):
        raise ArgumentError(f"smoothing: expected a number of at least 0 [m/s], got {smoothing!r:.80}")
    return Setting(
        self,
        friction=flag("friction", options.get("friction", True)),
        step=float(step),
        contact_inputs=tuple(name for name in CONTACT_INPUTS if options.get(name)),
        accuracy=None if accuracy is None else float(accuracy),
        smoothing=float(smoothing),
    )


def _for_candidates(robot: Robot, name: str, value: Any) -> Any:
    """One number for every candidate, where only one was given. A NaN stays one and reaches its state alone."""
    numbers = isinstance(value, (int, float, list, tuple, np.ndarray))
    if numbers and (given := np.asarray(value)).dtype.kind in "iuf":
        wrong, expected, hint = np.isinf(given), "finite numbers", "-1e3 is no ground"
        if name == "contact_friction":
            wrong = wrong | (given < 0.0)
            expected, hint = "finite numbers from 0 on", "1e3 is a contact that never slides"
        if wrong.any():
            place = np.argwhere(wrong)[0].tolist()
            raise ArgumentError(
                f"{name}: expected {expected}, got {given[tuple(place)]:g}"
                f"{f' at {place}' if place else ''}; {hint}"
            )
    if isinstance(value, (int, float)):
        return np.full(parts.candidate_count(robot), float(value))
    return value
