"""The closed loop stepped from Python: for controllers that are Python functions, and for robots too large to
fuse.

Sensors, drives and delays are the same lines as in the fused loop, run on arrays; the plant advances by a
kernel, or on arrays where it is too large for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwise.algorithms import joint_terms
from linkwise.compiler.kernel import Kernel, traced_kernel
from linkwise.control import Controller, Reference
from linkwise.errors import ShapeError
from linkwise.model.constraints import TARGETS
from linkwise.robot.kernels import evaluate, shared
from linkwise.robot.robot import Robot
from linkwise.simulate.integrators import INTEGRATORS, Space, space_of
from linkwise.simulate.loop import CONTACT_NUMBERS, TOUCH, ClosedLoop
from linkwise.simulate.moving import PROJECTION, Motion
from linkwise.simulate.noise import normal

COMPILED_JOINTS = 48
"""Up to here the accelerations of a robot that is too large to fuse are a kernel."""


def run_from_python(
    loop: ClosedLoop,
    controller: Controller | Callable[..., Any],
    given: dict[str, np.ndarray],
    batch: tuple[int, ...],
    steps: int,
    every: int,
    period: float,
    dtype: str,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What a rollout kernel gives: the final state, and the recorded rows."""
    n = loop.dof
    values = {
        name: np.broadcast_to(np.asarray(v, dtype), (*batch, np.shape(v)[-1])) for name, v in given.items()
    }
    columns = {name: _columns(array) for name, array in values.items()}
    q, qd = (np.array(values[name]) for name in ("q", "qd"))
    memory, line, sensed = (columns.get(name, []) for name in ("memory", "line", "sensed"))
    touch = values.get(TOUCH)
    advance = _advance(loop, columns)
    sensors, drives = loop.plant.sensors, loop.plant.drives
    rows: dict[str, list[np.ndarray]] = {name: [] for name in loop.record}
    for s in range(steps):
        drawn = _drawn(columns["stream"], s, n, dtype) if sensors.noisy else []
        seen_q, seen_qd, sensed = sensors.measured(columns, _columns(q), _columns(qd), sensed, period, drawn)
        moment = tuple(
            np.asarray(part)[..., 0, :] for part in loop.source.moment(np.array([s * period]), batch, n)
        )
        if isinstance(controller, Controller):
            target = Reference(
                *(_columns(np.broadcast_to(part, (*batch, part.shape[-1]))) for part in moment)
            )
            law, gains = loop.law(loop.with_wrench(columns, s * period))
            limited, following = law.limited(law.links(), gains, seen_q, seen_qd, target, memory, period)
            wanted: list[Any] = [np.broadcast_to(np.asarray(t, dtype), batch) for t in limited]
        else:
            answer = controller(s * period, _array(seen_q), _array(seen_qd), moment)
            torques = _columns(_checked(np.asarray(answer, dtype=dtype), batch, n))
            wanted, following = loop.controller.saturated(torques), []
        sent, line = loop._delayed(wanted, list(line))
        tau = _array(drives.driven(columns, sent))
        if s % every == 0:
            seen = {"command": wanted, "q_measured": seen_q, "qd_measured": seen_qd, "memory": memory}
            recorded = {"q": q, "qd": qd, "tau": tau} | {
                name: _array(parts) if len(parts) else np.zeros((*batch, 0)) for name, parts in seen.items()
            }
            for name in loop.record:
                rows[name].append(np.array(recorded[name]))
        torque = loop.pushed(columns, lambda at, q, qd, sent=tau: _columns(sent), _columns(q), s * period)
        q, qd, touch = advance(q, qd, _array(torque(0.0, q, qd)), touch)
        memory = following
    empty = {
        name: np.zeros((*batch, 0, *loop.interface.written[f"record_{name}"]), dtype) for name in loop.record
    }
    written = {
        f"record_{name}": np.stack(found, axis=-2) if found else empty[name] for name, found in rows.items()
    }
    return {"q": q, "qd": qd} | ({} if touch is None else {TOUCH: touch}), written


