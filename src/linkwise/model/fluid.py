"""A fluid around a robot that resists its motion: MuJoCo's two models, as data.

A ``Fluid`` has a density, a viscosity and a wind, and the bodies that it resists. Each is fixed to a link and is either
a *box* (MuJoCo's default: that with the inertia of the body) or an *ellipsoid* (``fluidshape="ellipsoid"`` of a geom).
The forces depend on the velocity relative to the fluid: see ``algorithms.drag``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.inertia import Inertia
from linkwise.model.transform import Transform

SHAPES = ("box", "ellipsoid")
COEFFICIENTS = (0.5, 0.25, 1.5, 1.0, 1.0)
"""MuJoCo's defaults of an ellipsoid: blunt drag, slender drag, angular drag, Kutta lift, Magnus lift."""
SMALLEST = 1e-15
"""Masses below have no drag, and lengths below are taken as this, as in MuJoCo [kg, m²]."""
OFF_DIAGONAL = 1e-12  # where MuJoCo's method for principal axes ends [kg·m²]
MOST_ROTATIONS = 500
DIAGONAL = 1e-10  # products of inertia below this part of the largest moment count as zero


@dataclass(frozen=True)
class DragBody:
    """What a fluid resists.

    Args:
        link: the link that it is fixed to.
        pose: of its centre and axes in the frame of the link.
        shape: "box" or "ellipsoid".
        size: the edges of a box, or the semi-axes of an ellipsoid [m].
        coefficients: of an ellipsoid: blunt drag, slender drag, angular drag, Kutta lift, Magnus lift.
    """

    link: str
    pose: Transform
    shape: str
    size: tuple[float, float, float]
    coefficients: tuple[float, float, float, float, float] = COEFFICIENTS

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise ModelError(
                f"drag of link {self.link!r}: shape {self.shape!r} is none of {', '.join(SHAPES)}"
            )
        if len(self.size) != 3 or not all(math.isfinite(x) and x >= 0 for x in self.size):
            raise ModelError(f"drag of link {self.link!r}: expected three lengths, got {self.size}")
        if len(self.coefficients) != 5 or not all(map(math.isfinite, self.coefficients)):
            raise ModelError(
                f"drag of link {self.link!r}: expected five coefficients, got {self.coefficients}"
            )

    def content(self) -> tuple[Any, ...]:
        """What decides its forces, as a key."""
        pose = (self.pose.rotation.tobytes(), self.pose.translation.tobytes())
        return (self.link, *pose, self.shape, self.size, self.coefficients)


