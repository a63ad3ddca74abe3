"""Model predictive path integral control: torques as a weighted mean of sampled ones (G. Williams et al., 2017).

Many copies of the robot are rolled out over the horizon with random torques around the last plan; each motion has a
weight e^(−(cost − least cost)/temperature), and the new plan is the mean of their torques. The cost is summed inside
the rollout, and the random torques are a function of seed, sample and time (``simulate.noise``): the weighted mean
draws them again, so that neither motions nor torques are stored. All sums have a fixed order: same seed, same bits, on
a CPU and on a GPU, with any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.compiler.runtime.arrays import is_foreign
from linkwise.core.once import once
from linkwise.errors import ShapeError, UnknownNameError
from linkwise.optimal.arguments import ProblemError
from linkwise.optimal.parameter_table import LOWER, UPPER
from linkwise.optimal.path_integral.sampling import Sampling
from linkwise.optimal.problem import Problem
from linkwise.robot.robot import Robot
from linkwise.simulate import arguments
from linkwise.simulate.noise import streams

BLOCK = 64
"""Samples that are summed one after the other; blocks are summed afterwards. It decides the bits."""
SPREAD = 0.2
"""[rad or m] standard deviation of joint positions at the end of the horizon that the default noise causes."""
MOST_NUMBERS = 1 << 22
"""Numbers of random torques: whole numbers that float32 has, with room for the steps of a horizon."""
MOST_NOISE = 0.3
"""Largest standard deviation of the default noise, by the torque limits."""


@dataclass(frozen=True, eq=False)
class SampledPlan:
    """Torques for a horizon, and how they were found."""

    u: np.ndarray
    """[N·m or N], shape (knots, m): each is held for ``hold`` steps. Always finite and within the limits."""
    cost: float
    """Of the motion with these torques; NaN where it diverges."""
    cost_before: float
    """The same of the plan before this call."""
    least: float
    """The smallest cost of all samples; infinite where none is finite."""
    effective: float
    """(Σ weights)²/Σ weights²: how many samples count. 1: the temperature is too low; 0: none was usable."""

    @property
    def failed(self) -> bool:
        """Whether no sample had a finite cost; ``u`` is the plan before this call then."""
        return self.effective == 0.0


class Mppi:
    """Sampling control: a plan of torques improved by weighted random rollouts, in machine code on a CPU or GPU.

    Args:
        problem: what is to be optimised; or a robot, with ``described``. Limits of states and tips count as costs,
            those of torques are always kept.
        samples: number of rollouts, rounded up to a multiple of 64. The first one follows the plan without noise.
        temperature: cost difference at which a weight falls to 1/e; small: nearly the best sample, large: the mean.
        noise: standard deviation of the random torques [N·m or N], one number or (m,); None: such that each joint
            alone, with its inertia in the neutral position, spreads by 0.2 rad or m over the horizon.
        hold: steps for which a torque is held; the horizon is a multiple of it.
        seed: of the random torques.
        dtype: "float64" or "float32".
        described: arguments of ``Problem``, for a robot: horizon, step, costs, terminal, …
    """

    def __init__(
        self,
        problem: Problem | Robot,
        *,
        samples: int = 1024,
        temperature: float = 1.0,
        noise: Any = None,
        hold: int = 1,
        seed: int = 0,
        dtype: str = "float64",
        **described: Any,
    ):
        if isinstance(problem, Robot):
            problem = Problem(problem, **described)
        elif not isinstance(problem, Problem) or described:
            raise ProblemError("problem: expected a Problem, or a robot with the arguments of one")
        if problem.dynamics.timed:
            raise ProblemError("problem: sampling is for steps of one duration")
        self.problem = problem
        self.hold = arguments.whole("hold", hold, 1)
        if problem.horizon % self.hold:
            raise ProblemError(f"hold: expected a divisor of the horizon {problem.horizon}, got {hold}")
        self.samples = -(-arguments.whole("samples", samples, 2) // BLOCK) * BLOCK
        self.temperature = arguments.number("temperature", temperature, above=0.0)
        self.noise = _deviations(problem, noise, self.hold)
        if dtype not in ("float64", "float32"):
            raise UnknownNameError(f"dtype: expected float64 or float32, got {dtype!r}")
        self.dtype = dtype
        self.seed = arguments.whole("seed", seed, 0)

    def __repr__(self) -> str:
        return f"<Mppi of {self.problem.robot.name}: {self.samples} samples, {self.problem.horizon} steps>"

    @property
    def knots(self) -> int:
        """Number of torques in a plan."""
        return self.problem.horizon // self.hold

    def plan(
        self,
        q: Any,
        qd: Any,
        u: Any = None,
        *,
        values: Mapping[str, Any] | None = None,
        draw: int = 0,
        iterations: int = 1,
        threads: int | None = None,
    ) -> SampledPlan:
        """A better plan for a state.

        Args:
            q: positions [rad or m], shape (nq,); an array on a GPU: the samples are computed there, with the same bits.
            qd: velocities, shape (n,).
            u: the plan so far, (knots, m); by default the torques that hold the robot against gravity.
            values: of run-time parameters, such as targets, see ``Problem.table``.
            draw: number of the call: other numbers, other random torques.
            iterations: how often the plan is improved.
            threads: number of threads.

        Returns:
            The plan with its costs.
        """
        problem, robot = self.problem, self.problem.robot
        state = [_state(*each) for each in (("q", q, robot.nq), ("qd", qd, robot.dof))]
        p = problem.p if values is None else problem.table(values)
        u = self._first(state[0]) if u is None else u
        x = self._joined(state, u)
        u = self.limited(u, p)
        turns = arguments.whole("iterations", iterations, 1)
        number = arguments.whole("draw", draw, 0) * turns
        made = self._improved(x, u, p, number, threads)
        before = made.cost_before
        for turn in range(1, turns):
            made = self._improved(x, made.u, p, number + turn, threads)
        cost = float(_numbers(self.costs(x, made.u, p, number, threads, samples=1))[0])
        return replace(made, cost=cost, cost_before=before)

    def limited(self, u: Any, p: np.ndarray | None = None) -> np.ndarray:
        """A plan within the torque limits, shape (knots, m).

        Args:
            u: torques [N·m or N], (knots, m) or one row for all; finite.
            p: table of run-time parameters, which has the limits.
        """
        problem = self.problem
        plan = np.asarray(u, dtype=float)
        try:
            plan = np.broadcast_to(plan, (self.knots, problem.nu))
        except ValueError:
            raise ShapeError(f"u: expected shape ({self.knots}, {problem.nu}), got {plan.shape}") from None
        if not np.isfinite(plan).all():
            raise ProblemError("u: a plan needs finite torques")
        bounds = self._bounds(problem.p if p is None else p)
        return np.clip(plan, bounds[:, : problem.nu], bounds[:, problem.nu :])

    def shifted(self, u: np.ndarray, time: float) -> np.ndarray:
        """A plan seen ``time`` [s] later: between two torques it is interpolated, and the last one is kept.

        Args:
            u: the plan, shape (knots, m).
            time: since the plan was made [s].
        """
        time = arguments.number("time", time, least=0.0)
        if np.shape(u) != (self.knots, self.problem.nu):
            raise ShapeError(f"u: expected shape ({self.knots}, {self.problem.nu}), got {np.shape(u)}")
        u = np.asarray(u, dtype=float)
        at = np.minimum(np.arange(self.knots) + time / (self.problem.step * self.hold), self.knots - 1.0)
        low = at.astype(int)
        part = (at - low)[:, np.newaxis]
        return (1.0 - part) * u[low] + part * u[np.minimum(low + 1, self.knots - 1)]

    # -- one improvement ----------------------------------------------------------------------------------------------

    def _improved(
        self, x: Any, plan: np.ndarray, p: np.ndarray, number: int, threads: int | None
    ) -> SampledPlan:
        """The steps of the method. Where the state is on a GPU, all arrays of samples are."""
        costs = self.costs(x, plan, p, number, threads)
        least, sums = self.sums(costs, plan, p, number, threads)
        beside = (_beside(np.ascontiguousarray(each, self.dtype), sums) for each in (plan, self._bounds(p)))
        u = _numbers(self.kernels.mean(sums, *beside, threads=threads)).astype(float)
        weight, squares = _numbers(sums)[0, -2:]
        return SampledPlan(
            u,
            math.nan,
            float(_numbers(costs)[0]),
            float(_numbers(least)[0]),
            float(weight * weight / squares) if squares > 0.0 else 0.0,
        )

    def costs(
        self,
        x: Any,
        plan: np.ndarray,
        p: np.ndarray,
        number: int,
        threads: int | None = None,
        samples: int | None = None,
    ) -> Any:
        """Costs of all samples, shape (samples,); NaN for motions that diverge.

        Args:
            x: the state that they start from, shape (ns,).
            plan: torques around which samples are drawn, shape (knots, m).
            p: table of run-time parameters.
            number: of the improvement, which decides the random torques.
            threads: number of threads.
            samples: of the first ones alone; the first one follows the plan without noise.
        """
        options: dict[str, Any] = {"dtype": self.dtype, "threads": threads}
        count = self.samples if samples is None else samples
        numbers = np.repeat(self._numbers_of(number), self.hold, axis=0)
        stages = np.concatenate([np.repeat(plan, self.hold, axis=0), p[:-1], numbers], axis=1)
        constants = self._constants(x)
        fixed = {"noise": constants["noise"]} | {key: constants[key][:count] for key in ("stream", "spread")}
        given = {"x": x, "cost": [0.0], "stage": stages.ravel(), **fixed}
        final, _ = self.kernels.rollout(given, steps=self.problem.horizon, **options)
        last = _beside(p[-1].astype(self.dtype), final["x"])
        return self.kernels.ending(final["x"], final["cost"], last, threads=threads).reshape(count)

    def sums(
        self, costs: Any, plan: np.ndarray, p: np.ndarray, number: int, threads: int | None = None
    ) -> tuple[Any, Any]:
        """The least cost (1,), and for every torque of the plan Σ w τ, Σ w and Σ w², shape (knots, m + 2).

        Args:
            costs: of all samples, shape (samples,).
            plan, p, number, threads: as for ``costs``.
        """
        kernels, blocks, size = self.kernels, self.samples // BLOCK, self.problem.nu + 2
        options: dict[str, Any] = {"dtype": self.dtype, "threads": threads}
        constants = self._constants(costs)
        infinite, zeros = {"least": constants["infinite"]}, constants["zeros"]
        least = kernels.least({**infinite, "cost": costs.reshape(blocks, BLOCK)}, steps=BLOCK, **options)[0][
            "least"
        ]
        least = kernels.least({**infinite, "cost": least.reshape(blocks)}, steps=blocks, **options)[0][
            "least"
        ]
        given = {
            "sums": zeros, "noise": constants["noise"], "plan": plan[:, np.newaxis],
            "bounds": self._bounds(p)[:, np.newaxis], "number": self._numbers_of(number)[:, np.newaxis],
            "least": least, "temperature": constants["temperature"],
            "sample": self._with_costs(costs).reshape(blocks, 4 * BLOCK),
        }  # fmt: skip
        sums = kernels.summed(given, steps=BLOCK, **options)[0]["sums"].reshape(self.knots, blocks * size)
        return least, kernels.joined({"sums": zeros, "part": sums}, steps=blocks, **options)[0]["sums"]

    def _numbers_of(self, number: int) -> np.ndarray:
        """Numbers of the random torques of an improvement, (knots, 1)."""
        return (number * self.knots + np.arange(float(self.knots))[:, np.newaxis]) % MOST_NUMBERS

    def _constants(self, beside: Any) -> dict[str, Any]:
        """Arrays that never change, placed once where another one is."""
        place = str(getattr(beside, "device", "")) if is_foreign(beside) else ""
        known = self.__dict__.setdefault("_placed", {})
        if (type(beside), place) not in known:
            names = self._names
            arrays = {
                "noise": self.noise,
                "stream": names[:, :2],
                "spread": names[:, 2:],
                "infinite": np.array([np.inf]),
                "zeros": np.zeros(self.problem.nu + 2),
                "temperature": np.array([self.temperature]),
            }
            known[type(beside), place] = {
                name: _beside(np.ascontiguousarray(array, self.dtype), beside)
                for name, array in arrays.items()
            }
        return known[type(beside), place]

    @once
    def kernels(self) -> Sampling:
        """The machine code of all steps."""
        return Sampling(self.problem, self.dtype)

    @once
    def _names(self) -> np.ndarray:
        """For every sample two numbers that name it, and the scale of its noise: none for the first, (samples, 3)."""
        names = streams(self.seed, self.samples, self.dtype)
        spread = np.ones((self.samples, 1), self.dtype)
        spread[0] = 0.0
        return np.concatenate([names, spread], axis=1)

    def _with_costs(self, costs: Any) -> Any:
        """What the weighted mean needs of every sample, (samples, 4): beside the costs, on a GPU if they are there."""
        column = costs.reshape(self.samples, 1)
        if not is_foreign(column):
            return np.concatenate([self._names, column], axis=1)
        both = _beside(np.concatenate([self._names, np.zeros_like(self._names[:, :1])], axis=1), column)
        both[:, 3:] = column
        return both

    def _bounds(self, p: np.ndarray) -> np.ndarray:
        """Lower and upper limits of the torques of a plan, (knots, 2m); infinite where there are none."""
        problem = self.problem
        if not problem.boxed:
            return np.tile(np.repeat([-np.inf, np.inf], problem.nu), (self.knots, 1))
        rows = p[: problem.horizon : self.hold]
        return np.concatenate([rows[:, problem.where(LOWER)], rows[:, problem.where(UPPER)]], axis=1)

    def _first(self, q: Any) -> np.ndarray:
        """The torques that hold the robot, or zeros where the state is no number."""
        given = _numbers(q).astype(self.dtype)  # in one precision, wherever the state is
        held = np.asarray(self.problem.robot.gravity_torques(given), dtype=float)
        return np.where(np.isfinite(held), held, 0.0)[list(self.problem.dynamics.driven)]

    def _joined(self, state: Sequence[Any], u: Any) -> Any:
        """(q, q̇) and, where costs need it, the torques before: the first ones of the plan."""
        numbers = [_numbers(part).astype(float) for part in state]
        more = np.atleast_2d(np.asarray(u, dtype=float))[0] if self.problem.dynamics.remembers else ()
        x = np.concatenate([*numbers, more]).astype(self.dtype)
        like = next((part for part in state if is_foreign(part)), None)
        return x if like is None else _beside(x, like)


def _state(name: str, value: Any, size: int) -> Any:
    found = arguments.state(name, value, size)
    if tuple(found.shape) != (size,):
        raise ShapeError(f"{name}: expected shape ({size},), got {tuple(found.shape)}")
    return found


def _beside(array: np.ndarray, other: Any) -> Any:
    """An array where another one is, in its own precision."""
    if not is_foreign(other):
        return array
    from linkwise.gpu.rollout import placed_like

    return placed_like(array, other)


def _numbers(value: Any) -> np.ndarray:
    """An array of any library as NumPy's."""
    if not is_foreign(value):
        return np.asarray(value)
    if hasattr(value, "get"):
        return value.get()
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def _deviations(problem: Problem, noise: Any, hold: int) -> np.ndarray:
    """Standard deviations of the random torques (m,).

    White noise of accelerations with deviation a, drawn every ``knot`` [s], moves a joint by a deviation of
    a √knot horizon^1.5/√3 until the end of the horizon [s].
    """
    if noise is not None:
        return arguments.per_joint("noise", noise, problem.nu, least=0.0)
    knot, horizon = problem.step * hold, problem.step * problem.horizon
    rate = SPREAD * math.sqrt(3.0) / (math.sqrt(knot) * horizon**1.5)
    inertias = np.diag(np.asarray(problem.robot.mass_matrix(problem.robot.neutral)))
    most = MOST_NOISE * np.maximum(np.abs(problem.torque_lower), np.abs(problem.torque_upper))
    return np.minimum(rate * inertias[list(problem.dynamics.driven)], most)