def _drawn(stream: list[Any], step: int, n: int, dtype: str) -> list[Any]:
    """The noise of a step: a column for every channel of the sensors."""
    number: Any = np.asarray(step, dtype)
    channel: Any = np.arange(2 * n, dtype=dtype)
    return _columns(normal([column[..., np.newaxis] for column in stream], number, channel, dtype))


def _advance(
    loop: ClosedLoop, columns: dict[str, list[np.ndarray]]
) -> Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """A function (q, qd, tau, touch) -> (q, qd, touch) one control period later; touch is None without contacts."""
    n = loop.dof
    names = [
        name
        for name in ("step", "substeps", "breakaway", *CONTACT_NUMBERS, TARGETS, *loop.varied)
        if name in columns
    ]

    def period(q, qd, tau, **values):
        h, touch = values["step"][0], values.pop(TOUCH, ())
        new = loop.advanced(values, lambda at, q, qd: tau, list(q), list(qd), h, touch=touch)
        return new if loop.touches else new[:2]

    if not loop.fits_a_kernel:
        return _on_arrays(loop, {name: columns[name] for name in names})
    nq = loop.plant.robot.nq
    sizes = {"q": nq, "qd": n, "tau": n} | {name: len(columns[name]) for name in names}
    shapes = {"next_q": (nq,), "next_qd": (n,)}
    if loop.touches:
        names.insert(0, TOUCH)
        sizes = {"q": nq, "qd": n, "tau": n} | {name: len(columns[name]) for name in names}
        shapes["next_touch"] = (len(columns[TOUCH]),)

    plant = loop.plant
    content = (
        plant.robot.content_without_targets(),
        plant.friction,
        loop.integrator,
        loop.substeps,
        loop.varied,
    )
    content = (*content, loop.stabilization, loop.accuracy)
    kernel = shared(plant.robot, traced_kernel("advance", period, sizes, shapes, "float64", content))
    parameters = [_array(columns[name]) for name in names if name != TOUCH]

    def compiled(q, qd, tau, touch):
        if touch is None:
            return (*kernel(q, qd, tau, *parameters), None)
        return kernel(q, qd, tau, touch, *parameters)

    return compiled


def _on_arrays(loop: ClosedLoop, values: dict[str, Any]) -> Callable[..., Any]:
    """The same function for robots that are too large for one kernel of a control period."""
    own = loop.motion(values)
    if own.scene is not None:
        own = TouchingMotion(own.links, own.friction, own.held, own.stabilization, own.scene, own.accuracy)
        object.__setattr__(own, "robot", loop.plant.robot)
    elif loop.dof <= COMPILED_JOINTS and not loop.varied and CompiledMotion.takes(own):
        own = CompiledMotion.compiled(loop)

    def on_arrays(q, qd, tau, touch):
        h, acting, left = values["step"][0], _columns(tau), [] if touch is None else _columns(touch)
        new = loop.advanced(values, lambda at, q, qd: acting, _columns(q), _columns(qd), h, own, left)
        return _array(new[0]), _array(new[1]), None if touch is None else _array(new[2])

    return on_arrays


class TouchingMotion(Motion):
    """The motion of a robot with contacts that is too large for one kernel of a whole control period: every step is a
    call of ``contact_step``."""

    robot: Robot

    def touched(self, values: Any, tau: Any, q: Any, qd: Any, h: Any, touch: Any = ()):
        given = {"q": _array(q), "qd": _array(qd), "tau": _array(tau), "time_step": _array([h])}
        given |= {name: _array(values[name]) for name in CONTACT_NUMBERS if name in values}
        if len(touch) > 1:
            given["start_impulse"] = _array(touch[:-1])
        options = dict.fromkeys(given, True) | {"friction": self.friction, "accuracy": self.accuracy}
        setting = self.robot.contact_setting(options)
        new_q, new_qd, impulse = evaluate("contact_step", setting, None, given)
        residual = evaluate("contact_residual", setting, None, given)
        impulses = _columns(impulse.reshape(*impulse.shape[:-2], -1))
        worst = np.maximum(touch[-1], residual) if len(touch) else residual
        return _columns(new_q), _columns(new_qd), [*impulses, worst]


