"""Ready environments by name, and where their robots come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.environments.environment import Environment
from linkwise.environments.ready import acrobot, cart_pole, joystick, panda_reach
from linkwise.environments.ready.joystick import Legged
from linkwise.environments.task import Task
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


def _go2(robot: Any = None, **options: Any) -> Task:
    from linkwise.environments.robots import found

    return joystick.task(found("go2", robot), GO2, **options)


TASKS: dict[str, Callable[..., Task]] = {
    "cart_pole": cart_pole.task,
    "acrobot": acrobot.task,
    "panda_reach": panda_reach.task,
    "go2_joystick": _go2,
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
