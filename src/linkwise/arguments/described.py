"""Descriptions of arguments that many functions share: written once, added to the docstrings of the functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

SHARED = {
    "robot": "the robot.",
    "q": "positions [rad or m], shape (..., nq).",
    "qd": "velocities [rad/s or m/s], shape (..., n).",
    "v": "velocities [rad/s or m/s], shape (..., n).",
    "qdd": "accelerations [rad/s² or m/s²], shape (..., n).",
    "a": "accelerations [rad/s² or m/s²], shape (..., n).",
    "tau": "torques [N·m or N], shape (..., n).",
    "torque": "torques [N·m or N], shape (..., n).",
    "frame": "name of the frame; by default the only leaf.",
    "algorithm": "one of ``robot.algorithms(name)``; by default the first.",
    "friction": "whether viscous and Coulomb terms count; rotor inertia always does.",
    "stabilization": "rate [1/s] at which errors of constraints decay (Baumgarte); none by default.",
    "q0": "first positions [rad or m], shape (..., nq).",
    "q1": "second positions [rad or m], shape (..., nq).",
    "step": "length of a step in time [s]; part of the compiled code (kernels have it as the input ``time_step``).",
    "contact_friction": (
        "coefficients of friction of the candidates in place of the robot's, at least 0, shape (..., contacts) or one "
        "number."
    ),
    "ground_height": ("height of the ground under every candidate [m], shape (..., contacts) or one number."),
    "accuracy": (
        "largest residual that nearly all states should have; 1e-6 by default. It decides how many sweeps and Newton's "
        "steps are computed."
    ),
    "smoothing": (
        "of derivatives (``vjp``, ``jacobian``, those of JAX and PyTorch) [m/s]: a contact that opens or closes acts "
        "on them over this range of velocities, and over a range of gaps of as much times the step. 0, the default, "
        "gives those of the law. Values are the same."
    ),
    "out": "array that takes the result; a tuple of them for several results.",
    "threads": "number of threads; by default all cores where the batch is large enough.",
}
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def described(**own: str) -> Callable[[AnyFunction], AnyFunction]:
    """A decorator: adds a section ``Args`` to a docstring that has none.

    Args:
        **own: descriptions of arguments that are not in ``SHARED``, or mean something else here.
    """
    texts = {**SHARED, **own}

    def add(function: AnyFunction) -> AnyFunction:
        text = inspect.cleandoc(function.__doc__ or "")
        code = function.__code__
        names = [n for n in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if n != "self"]
        if text and len(names) > 1 and "Args:\n" not in text and all(name in texts for name in names):
            section = "\n".join(["Args:", *(f"    {name}: {texts[name]}" for name in names)])
            about, returns, result = text.partition("\n\nReturns:")
            function.__doc__ = f"{about}\n\n{section}{returns}{result}"
        return function

    return add
