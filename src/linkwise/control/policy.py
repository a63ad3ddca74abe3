"""A network as a control law: observations in, actions out, over abstract scalars.

Sums go from the first to the last number, so the arithmetic is the same in Python's interpreter, on the CPU, on a GPU
and in generated C. Frameworks sum in other orders: their results differ in the last bits of float32.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.compiler.kernel import Kernel
from linkwise.control.activations import ACTIVATIONS, exp, tanh
from linkwise.errors import ArgumentError, ShapeError
from linkwise.language import dot, empty, span
from linkwise.scalar import Scalar

SQUASHED = ("none", "tanh")


@dataclass(frozen=True, eq=False)
class Policy:
    """A multilayer perceptron: actions = W … f(W₁ (s (o − m)) + b₁) … + b.

    Args:
        sizes: numbers of observations, of each hidden layer, and of actions.
        weights: all numbers in one vector: m and s (for observations), then W (row by row) and b of each layer, then
            the logarithms of the standard deviations of exploring actions.
        activation: "elu", "relu", "tanh" or "swish".
        squash: "none", or "tanh": actions between −1 and 1.
    """

    sizes: tuple[int, ...]
    weights: np.ndarray
    activation: str = "elu"
    squash: str = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        object.__setattr__(self, "weights", np.asarray(self.weights, np.float32).ravel())
        if len(self.sizes) < 2 or min(self.sizes) < 1:
            raise ArgumentError(
                f"sizes: expected at least those of observations and actions, got {self.sizes}"
            )
        if self.activation not in ACTIVATIONS:
            raise ArgumentError(
                f"activation: expected one of {', '.join(ACTIVATIONS)}, got {self.activation!r}"
            )
        if self.squash not in SQUASHED:
            raise ArgumentError(f"squash: expected one of {', '.join(SQUASHED)}, got {self.squash!r}")
        if self.weights.shape != (self.weight_count,):
            raise ShapeError(
                f"weights: expected {self.weight_count} for {self.sizes}, got {self.weights.shape}"
            )
        if not np.isfinite(self.weights).all():
            raise ArgumentError("weights: expected finite numbers")

    @property
    def weight_count(self) -> int:
        """Numbers in ``weights``."""
        layers = sum(out * (own + 1) for own, out in zip(self.sizes, self.sizes[1:], strict=False))
        return 2 * self.sizes[0] + layers + self.sizes[-1]

    @property
    def key(self) -> str:
        """Identifies the code, not the weights."""
        return f"{self.sizes} {self.activation} {self.squash}"

    # -- making and files ---------------------------------------------------------------------------------------------

    @classmethod
    def random(cls, sizes: Sequence[int], seed: int = 0, **options: Any) -> Policy:
        """A network with random weights, for tests and first tries.

        Args:
            sizes: numbers of observations, of each hidden layer, and of actions.
            seed: of the weights.
            **options: ``activation`` and ``squash``.
        """
        rng = np.random.default_rng(seed)
        parts: list[np.ndarray] = [np.zeros(sizes[0]), np.ones(sizes[0])]
        for own, out in itertools.pairwise(sizes):
            parts += [rng.normal(size=out * own) / np.sqrt(own), np.zeros(out)]
        return cls(tuple(sizes), np.concatenate([*parts, np.full(sizes[-1], -1.0)]), **options)

    @classmethod
    def of_layers(
        cls,
        layers: Sequence[tuple[Any, Any]],
        *,
        mean: Any = None,
        deviation: Any = None,
        log_std: Any = None,
        **options: Any,
    ) -> Policy:
        """From the matrices and vectors of a framework.

        Args:
            layers: (W, b) of each layer, W with a row for each output (as ``torch.nn.Linear`` has it).
            mean: of observations; by default 0.
            deviation: of observations; by default 1.
            log_std: logarithms of the standard deviations of exploring actions; by default −1.
            **options: ``activation`` and ``squash``.
        """
        pairs = [(np.asarray(W, float), np.asarray(b, float)) for W, b in layers]
        sizes = (pairs[0][0].shape[1], *(W.shape[0] for W, _ in pairs))
        shift = np.zeros(sizes[0]) if mean is None else np.asarray(mean, float)
        scale = np.ones(sizes[0]) if deviation is None else 1.0 / np.asarray(deviation, float)
        last = np.full(sizes[-1], -1.0) if log_std is None else np.asarray(log_std, float)
        flat = [shift, scale, *(part.ravel() for pair in pairs for part in pair), last]
        return cls(sizes, np.concatenate(flat), **options)

    def save(self, path: str | Path) -> None:
        """Write an NPZ file, for ``load`` and ``linkwise generate ROBOT policy --weights FILE``."""
        with Path(path).open("wb") as file:
            np.savez(
                file,
                sizes=np.array(self.sizes),
                weights=self.weights,
                activation=np.array(self.activation),
                squash=np.array(self.squash),
            )

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a file of ``save``."""
        try:
            with np.load(path, allow_pickle=False) as file:
                held: Mapping[str, Any] = {
                    key: file[key] for key in ("sizes", "weights", "activation", "squash")
                }
        except (OSError, ValueError, KeyError) as error:
            raise ArgumentError(f"{path}: expected a policy file (NPZ of Policy.save): {error}") from None
        return cls(tuple(held["sizes"]), held["weights"], str(held["activation"]), str(held["squash"]))

    # -- computing ----------------------------------------------------------------------------------------------------

    def action(self, observation: Any, weights: Any, draw: Any = None) -> Any:
        """Actions over scalars.

        Args:
            observation: scalars, or an array of them.
            weights: as many scalars as ``weight_count``.
            draw: random numbers of exploration (``environments.Draw``); None: the mean.
        """
        shift, scale, at = 0, self.sizes[0], 2 * self.sizes[0]
        values = empty(self.sizes[0])
        for k in span(self.sizes[0]):
            values[k] = (observation[k] - weights[shift + k]) * weights[scale + k]
        function = ACTIVATIONS[self.activation]
        last = len(self.sizes) - 2
        for layer, (own, out) in enumerate(zip(self.sizes, self.sizes[1:], strict=False)):
            made = empty(out)
            for row in span(out):
                begin = at + row * own
                total = dot(_part(weights, begin, own), values, weights[at + out * own + row])
                made[row] = function(total) if layer < last else total
            values, at = made, at + out * (own + 1)
        if draw is not None:
            for k in range(self.sizes[-1]):
                values[k] = values[k] + draw.normal(exp(weights[at + k]))
        if self.squash == "tanh":
            for k in span(self.sizes[-1]):
                values[k] = tanh(values[k])
        return values

    def kernel(self, dtype: str = "float32") -> Kernel:
        """Actions of many observations, with the weights as an input: (observation, weights) -> action."""
        from linkwise.compiler.trace.traced_function import TracedFunction

        shapes = {"observation": (self.sizes[0],), "weights": (self.weight_count,)}

        def policy(observation: Any, weights: Any) -> dict[str, Any]:
            return {"action": self.action(observation, weights)}

        traced = TracedFunction(policy, shapes, "policy")
        sizes = {"observation": self.sizes[0], "weights": self.weight_count}
        key = hashlib.sha256(f"policy {self.key}".encode()).digest()
        shape = {"action": (self.sizes[-1],)}
        made = Kernel("policy", sizes.items(), shape.items(), dtype, traced.program, key)  # type: ignore[arg-type]
        made.origin = (_kernel, (self.sizes, self.activation, self.squash, dtype))
        return made

    def __call__(self, observation: Any) -> Any:
        """Actions, shape (..., actions), of observations, shape (..., observations); float32."""
        held = self.__dict__.setdefault("_kernel", None)
        if held is None:
            held = self.__dict__["_kernel"] = self.kernel()
        return held(np.asarray(observation, np.float32), self.weights)


def _kernel(sizes: tuple[int, ...], activation: str, squash: str, dtype: str) -> Kernel:
    empty_policy = Policy.random(sizes, activation=activation, squash=squash)
    return empty_policy.kernel(dtype)


def _part(weights: Any, begin: Any, count: int) -> Any:
    """A row of a matrix among the weights."""
    if isinstance(weights, (list, tuple)):
        weights = _array(weights)
    return weights[begin : begin + count]


def _array(values: Sequence[Scalar]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = list(values)
    return array
