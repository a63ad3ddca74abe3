"""A closed loop as source code: what ``simulate`` runs, for a controller's computer or a GPU program of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.control import Controller
from linkwise.robot.robot import Robot
from linkwise.simulate.plant import Plant
from linkwise.simulate.run import Times, closed_loop


def source(
    plant: Robot | Plant,
    controller: Controller,
    reference: Any = None,
    *,
    target: str = "c",
    step: float = 1e-3,
    control_period: float | None = None,
    continuous: bool = False,
    integrator: str = "rk4",
    delay: int = 0,
    vary: Sequence[str] = (),
    record: Sequence[str] = (),
    stabilization: float | str | None = None,
    dtype: str = "float64",
    **options: Any,
) -> str:
    """The loop that ``simulate`` runs with these arguments, as source code of a target ("c" or "cuda").

    Args:
        plant, controller, reference, step, control_period, continuous, integrator, delay, record, stabilization, dtype:
            as in ``simulate``; step and control period in seconds.
        target: the language.
        vary: names of the robot's parameters that stay arguments of the function: "payload" or labels.
        options: those of the target, such as ``main=True`` for C.

    Returns:
        The text. The C function takes what is carried (q, qd, …; changed in place), the parameters (the time step,
        gains, …), the reference's table, arrays for what is recorded, the number of steps and how many go by between
        two recorded ones. It allocates nothing and returns the bits of ``simulate``.
    """
    plant = Plant(plant) if isinstance(plant, Robot) else plant
    if not isinstance(controller, Controller):
        raise TypeError(
            "controller: a Python function has no source code; use a controller of linkwise.control"
        )
    times = Times.of(0.0, step, control_period, 1)
    loop = closed_loop(
        plant,
        controller,
        reference,
        times,
        integrator=integrator,
        continuous=continuous,
        delay=delay,
        varied=vary,
        record=record,
        stabilization=stabilization,
    )
    numbers = loop.numbers(times.step, times.substeps)
    values = "; ".join(f"{name} = {np.asarray(value).tolist()}" for name, value in numbers.items())
    options.setdefault(
        "description", f"{plant.robot.name} in a closed loop. Parameters of this loop: {values}."
    )
    return loop.kernel().source(target, dtype, **options)
