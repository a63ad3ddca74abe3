"""Methods of ``Robot`` that other parts compute: elastic joints, inverse kinematics, files, pictures, pages, equations.

Parts above it import ``robot``, so they are registered (``core.upper``) and loaded when a method is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.compiler.runtime.arrays import Array
from linkwise.core.upper import upper
from linkwise.errors import ShapeError, UnknownNameError
from linkwise.model import elastic
from linkwise.model.elastic import Elastic
from linkwise.robot.methods import takes_names, without_names

if TYPE_CHECKING:
    from linkwise.collision import Validity, World
    from linkwise.motion import Solution, Trajectory
    from linkwise.report import Plot
    from linkwise.robot.ode import Ode
    from linkwise.robot.robot import Robot
    from linkwise.simulate import Result

TASKS = {"pose": slice(0, 6), "position": slice(3, 6), "rotation": slice(0, 3)}  # rows of a Jacobian


def with_elastic_joints(self: Robot, springs: Mapping[str, Elastic | float]) -> Robot:
    """A new robot whose named joints are elastic: a motor behind a spring and a damper (see ``lw.Elastic``).

    A number is a stiffness [N·m/rad or N/m]. The joint's own coordinate becomes the motor's, ``NAME_spring`` is how
    far the spring has given way, and the link is at their sum.
    """
    return self._with(**elastic.with_elastic_joints(self, springs))


def link_side(self: Robot) -> Robot:
    """The rigid robot that the springs of elastic joints drive: without their motors and motor friction."""
    return self._with(**elastic.link_side(self))


@takes_names
def in_collision(
    self: Robot, q: Array, world: Any = None, *, clearance: float = 0.0, threads: int | None = None
) -> np.ndarray:
    """Whether the robot touches obstacles or itself, shape (...); its links are spheres around their geometry.

    Args:
        q: positions [rad or m], shape (..., n).
        world: obstacles, ``linkwise.collision.World`` or a list of them; by default none.
        clearance: distance [m] below which it counts as touching, also between links.
        threads: number of threads; None: all cores when the batch is worth it.
    """
    checks = upper("collision").validity_of(self)
    return checks.in_collision(q, world, clearance=clearance, threads=threads)


@takes_names
def inverse_kinematics(
    self: Robot,
    pose: Array,
    frame: str | None = None,
    *,
    start: Array | None = None,
    task: str = "pose",
    limits: bool = True,
    starts: int = 128,
    iterations: int = 100,
    tolerance: float = 1e-9,
    strict: bool = True,
    seed: int = 0,
    closest: bool = False,
    world: World | Iterable[Any] | None = None,
    clearance: float = 0.0,
    validity: Validity | None = None,
) -> Solution:
    """Joint positions that bring a frame to a pose: ``.q`` of the result, shape (..., n).

    Args:
        pose: target poses, shape (..., 4, 4), or points [m], shape (..., 3), with ``task="position"``.
        frame: the frame to be moved; by default the only leaf.
        start: positions [rad or m], shape (..., n), that are tried first.
        task: "pose" or "position".
        limits: whether the result must be within the joint limits.
        starts: number of starting positions.
        iterations: most steps from each.
        tolerance: largest error [m and rad].
        strict: False gives the nearest position found where the target is not reached.
        seed: of the random starting positions.
        closest: an arm of seven joints with a closed form gets the branch nearest to ``start``.
        world: obstacles; the result touches neither them nor the robot itself.
        clearance: distance [m] to keep to obstacles and between links.
        validity: checks of the robot with other spheres or pairs than the default ones.

    Raises:
        UnreachableError: a target is not reached; the message has the remaining error.
    """
    return upper("motion").inverse_kinematics(
        self,
        pose,
        frame=frame,
        start=start,
        task=task,
        limits=limits,
        starts=starts,
        iterations=iterations,
        tolerance=tolerance,
        strict=strict,
        seed=seed,
        closest=closest,
        world=world,
        clearance=clearance,
        validity=validity,
    )


@takes_names
def manipulability(self: Robot, q: Array, frame: str | None = None, *, task: str = "pose") -> np.ndarray:
    """Yoshikawa's measure √det(J Jᵀ), shape (...): the product of the singular values of the Jacobian.

    Zero in singular positions. With fewer joints than rows it is √det(Jᵀ J).

    Args:
        q: positions [rad or m], shape (..., nq).
        frame: the frame; by default the only leaf.
        task: "pose" for all six rows, "position" for the linear, "rotation" for the angular ones.
    """
    if task not in TASKS:
        raise UnknownNameError(f"task: expected {', '.join(map(repr, TASKS))}, got {task!r}")
    rows = np.asarray(self.jacobian(q, frame))[..., TASKS[task], :]
    return np.linalg.svd(rows, compute_uv=False).prod(axis=-1)


def as_ode(
    self: Robot,
    tau: Any = None,
    *,
    tau_jacobian: Callable[..., Any] | None = None,
    friction: bool = True,
) -> Ode:
    """The equation of motion as ẏ = f(t, y) with y = (q, q̇), for ``scipy.integrate.solve_ivp`` and other solvers::

        ode = robot.as_ode(tau=lambda t, q, qd: -20.0 * q - 4.0 * qd)
        solution = solve_ivp(ode, (0.0, 2.0), ode.state(q, qd), method="Radau", jac=ode.jac)
        q, qd = ode.split(solution.y)

    Args:
        tau: torques [N·m or N]: None for none, constant ones, shape (n,), or a function of (t, q, qd) that gives
            them.
        tau_jacobian: a function of (t, q, qd) that gives ∂τ/∂q and ∂τ/∂q̇; without it ``jac`` takes finite
            differences of ``tau``.
        friction: whether viscous and Coulomb terms count. Coulomb friction jumps where a joint turns back, and
            solvers take small steps there.

    Returns:
        A function with ``jac``, ``state`` and ``split``. For ball and floating joints y has the numbers of q, whose
        rates follow from the velocities, and ``split`` gives quaternions length one.
    """
    from linkwise.robot.ode import Ode

    return Ode(self, tau, tau_jacobian=tau_jacobian, friction=friction)


def save(self: Robot, path: str | os.PathLike[str], *, strict: bool = False) -> None:
    """Write the robot as .urdf, .toml or .xml (MJCF), see ``linkwise.save``; the file appears whole or not at all.

    Args:
        path: the file; its ending chooses the format.
        strict: whether a term that other programs will not see is an error instead of a warning.
    """
    from linkwise.formats import files

    files.save(self, path, strict=flag("strict", strict))


def notebook_page(self: Robot) -> str:
    """What a notebook shows: a drawing, and the joints with their limits."""
    return upper("report").robot_html(self)


@takes_names
def plot(
    self: Robot, q: Array | None = None, *, ghosts: Sequence[Array] = (), trace: Array | None = None
) -> Plot:
    """A drawing of the robot, which notebooks show and ``.save("arm.svg")`` writes.

    Args:
        q: position [rad or m], shape (nq,); by default one inside the limits in which the joints are bent.
        ghosts: further positions that are drawn faintly.
        trace: points [m], shape (k, 3), of a path that is drawn as a line.
    """
    report = upper("report")
    shown = report.bent_position(self) if q is None else _position(self, q)
    others = [_position(self, ghost) for ghost in ghosts]
    picture = report.robot_picture(self, shown, ghosts=others, trace=trace)
    return report.Plot([report.Figure("robot", picture)], f"{self.name} in one position")


@takes_names
def show(
    self: Robot,
    q: Array | None = None,
    source: str | os.PathLike[str] | None = None,
    *,
    meshes: Iterable[str | os.PathLike[str]] = (),
    motion: Trajectory | None = None,
    result: Result | None = None,
    frame: str | None = None,
    live: bool | None = None,
    port: int = 8080,
    dark: bool = False,
    shadows: bool = True,
    height: int = 480,
    wait: bool | None = None,
) -> Any:
    """A page of the robot: in a frame of a notebook, where it needs no server; elsewhere the 3-D page in the browser.

    Args:
        q: position [rad or m], shape (nq,).
        source: the file that the robot came from, for its meshes; by default the one that it was loaded from.
        meshes: further folders with meshes.
        motion: a motion to play.
        result: a simulation to play, with arrows for the forces of contacts.
        frame: the frame that carries the load and can be dragged.
        live: the live page, served by this process; by default in a notebook a page file and elsewhere the live page.
        port: port of the page; the next free one if it is busy.
        dark: a dark page.
        shadows: False draws without shadows and reflections, which is faster without a graphics card.
        height: of the frame in a notebook [pixels].
        wait: whether to wait until Ctrl+C; by default in scripts, which would end at once.

    Returns:
        An object that notebooks show, or the ``Page``; ``close()`` stops a live one.
    """
    shown = None if q is None else _position(self, q)
    options: dict[str, Any] = {
        "meshes": meshes,
        "motion": motion,
        "result": result,
        "frame": frame,
        "live": live,
        "port": port,
        "dark": dark,
        "shadows": shadows,
    }
    return upper("view").show(self, shown, source, height=height, wait=wait, **options)


def _position(robot: Robot, q: Array) -> np.ndarray:
    """One position as an array of shape (nq,)."""
    found = np.asarray(without_names(robot, {"q": q}).arrays[0], dtype=float)
    if found.shape != (robot.nq,):
        raise ShapeError(f"q: expected shape ({robot.nq},), got {found.shape}")
    return found
