"""A fitted model as a robot: what a robot file and generated code can hold.

A robot has rotor inertia, viscous friction and Coulomb friction per direction. Terms beyond (offset, load, presliding,
saturation, stiffness) are replaced by the viscous and Coulomb friction that come nearest to them along the recording;
an offset is friction that differs by direction. Rotors and friction of coupled motors go to the joints they move,
without their coupling.
"""

from __future__ import annotations

import numpy as np

from linkwise.errors import needed
from linkwise.identify.friction import Term, column
from linkwise.identify.regression import Observer
from linkwise.model.quantity import in_range
from linkwise.robot import Robot

NEAREST = (Term("viscous"), Term("forward"), Term("backward"))


def robot_of(observer: Observer, x: np.ndarray, terms: tuple[tuple[int, Term], ...]) -> Robot:
    """The robot with links and rotors of parameters x, as in a regression, and the friction nearest to theirs."""
    robot = observer.robot
    links = x[: len(observer.link_labels)]
    given = dict(zip(observer.link_labels, links.tolist(), strict=True))
    friction = nearest_friction(observer, x, terms)
    for joint, name in enumerate(robot.joint_names):
        rotor = sum(
            value * observer.axes[axis, joint] ** 2
            for (axis, term), value in zip(terms, x[len(links) :], strict=True)
            if term.kind == "rotor_inertia"
        )
        given[f"{name}.rotor_inertia"] = max(float(rotor), 0.0)
        viscous, forward, backward = friction[joint]
        given[f"{name}.viscous_friction"] = float(viscous)
        given[f"{name}.coulomb_friction_forward"] = float(forward)
        given[f"{name}.coulomb_friction_backward"] = float(backward)
    # a parameter without information in the recording may get any value, also an impossible one
    known = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    given = {label: value if in_range(value) else known.get(label, 0.0) for label, value in given.items()}
    return robot.with_parameters(given)


def nearest_friction(observer: Observer, x: np.ndarray, terms: tuple[tuple[int, Term], ...]) -> np.ndarray:
    """Viscous friction and Coulomb friction forward and backward of each joint, none negative, shape (n, 3)."""
    nnls = needed("scipy.optimize", "identify").nnls
    dof, first = observer.robot.dof, len(observer.link_labels)
    wanted, columns = [], []
    for motion in observer.axis_signals(x[:first]):
        torque = np.zeros((len(motion.q), dof))
        for (axis, term), value in zip(terms, x[first:], strict=True):
            if term.kind != "rotor_inertia":
                torque += value * column(motion, term)[:, axis, None] * observer.axes[axis]
        wanted.append(torque)
        columns.append(np.stack([column(motion, term)[:, :dof] for term in NEAREST], axis=-1))
    torque, shapes = np.concatenate(wanted), np.concatenate(columns)
    return np.array([nnls(shapes[:, k], torque[:, k])[0] for k in range(dof)])
