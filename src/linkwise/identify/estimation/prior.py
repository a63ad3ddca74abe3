"""The prior of a robot's links: the numbers of its file, changed where they are not physically possible."""

from __future__ import annotations

import numpy as np

from linkwise.core.products import length as vector_length
from linkwise.core.products import times
from linkwise.identify.estimation.friction import Term
from linkwise.identify.estimation.regression import Observer
from linkwise.model.inertia import LABELS, Inertia
from linkwise.robot.robot import Robot
from linkwise.solve import linear
from linkwise.solve.linear import product

THINNEST = 1e-3  # smallest radius of gyration of a plausible body, relative to its largest
GUESSED_RADIUS = 0.08  # [m] radius of gyration of a link of which nothing is known
ALIKE = 0.7  # correlation of its torques with the measured ones from which a prior can be compared with them
FAR = 3.0  # a prior whose torques differ by more than this factor, or its inverse, is scaled
GUESSED_MASS = 1.0  # [kg] the same, where no link has a mass


def pseudo_inertias() -> np.ndarray:
    """The pseudo-inertia of every unit parameter, shape (10, 4, 4)."""
    return np.stack([Inertia.from_parameters(row.tolist()).pseudo_inertia for row in np.eye(len(LABELS))])


def prior_bodies(robot: Robot) -> np.ndarray:
    """Ten parameters of each link, pseudo-inertia positive definite, shape (n, 10): the file's where possible."""
    bodies = robot.labelled_bodies()
    masses = [body.mass for body in bodies if body.mass > 0]
    typical = float(np.median(masses)) if masses else GUESSED_MASS
    return np.array([_believable(body, robot, k, typical) for k, body in enumerate(bodies)])


def scale_of(observer: Observer, prior: np.ndarray) -> float:
    """What the prior (n, 10) is multiplied with to be of the size of the measured torques; 1 unless it is far from it.

    Torques in other units, unknown drive gains, guessed masses make a prior wrong as a whole; its shape may be right.
    """
    load = product(observer.link_columns, prior.reshape(-1))
    terms = observer.term_columns((Term("viscous"), Term("coulomb"), Term("offset")))
    right = gram = square = 0.0
    for j in range(observer.robot.dof):
        size = vector_length(observer.tau[:, j])
        if size == 0.0:
            continue
        basis = linear.orthonormal(terms[:, j])
        own, measured = (
            x - product(basis, product(basis.T, x)) for x in (load[:, j] / size, observer.tau[:, j] / size)
        )
        right, gram = right + linear.dot(own, measured), gram + linear.dot(own, own)
        square += linear.dot(measured, measured)
    if right <= ALIKE * np.sqrt(gram * square):
        return 1.0
    return 1.0 if 1 / FAR < right / gram < FAR else right / gram


def has_masses(robot: Robot) -> bool:
    """Whether the file has the masses of all moving links."""
    return all(body.mass > 0 for body in robot.labelled_bodies())


def _believable(body: Inertia, robot: Robot, k: int, typical: float) -> tuple[float, ...]:
    if body.mass <= 0:
        return Inertia.from_com(typical, _middle(robot, k), 3 * (typical * GUESSED_RADIUS**2,)).parameters
    c = body.com
    second = body.pseudo_inertia[:3, :3] - body.mass * np.outer(c, c)  # ∫ x xᵀ dm about the centre of mass
    values, vectors = linear.symmetric_eigen(second)
    floor = max(THINNEST**2 * values[-1], 1e-4 * body.mass * GUESSED_RADIUS**2)
    if values[0] >= floor:
        return body.parameters
    second = times(vectors * np.maximum(values, floor), vectors.T)
    return Inertia.from_com(body.mass, c, np.trace(second) * np.eye(3) - second).parameters


def _middle(robot: Robot, k: int) -> np.ndarray:
    """Half way to the next joints, in the frame of the parameters: where the mass of an unknown link may be."""
    frame = robot.carrier(robot.moving_joints[k].body_link)[1].inverse()
    places = []
    for joint in robot.moving_joints:
        body, pose = robot.carrier(joint.parent)
        if body == k:
            places.append((frame @ pose @ joint.origin).translation)
    return np.mean(places, axis=0) / 2 if places else np.zeros(3)