class CompiledMotion(Motion, Space):
    """The motion of a robot that is too large for one kernel of a whole step: accelerations, positions and the
    projection onto the constraints are kernels of their own, and the integrator runs on whole arrays."""

    kernels: Mapping[str, Kernel]

    @staticmethod
    def takes(motion: Motion) -> bool:
        """Whether the step needs nothing but accelerations and projections."""
        return not (motion.friction and joint_terms.has_dry_friction(motion.links))

    @classmethod
    def compiled(cls, loop: ClosedLoop) -> CompiledMotion:
        robot, plain = loop.plant.robot, loop.motion({})
        nq, n = robot.nq, robot.dof
        content = (robot.content_without_targets(), plain.friction, plain.stabilization)
        count = loop.interface.parameters.get(TARGETS, 0)
        targets = {TARGETS: count} if count else {}

        def motion(given: Mapping[str, Any]) -> Motion:
            return loop.motion(given) if given else plain

        def kernel(name: str, function, sizes: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> Kernel:
            return shared(robot, traced_kernel(name, function, sizes, shapes, "float64", (name, content)))

        space = space_of(plain.links)
        kernels = (
            kernel(
                "accelerations",
                lambda q, qd, tau, **given: {"qdd": motion(given).accelerated(q, qd, tau).qdd},
                {"q": nq, "qd": n, "tau": n, **targets},
                {"qdd": (n,)},
            ),
            kernel(
                "projection",
                lambda q, qd, **given: motion(given).projected(q, qd),
                {"q": nq, "qd": n, **targets},
                {"next_q": (nq,), "next_qd": (n,)},
            ),
            kernel(
                "moved",
                lambda q, step: {"next_q": space.moved(q, step)},
                {"q": nq, "step": n},
                {"next_q": (nq,)},
            ),
            kernel(
                "step_rates",
                lambda step, qd: {"rates": space.step_rates(step, qd)},
                {"step": n, "qd": n},
                {"rates": (n,)},
            ),
        )
        made = cls(plain.links, plain.friction, plain.held, plain.stabilization)
        object.__setattr__(made, "kernels", {each.name: each for each in kernels})
        return made

    # the lists of the integrators hold one array of all coordinates each

    def moved(self, q, step):
        return [self.kernels["moved"](*q, *step)]

    def step_rates(self, step, qd):
        return [self.kernels["step_rates"](*step, *qd)]

    def advanced(self, values, integrator, torque, q, qd, h):
        h = np.asarray(h)[..., np.newaxis]
        targets = [_array(values[TARGETS])] if TARGETS in values else []

        def acceleration(at, q, qd):
            acting = torque(at, _columns(*q), _columns(*qd))
            return [self.kernels["accelerations"](*q, *qd, _array(acting), *targets)]

        (new_q,), (new_qd,) = INTEGRATORS[integrator](acceleration, [_array(q)], [_array(qd)], h, self)
        if self.held and self.stabilization == PROJECTION:
            new_q, new_qd = self.kernels["projection"](new_q, new_qd, *targets)
        return _columns(new_q), _columns(new_qd)


def _checked(torques: np.ndarray, batch: tuple[int, ...], n: int) -> np.ndarray:
    """What a Python function returned, in the shape of the batch."""
    if torques.shape[-1:] not in ((), (1,), (n,)) or torques.shape[:-1] not in ((), batch):
        raise ShapeError(f"controller: expected torques of shape {(*batch, n)}, got {torques.shape}")
    return np.broadcast_to(torques, (*batch, n))


def _columns(array: Any) -> list[Any]:
    """One array per joint."""
    return list(np.moveaxis(array, -1, 0))


def _array(columns) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*columns), axis=-1)