@dataclass(frozen=True)
class Fluid:
    """A fluid around a robot; ``Robot.with_fluid`` puts the robot into it.

    Args:
        density: [kg/m³].
        viscosity: [Pa·s].
        wind: velocity of the fluid in the base frame [m/s].
        bodies: what it resists; None: the box with the inertia of every link, as in MuJoCo.
    """

    density: float = 0.0
    viscosity: float = 0.0
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)
    bodies: tuple[DragBody, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("density", "viscosity"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ModelError(f"fluid: {name} {getattr(self, name)!r} is not a number from 0 on")
        if len(self.wind) != 3 or not all(map(math.isfinite, self.wind)):
            raise ModelError(f"fluid: wind: expected three numbers, got {self.wind!r}")

    def content(self) -> tuple[Any, ...]:
        """What decides its forces, as a key."""
        return (self.density, self.viscosity, self.wind, tuple(body.content() for body in self.bodies or ()))


def inertia_box(link: str, inertia: Inertia, axes: np.ndarray | None = None) -> DragBody | None:
    """The box with the mass and the principal moments of a body; None for a body without mass.

    Args:
        link: the name of the link.
        inertia: about the origin of the link's frame.
        axes: the rotation to take as principal axes, where the inertia is diagonal in it: MuJoCo keeps the axes that a
            file states, which matters where two moments are equal. None: see ``principal_axes``.
    """
    if inertia.mass < SMALLEST:
        return None
    about_com = inertia.matrix_about_com
    rotation = principal_axes(about_com) if axes is None else axes
    matrix = rotation.T @ about_com @ rotation
    if np.abs(matrix - np.diag(np.diag(matrix))).max() > DIAGONAL * matrix.max():
        rotation = principal_axes(about_com)
        matrix = rotation.T @ about_com @ rotation
    moments = np.diag(matrix)
    x, y, z = (math.sqrt(max(SMALLEST, moments.sum() - 2 * own) / inertia.mass * 6) for own in moments)
    return DragBody(link, Transform(rotation, np.array(inertia.com)), "box", (x, y, z))


def principal_axes(matrix: np.ndarray) -> np.ndarray:
    """A rotation R with Rᵀ M R diagonal, by Jacobi's rotations of the largest entry off the diagonal.

    Where moments are equal the axes are not unique; MuJoCo finds those at which this method ends, from R = 1.
    """
    rotation = np.eye(3)
    for _ in range(MOST_ROTATIONS):
        turned = rotation.T @ matrix @ rotation
        i, j = max(((0, 1), (0, 2), (1, 2)), key=lambda at: (abs(turned[at]), at == (1, 2), at == (0, 2)))
        if abs(turned[i, j]) < OFF_DIAGONAL:
            break
        tau = (turned[j, j] - turned[i, i]) / (2 * turned[i, j])
        t = 1 / (tau + math.hypot(1, tau)) if tau >= 0 else -1 / (-tau + math.hypot(1, tau))
        c = 1 / math.hypot(1, t)
        step = np.eye(3)
        step[[i, j], [i, j]], step[i, j], step[j, i] = c, t * c, -t * c
        rotation = rotation @ step
    return rotation


def around(model: Any, fluid: Fluid) -> Fluid | None:
    """The fluid with the bodies of the moving links of a robot; None where it has no effect."""
    bodies = fluid.bodies
    if bodies is None:
        boxes = [inertia_box(link.name, link.inertia) for link in model.links]
        bodies = tuple(box for box in boxes if box is not None)
    moving = tuple(body for body in bodies if model.carrier(body.link)[0] >= 0)
    return replace(fluid, bodies=moving) if moving and (fluid.density or fluid.viscosity) else None


# -- numbers that the forces need -------------------------------------------------------------------------------------


def numbers_of(body: DragBody, fluid: Fluid) -> tuple[float, ...]:
    """Coefficients of the forces along the axes of a body, see ``algorithms.drag``: 8 of a box, 18 of an ellipsoid."""
    rho, mu, (a, b, c) = fluid.density, fluid.viscosity, body.size
    if body.shape == "box":
        diameter = (a + b + c) / 3
        turning = [rho / 64 * x * (y**4 + z**4) for x, y, z in ((a, b, c), (b, c, a), (c, a, b))]
        sliding = [rho / 2 * y * z for y, z in ((b, c), (c, a), (a, b))]
        return (math.pi * diameter**3 * mu, 3 * math.pi * diameter * mu, *turning, *sliding)
    blunt, slender, angular, kutta, magnus = body.coefficients
    diameter = 2 / 3 * (a + b + c)
    _, middle, most = sorted(body.size)
    volume = 4 / 3 * math.pi * a * b * c
    masses, inertias = added_mass(a, b, c)
    largest = 8 / 15 * math.pi * middle * most**4
    turning = [8 / 15 * math.pi * x * max(y, z) ** 4 for x, y, z in ((a, b, c), (b, c, a), (c, a, b))]
    return (
        math.pi * diameter**3 * mu,
        3 * math.pi * diameter * mu,
        *(rho * x for x in (*masses, *inertias)),
        rho * magnus * volume,
        rho * kutta,
        *((y * z) ** 2 for y, z in ((b, c), (c, a), (a, b))),
        rho * (blunt - slender) * math.pi,
        rho * slender * math.pi * middle * most,
        *(rho * (angular * x + slender * (largest - x)) for x in turning),
    )


KRONROD = (
    (0.991455371120812639206854697526329, 0.022935322010529224963732008058970),
    (0.949107912342758524526189684047851, 0.063092092629978553290700663189204),
    (0.864864423359769072789712788640926, 0.104790010322250183839876322541518),
    (0.741531185599394439863864773280788, 0.140653259715525918745189590510238),
    (0.586087235467691130294144691258630, 0.169004726639267902826583426598550),
    (0.405845151377397166906606412076961, 0.190350578064785409913256402421014),
    (0.207784955007898467600689403773245, 0.204432940075298892414161999234649),
    (0.000000000000000000000000000000000, 0.209482141084727828012999174891714),
)
"""Nodes and weights of the 15-point Kronrod rule on [−1, 1]; the others follow by symmetry (QUADPACK)."""


def added_mass(a: float, b: float, c: float) -> tuple[list[float], list[float]]:
    """Mass [m³] and moments of inertia [m⁵] of the fluid that moves with an ellipsoid, for unit density."""
    volume = 4 / 3 * math.pi * a * b * c
    cycle = ((a, b, c), (b, c, a), (c, a, b))
    k = [_kappa(*axes) for axes in cycle]
    masses = [volume * x / max(SMALLEST, 2 - x) for x in k]
    inertias: list[float] = []
    for i, (_, y, z) in enumerate(cycle):
        ky, kz = k[(i + 1) % 3], k[(i + 2) % 3]
        below = abs(2 * (y**2 - z**2) + (y**2 + z**2) * (ky - kz))
        inertias.append(volume / 5 * (y**2 - z**2) ** 2 * abs(kz - ky) / max(1e-14, below))
    return masses, inertias


def _kappa(a: float, b: float, c: float) -> float:
    """∫ abc dl / √((a² + l)³ (b² + l) (c² + l)) from 0 to ∞, by the rule that MuJoCo takes: l = s x³/(1 − x)²,
    with nodes and weights of eight digits."""
    scale = (a**3 * b * c) ** 0.4
    total = 0.0
    for node, weight in KRONROD:
        for x in {round(0.5 - node / 2, 8), round(0.5 + node / 2, 8)}:
            l = scale * x**3 / (1 - x) ** 2
            slope = scale * x**2 * (3 - x) / (1 - x) ** 3
            below = (1 + l / a**2) * math.sqrt((1 + l / a**2) * (1 + l / b**2) * (1 + l / c**2))
            total += round(weight / 2, 8) * slope / below
    return total / a**2
