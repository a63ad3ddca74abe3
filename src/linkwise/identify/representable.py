"""A fitted model as a robot: what files, kernels and generated code hold.

Links, rotors and all terms of a joint's own axis are parameters of the robot, so nothing is lost. Motors that move
several joints are not: their rotors and friction go to the joints they move, without their coupling, as the viscous and
Coulomb friction that come nearest along the recording.
"""

from __future__ import annotations

import numpy as np

from linkwise.errors import needed
from linkwise.identify.friction import DIRECTED, AxisSignals, Term, column
from linkwise.identify.regression import Carried, Observer
from linkwise.joint_laws import LAWS
from linkwise.model.quantity import in_range
from linkwise.robot import Robot

Placed = tuple[tuple[int, Term], ...]

NUMBERS = tuple(parameter.name for law in LAWS if not law.on_body for parameter in law.parameters)
"""Of a joint's rotor, friction, spring and offset, all of which a fit decides."""
NEAREST = (Term("viscous"), Term("forward"), Term("backward"))
BLURS = np.geomspace(1e-3, 0.3, 30)
MOST_LOAD = 0.9  # of the carried torque, that friction may take


def robot_of(observer: Observer, x: np.ndarray, terms: Placed, *, coupled: bool = True) -> Robot:
    """The robot with the parameters x of a regression; ``coupled``: with what comes nearest to coupled motors."""
    robot, count = observer.robot, len(observer.link_labels)
    given = dict(zip(observer.link_labels, x[:count].tolist(), strict=True))
    placed = [(axis, term, float(value)) for (axis, term), value in zip(terms, x[count:], strict=True)]
    for joint, name in enumerate(robot.joint_names):
        own = [(term, value) for axis, term, value in placed if axis == joint]
        given |= {f"{name}.{key}": value for key, value in joint_numbers(own).items()}
        if any(term.width and not term.blur for term, _ in own):
            given[f"{name}.friction_speed"] = _nearest_blur(observer, joint, own)
    if coupled and len(observer.axes) > robot.dof:
        _add_coupled(observer, x, placed, given)
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


def _nearest_blur(observer: Observer, joint: int, own: list[tuple[Term, float]]) -> float:
    """The speed of the smooth direction that comes nearest to a remembered one along the recordings."""
    term = next(term for term, _ in own if term.width)
    errors = np.zeros(len(BLURS))
    for motion in observer.axis_signals(None):
        d, v = motion.direction(term)[:, joint, None], motion.qd[:, joint, None]
        errors += ((v / np.sqrt(v**2 + BLURS**2) - d) ** 2).sum(axis=0)
    return float(BLURS[np.argmin(errors)])


def _add_coupled(
    observer: Observer, x: np.ndarray, placed: list[tuple[int, Term, float]], given: dict[str, float]
) -> None:
    """Add rotors and friction of coupled motors to the joints that they move."""
    dof, names = observer.robot.dof, observer.robot.joint_names
    carried = Carried(x[: len(observer.link_labels)], tuple(p for p in placed if not p[1].dissipates))
    friction = [(axis, term, value) for axis, term, value in placed if axis >= dof and term.dissipates]
    nearest = _nearest_friction(observer.axis_signals(carried), observer.axes, friction)
    for joint, name in enumerate(names):
        given[f"{name}.rotor_inertia"] += sum(
            max(value, 0.0) * float(observer.axes[axis, joint]) ** 2
            for axis, term, value in placed
            if axis >= dof and term.kind == "rotor_inertia"
        )
        for term, more in zip(NEAREST, nearest[joint], strict=True):
            given[f"{name}.{term.label}"] += float(more)


def _nearest_friction(
    motions: list[AxisSignals], axes: np.ndarray, friction: list[tuple[int, Term, float]]
) -> np.ndarray:
    """Viscous friction and Coulomb friction forward and backward of each joint, none negative, shape (n, 3)."""
    nnls = needed("scipy.optimize", "identify").nnls
    dof = axes.shape[1]
    wanted, columns = [], []
    for motion in motions:
        torque = np.zeros((len(motion.q), dof))
        for axis, term, value in friction:
            torque += value * column(motion, term)[:, axis, None] * axes[axis]
        wanted.append(torque)
        columns.append(np.stack([column(motion, term)[:, :dof] for term in NEAREST], axis=-1))
    torque, shapes = np.concatenate(wanted), np.concatenate(columns)
    return np.array([nnls(shapes[:, k], torque[:, k])[0] for k in range(dof)])
