"""How the tests of this folder evaluate a function, and how they compare.

``value`` runs an algorithm on NumPy arrays, the reference path, and ``scalars`` on a list of any scalars; compiled
kernels are compared with the first in test_kernels.py, so that everything else need not be compiled.
"""

from __future__ import annotations

import numpy as np

from linkwise.functions import arrays
from linkwise.functions.evaluation import outputs_of
from linkwise.functions.table import FUNCTIONS, Setting, function_named

EXACT = 1e-11  # relative, for identities and agreement: round-off of a dozen links stays below, a wrong term does not


def value(robot, name, algorithm=None, *, friction=True, frame=None, **given):
    """The (first) output of a function on the array path."""
    function = function_named(name)
    setting = Setting(
        robot,
        friction=friction,
        frame=frame,
        wrench=given.get("wrench") is not None,
        start=given.get("start") is not None,
    )
    results = arrays.run_on_arrays(function, setting, function.algorithm(algorithm), given)
    return next(iter(results.values()))


def scalars(robot, name, algorithm=None, *, friction=True, frame=None, **given):
    """The (first) output as nested lists of the scalars that the inputs are lists of."""
    function = function_named(name)
    setting = Setting(robot, friction=friction, frame=frame)
    return next(iter(outputs_of(function, setting, function.algorithm(algorithm), **given).values()))


def algorithms(name: str) -> tuple[str, ...]:
    return tuple(FUNCTIONS[name].algorithms)


def norm(x) -> np.ndarray:
    """Euclidean norm of the last axis."""
    return np.linalg.norm(np.asarray(x), axis=-1)


def torque_scale(robot, q, qd, qdd, *extra) -> np.ndarray:
    """‖M‖‖q̈‖ + ‖b‖ + ‖what is given besides‖: the size of what adds up to a torque, per state."""
    M = value(robot, "mass_matrix", q=q)
    b = value(robot, "bias_torques", q=q, qd=qd)
    rubbed = value(robot, "inverse_dynamics", q=q, qd=qd, qdd=0 * qd) - value(
        robot, "inverse_dynamics", q=q, qd=qd, qdd=0 * qd, friction=False
    )
    return np.linalg.norm(M, axis=(-2, -1)) * norm(qdd) + norm(b) + norm(rubbed) + sum(norm(x) for x in extra)


def assert_near(found, wanted, tolerance=EXACT, scale=None, what="") -> None:
    """‖found − wanted‖ ≤ tolerance·scale, entry by entry against one scale (default: the largest entry wanted)."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, f"{what}: shape {found.shape}, expected {wanted.shape}"
    if not found.size:
        return
    if scale is None:
        scale = np.max(np.abs(wanted))
    scale = np.asarray(scale)
    scale = scale.reshape(scale.shape + (1,) * (found.ndim - scale.ndim))
    error = np.abs(found - wanted)
    bad = ~(error <= tolerance * scale)  # a NaN is bad
    assert not bad.any(), (
        f"{what}: off by {np.max(error / np.maximum(scale, 1e-300)):.3g} relative, allowed {tolerance:g}"
    )
