"""A fitted model as a robot: what files, kernels and generated code hold.

Links, rotors and all terms of a joint's own axis are parameters of the robot, and motors that move several joints are
motors of the robot, so nothing is lost.
"""

from __future__ import annotations

import numpy as np

from linkwise.identify.estimation.friction import DIRECTED, Term
from linkwise.identify.estimation.regression import Observer
from linkwise.joint_laws import LAWS, world_rotor
from linkwise.model.motors import Motor
from linkwise.model.quantity import in_range
from linkwise.robot.robot import Robot

Placed = tuple[tuple[int, Term], ...]

NUMBERS = tuple(
    parameter.name
    for law in LAWS
    if not law.on_body and law.name != world_rotor.NAME
    for parameter in law.parameters
)
"""Of a joint's rotor, friction, spring and offset, all of which a fit decides."""
BLURS = np.geomspace(1e-3, 0.3, 30)
MOST_LOAD = 0.9  # of the carried torque, that friction may take


def robot_of(observer: Observer, x: np.ndarray, terms: Placed) -> Robot:
    """The robot with the parameters x of a regression."""
    robot, count = observer.robot, len(observer.link_labels)
    given = dict(zip(observer.link_labels, x[:count].tolist(), strict=True))
    placed = [(axis, term, float(value)) for (axis, term), value in zip(terms, x[count:], strict=True)]
    for axis, name in enumerate(observer.names):
        own = [(term, value) for place, term, value in placed if place == axis]
        given |= {f"{name}.{key}": value for key, value in joint_numbers(own).items()}
        if any(term.width and not term.blur for term, _ in own):
            given[f"{name}.friction_speed"] = _nearest_blur(observer, axis, own)
    motors = [
        Motor(name, {robot.joint_names[k]: float(row[k]) for k in np.flatnonzero(row)})
        for name, row in zip(observer.names[robot.dof :], observer.axes[robot.dof :], strict=True)
    ]
    if motors:
        robot = robot.with_motors(motors)
    # a parameter that the recording says nothing of may come out as any number, which a robot cannot have
    known = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    given = {label: value if in_range(value) else known.get(label, 0.0) for label, value in given.items()}
    return robot.with_parameters(given)


def joint_numbers(terms: list[tuple[Term, float]]) -> dict[str, float]:
    """The numbers of a joint by the coefficients of its terms; those of other terms are zero."""
    found = dict.fromkeys(NUMBERS, 0.0)
    for term, value in terms:
        # behind a gear a rotor inertia is only a name, but a robot cannot have a negative one
        value = max(value, 0.0) if term.dissipates or term.kind == "rotor_inertia" else value
        if term.kind == "coulomb":
            found["coulomb_friction_forward"] = found["coulomb_friction_backward"] = value
        elif term.kind == "load":
            found["load_friction"] = min(value, MOST_LOAD)
        else:
            found[term.label] = value
        if term.kind in ("saturating", "stribeck"):
            found[f"{term.kind}_speed"] = term.speed
        if term.kind in DIRECTED:
            found["friction_speed"], found["presliding_distance"] = term.blur, term.width
    return found


def _nearest_blur(observer: Observer, axis: int, own: list[tuple[Term, float]]) -> float:
    """The speed of the smooth direction that comes nearest to a remembered one along the recordings."""
    term = next(term for term, _ in own if term.width)
    errors = np.zeros(len(BLURS))
    for motion in observer.axis_signals(None):
        d, v = motion.direction(term)[:, axis, None], motion.qd[:, axis, None]
        errors += ((v / np.sqrt(v**2 + BLURS**2) - d) ** 2).sum(axis=0)
    return float(BLURS[np.argmin(errors)])
