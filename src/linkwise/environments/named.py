"""Ready environments by name, and where their robots come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.environments.environment import Environment
from linkwise.environments.ready import acrobot, cart_pole, cube_lift, joystick, panda_reach
from linkwise.environments.ready.joystick import Legged
from linkwise.environments.robots import found
from linkwise.environments.tasks import Task
from linkwise.errors import UnknownNameError, suggest

_LEGS = ("FL", "FR", "RL", "RR")
GO2 = Legged(
    "go2",
    tuple((f"{leg}_calf", (-0.002, 0.0, -0.213)) for leg in _LEGS),
    0.022,
    (0.0, 0.9, -1.8) * 4,
    0.29,
    0.15,
    "base",
    torque_limits=(23.7, 23.7, 45.43) * 4,
)


ANYMAL = Legged(
    "anymal",
    tuple(
        (f"{side}{end}_SHANK", ((1 if end == "F" else -1) * 0.1, (-1 if side == "R" else 1) * -0.02, -0.298))
        for end in "FH"
        for side in "LR"
    ),
    0.031,
    (0.0, 0.4, -0.8, 0.0, 0.4, -0.8, 0.0, -0.4, 0.8, 0.0, -0.4, 0.8),
    0.57,
    0.3,
    "base",
    kp=80.0,
    kd=2.0,
    torque_limits=80.0,
    command=(1.0, 0.6, 1.0),
)
"""Posture and gains of legged_gym (N. Rudin et al., "Learning to walk in minutes", 2022)."""
_G1_LEG, _G1_ARM = (-0.312, 0.0, 0.0, 0.669, -0.363, 0.0), (0.2, 0.22, 0.0, 0.6, 0.0, 0.0, 0.0)
G1 = Legged(
    "g1",
    tuple(
        (f"{side}_ankle_roll_link", place)
        for side in ("left", "right")
        for place in (
            (-0.05, 0.025, -0.03),
            (-0.05, -0.025, -0.03),
            (0.12, 0.03, -0.03),
            (0.12, -0.03, -0.03),
        )
    ),
    0.005,
    (*_G1_LEG, *_G1_LEG, 0.0, 0.0, 0.0, *_G1_ARM, 0.2, -0.22, 0.0, 0.6, 0.0, 0.0, 0.0),
    0.76,
    0.5,
    "pelvis",
    kp=75.0,
    kd=2.0,
    torque_limits=88.0,
    posture_weights=(0.1,) * 12 + (1.0,) * 17,
    command=(1.0, 0.5, 1.0),
    air_time=0.2,
    weights={
        "air_time": 2.0,
        "foot_clearance": 0.0,
        "foot_height": 0.0,
        "orientation": -2.0,
        "termination": -100.0,
    },
    accuracy=1e-2,
)
"""Posture of MuJoCo Playground's ``G1JoystickFlatTerrain``; its clock of steps is left out."""


def _legged(legged: Legged) -> Callable[..., Task]:
    def made(robot: Any = None, **options: Any) -> Task:
        return joystick.task(found(legged.name, robot), legged, **options)

    return made


TASKS: dict[str, Callable[..., Task]] = {
    "cart_pole": cart_pole.task,
    "acrobot": acrobot.task,
    "panda_reach": panda_reach.task,
    "cube_lift": cube_lift.task,
    "go2_joystick": _legged(GO2),
    "anymal_joystick": _legged(ANYMAL),
    "g1_walk": _legged(G1),
}


def names() -> list[str]:
    """Names of the ready environments."""
    return sorted(TASKS)


def task(name: str, **options: Any) -> Task:
    """A ready task.

    Args:
        name: one of ``names()``.
        **options: ``robot`` (a robot or its file) and others of the task.

    Raises:
        UnknownNameError: no such name.
    """
    if name not in TASKS:
        raise UnknownNameError(f"no environment {name!r}; {suggest(name, TASKS)}")
    return TASKS[name](**options)


def make(
    name: str,
    num_envs: int = 1,
    *,
    device: str = "cpu",
    arrays: str | None = None,
    dtype: str = "float32",
    first: int = 0,
    threads: int | None = None,
    **options: Any,
) -> Environment:
    """A ready environment.

    Args:
        name: one of ``names()``.
        num_envs: how many environments are stepped together.
        device: "cpu", "cuda" or "cuda:1".
        arrays: "numpy", "torch", "jax" or "cupy"; by default NumPy on the CPU, PyTorch or else CuPy on a GPU.
        dtype: "float32" or "float64".
        first: number of the first environment.
        threads: for the CPU; by default all cores where that is worth it.
        **options: of the task, such as ``robot="go2.xml"``.
    """
    made = task(name, **options)
    return Environment(
        made, num_envs, device=device, arrays=arrays, dtype=dtype, first=first, threads=threads
    )
