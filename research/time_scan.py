"""The Riccati recursion as a scan over time: logarithmic depth instead of one stage after the other.

S. Särkkä and Á. García-Fernández, "Temporal parallelization of dynamic programming and linear quadratic control", 2023.
An element stands for a run of stages: the least cost from a state x at its begin to a state y at its end,

    V(x, y) = max_λ  ½ xᵀJx − ηᵀx + λᵀ(y − A x − b) − ½ λᵀCλ      (up to a constant)

Two runs that follow each other join to one (``joined``), in any grouping. All stages joined with the end of the horizon
give the value functions of all stages at once. C is to a run what the covariance is to the Kalman filter, J what the
information is: the same formulas, with time reversed, are those of the parallel filter and smoother.

The order of operations is another one than that of the sweep, so the last bits differ; and joining two runs takes about
five times the operations of a stage of the sweep. Kernels therefore take problems side by side and sweep each of them;
this is the form for few problems on very many processors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.core.scan_order import START, applications, joins


@dataclass(frozen=True, eq=False)
class Run:
    """Stages that follow each other."""

    A: np.ndarray
    b: np.ndarray
    C: np.ndarray
    eta: np.ndarray
    J: np.ndarray


def stage_run(
    A: np.ndarray, B: np.ndarray, gap: np.ndarray, gradient: np.ndarray, hessian: np.ndarray
) -> Run:
    """One stage with its torques eliminated.

    Args:
        A: derivatives of the next state by the state (n, n).
        B: by the torques (n, m).
        gap: what the next state is off (n,).
        gradient: of the cost by (x, u), (n + m,).
        hessian: of the cost, (n + m, n + m); its block of the torques must be positive.
    """
    n = len(A)
    Quu, Qux, qu = hessian[n:, n:], hessian[n:, :n], gradient[n:]
    solved = np.linalg.solve(Quu, np.column_stack([B.T, Qux, qu]))
    by_B, by_x, by_1 = solved[:, :n], solved[:, n : 2 * n], solved[:, -1]
    return Run(
        A - B @ by_x, gap - B @ by_1, B @ by_B, Qux.T @ by_1 - gradient[:n], hessian[:n, :n] - Qux.T @ by_x
    )


def end_run(gradient: np.ndarray, hessian: np.ndarray) -> Run:
    """The end of the horizon.

    Args:
        gradient: of the cost of the last state (n,).
        hessian: of it (n, n).
    """
    zero = np.zeros_like(hessian)
    return Run(zero, np.zeros_like(gradient), zero, -gradient, hessian)


def joined(first: Run, second: Run) -> Run:
    """Two runs as one.

    Args:
        first: the earlier run.
        second: the run that follows it.
    """
    n = len(first.A)
    between = np.eye(n) + first.C @ second.J
    moved = np.linalg.solve(
        between, np.column_stack([first.A, first.C, (first.b + first.C @ second.eta)[:, None]])
    )
    A, C, b = moved[:, :n], moved[:, n : 2 * n], moved[:, -1]
    back = np.linalg.solve(between.T, np.column_stack([second.eta - second.J @ first.b]))[:, 0]
    return Run(
        second.A @ A,
        second.A @ b + second.b,
        second.A @ C @ second.A.T + second.C,
        first.A.T @ back + first.eta,
        first.A.T @ second.J @ A + first.J,
    )


def value_functions(stages: list[Run], end: Run) -> list[tuple[np.ndarray, np.ndarray]]:
    """(gradient, Hessian) of the value function of every stage, in the order of time, by a scan from the end.

    Args:
        stages: one run for each stage.
        end: the end of the horizon.
    """
    # the scan goes from the end to the begin: place 0 is the end
    runs = [end, *reversed(stages)]
    kept = list(runs)
    for level in joins(len(runs)):
        for left, right in level:
            kept[right] = joined(kept[right], kept[left])
    known: dict[int, Run] = {}
    for level in applications(len(runs)):
        for left, right in level:
            known[right] = kept[right] if left == START else joined(kept[right], known[left])
    known[len(runs) - 1] = joined(runs[-1], known[len(runs) - 2])
    return [(-known[k].eta, known[k].J) for k in range(len(stages), 0, -1)]
