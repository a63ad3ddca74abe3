"""Functions of angles and bounded variables in a normal form: sums of harmonics times monomials.

A torque of an arm is a polynomial in the sines and cosines of its joint angles and in velocities, accelerations and
gains. Written as Σ c·exp(i k·θ)·ε_a·ε_b… each function has one form only: s² + c² is 1, and what cancels is gone.
Variables are scaled, |ε| ≤ 1, so that the sum of |c| bounds the function.

Coefficients are rounded. ``error`` bounds what that changes, for all angles and all |ε| ≤ 1: every operation adds a
bound of its own rounding, and coefficients that are dropped because they are tiny.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from linkwise.errors import LinkwiseError

Monomial = tuple[int, ...]
"""Numbers of the variables of a product, in order, repeated for powers."""

UNIT = 2.0**-53
_TINY = 2.0**-44
"""Coefficients below this part of the largest bound are dropped."""
LARGEST = 400_000
"""More harmonics than this are not kept in one function."""

_UNDERFLOW = 1e-300
"""More than all products that are too small for floats: in a product of two functions there are fewer than 10⁷."""
_PRODUCTS = 20_000
"""More products of monomials than this are not multiplied out."""


class TooLargeError(LinkwiseError):
    """A function has too many harmonics for its normal form."""


@dataclass(frozen=True)
class Packing:
    """How the numbers k of a harmonic are one whole number: as digits with a sign.

    Args:
        angles: the number of angles.
    """

    angles: int

    @property
    def bits(self) -> int:
        return min(8, 62 // max(self.angles, 1))

    @property
    def most(self) -> int:
        """The largest |k|."""
        return (1 << (self.bits - 1)) - 1

    def pack(self, multiples: Mapping[int, int]) -> int:
        return sum(k << (self.bits * j) for j, k in multiples.items())

    def digits(self, keys: np.ndarray) -> np.ndarray:
        """(harmonics, angles)."""
        found = np.empty((len(keys), self.angles), dtype=np.int64)
        rest = keys.copy()
        half = 1 << (self.bits - 1)
        for j in range(self.angles):
            found[:, j] = ((rest + half) & ((1 << self.bits) - 1)) - half
            rest = (rest - found[:, j]) >> self.bits
        return found


@dataclass(frozen=True, eq=False)
class Series:
    """One function.

    Args:
        packing: of the harmonics.
        parts: for each monomial its harmonics and their coefficients.
        degree: bounds of |k| for every angle.
        error: bound of what rounding of coefficients has changed.
    """

    packing: Packing
    parts: Mapping[Monomial, tuple[np.ndarray, np.ndarray]]
    degree: np.ndarray
    error: float = 0.0
    _norm: list[float] = field(default_factory=list, repr=False)

    @property
    def norm(self) -> float:
        """Bound of the absolute value, everywhere."""
        if not self._norm:
            self._norm.append(
                up(sum(float(np.abs(c).sum()) for _, c in self.parts.values()), self.count) + self.error
            )
        return self._norm[0]

    @property
    def count(self) -> int:
        """The number of harmonics."""
        return sum(len(keys) for keys, _ in self.parts.values())

    @property
    def mean(self) -> float:
        """The constant term."""
        keys, coefficients = self.parts.get((), (np.zeros(0, np.int64), np.zeros(0, complex)))
        place = np.flatnonzero(keys == 0)
        return float(np.real(coefficients[place[0]])) if len(place) else 0.0

    @property
    def is_number(self) -> bool:
        """Whether it is the same for all angles and variables."""
        return not self.parts or (list(self.parts) == [()] and not self.parts[()][0].any())

    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound from the sizes of the coefficients; a square is at least 0."""
        low = high = self.mean
        for monomial, (keys, coefficients) in self.parts.items():
            still = keys == 0
            sizes = float(np.abs(coefficients[~still]).sum())
            constant = float(np.real(coefficients[still]).sum())
            if monomial == ():
                low, high = low - sizes, high + sizes
                continue
            down = -sizes + (min(constant, 0.0) if _is_square(monomial) else -abs(constant))
            above = sizes + (max(constant, 0.0) if _is_square(monomial) else abs(constant))
            low, high = low + down, high + above
        slack = self.error + self.norm * UNIT * (self.count + 8)
        return low - slack, high + slack

    def __neg__(self) -> Series:
        return self.scaled(-1.0)

    def scaled(self, factor: float) -> Series:
        """The function times a number."""
        if factor == 0.0:
            return constant(self.packing, 0.0)
        if not np.isfinite(self.norm * abs(factor)):
            raise TooLargeError("a coefficient is not finite")
        parts = {m: (k, c * factor) for m, (k, c) in self.parts.items()}
        error = self.error * abs(factor)
        if abs(factor) != 1.0:
            error = up(error + self.norm * abs(factor) * 2 * UNIT + _UNDERFLOW)
        return Series(self.packing, parts, self.degree, error)

    def __add__(self, other: Series) -> Series:
        parts = dict(self.parts)
        rounded = 0.0
        for monomial, (keys, coefficients) in other.parts.items():
            if monomial not in parts:
                parts[monomial] = (keys, coefficients)
                continue
            own, mine = parts[monomial]
            merged = _merged(np.concatenate([own, keys]), np.concatenate([mine, coefficients]))
            rounded += float(np.abs(merged[1]).sum()) * 2 * UNIT
            parts[monomial] = merged
        error = up(self.error + other.error + rounded)
        return _trimmed(self.packing, parts, np.maximum(self.degree, other.degree), error)

    def __sub__(self, other: Series) -> Series:
        return self + (-other)

    def __mul__(self, other: Series) -> Series:
        for one, two in ((self, other), (other, self)):
            if two.is_number:
                product = one.scaled(two.mean)
                error = up(product.error + one.norm * two.error + (_UNDERFLOW if two.error else 0.0))
                return Series(one.packing, product.parts, product.degree, error)
        collected: dict[Monomial, list[tuple[np.ndarray, np.ndarray]]] = {}
        total = sum(len(k) for k, _ in self.parts.values()) * sum(len(k) for k, _ in other.parts.values())
        if total > 20 * LARGEST or len(self.parts) * len(other.parts) > _PRODUCTS:
            raise TooLargeError("a product has too many harmonics")
        for a, (keys_a, of_a) in self.parts.items():
            for b, (keys_b, of_b) in other.parts.items():
                keys = (keys_a[:, None] + keys_b).ravel()
                with np.errstate(over="ignore", invalid="ignore"):
                    products = (of_a[:, None] * of_b).ravel()
                collected.setdefault(tuple(sorted(a + b)), []).append((keys, products))
        parts = {}
        for monomial, found in collected.items():
            keys = np.concatenate([k for k, _ in found])
            parts[monomial] = _merged(keys, np.concatenate([c for _, c in found]))
        most = min(self.count, other.count) * len(self.parts) + 8
        error = self.norm * other.error + other.norm * self.error
        error = up(error + self.norm * other.norm * UNIT * (most + 4) + _UNDERFLOW)
        return _trimmed(self.packing, parts, self.degree + other.degree, error)

    def second(self, angle: int) -> Series:
        """The second derivative by an angle; ``error`` is left out."""
        parts = {}
        for monomial, (keys, coefficients) in self.parts.items():
            factors = -(self.packing.digits(keys)[:, angle].astype(float) ** 2)
            kept = factors != 0
            if kept.any():
                parts[monomial] = (keys[kept], coefficients[kept] * factors[kept])
        return Series(self.packing, parts, self.degree)

    def angles(self) -> list[int]:
        """The angles that the function depends on."""
        return [int(j) for j in np.flatnonzero(self.true_degree())]

    def true_degree(self) -> np.ndarray:
        """The largest |k| that occurs, for every angle."""
        most = np.zeros(self.packing.angles, dtype=np.int64)
        for keys, _ in self.parts.values():
            if len(keys):
                most = np.maximum(most, np.abs(self.packing.digits(keys)).max(axis=0))
        return most

    def __call__(self, angles: np.ndarray, variables: np.ndarray) -> np.ndarray:
        """Values for angles (..., angles) [rad] and scaled variables (..., variables)."""
        value = np.zeros(np.broadcast_shapes(angles.shape[:-1], variables.shape[:-1]))
        for monomial, (keys, coefficients) in self.parts.items():
            phases = angles @ self.packing.digits(keys).T.astype(float)
            term = np.real(coefficients * np.exp(1j * phases)).sum(axis=-1)
            value = value + term * np.prod(variables[..., list(monomial)], axis=-1)
        return value


def constant(packing: Packing, value: float, error: float = 0.0) -> Series:
    """A number."""
    parts: dict[Monomial, tuple[np.ndarray, np.ndarray]] = {}
    if value != 0.0:
        parts[()] = (np.zeros(1, np.int64), np.array([complex(value)]))
    return Series(packing, parts, np.zeros(packing.angles, np.int64), error)


def variable(packing: Packing, number: int, middle: float, radius: float) -> Series:
    """middle + radius·ε."""
    line = Series(
        packing,
        {(number,): (np.zeros(1, np.int64), np.array([complex(radius)]))},
        np.zeros(packing.angles, np.int64),
    )
    return constant(packing, middle) + line if middle != 0.0 else line


def harmonic(packing: Packing, multiples: Mapping[int, int], phase: float, kind: str) -> Series:
    """sin or cos of Σ m_j·θ_j + phase."""
    key = packing.pack(multiples)
    degree = np.zeros(packing.angles, np.int64)
    for j, k in multiples.items():
        degree[j] = abs(k)
    if degree.max(initial=0) > packing.most // 2:
        raise TooLargeError("an angle has a factor that is too large")
    turn = complex(np.cos(phase), np.sin(phase))
    of_plus = turn / 2 if kind == "cos" else turn / 2j
    keys, coefficients = _merged(np.array([key, -key]), np.array([of_plus, of_plus.conjugate()]))
    return Series(packing, {(): (keys, coefficients)}, degree, 4 * UNIT if phase else 0.0)


def up(value: float, operations: int = 1) -> float:
    """A bound of what ``value`` stands for, if it was rounded that many times in a sum of positive numbers."""
    return value * (1.0 + 2 * UNIT * (operations + 2))


def _is_square(monomial: Monomial) -> bool:
    return all(monomial.count(v) % 2 == 0 for v in set(monomial))


def _merged(keys: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal harmonics added."""
    order = np.argsort(keys, kind="stable")
    keys, coefficients = keys[order], coefficients[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[starts], np.add.reduceat(coefficients, starts)


def _trimmed(
    packing: Packing,
    parts: Mapping[Monomial, tuple[np.ndarray, np.ndarray]],
    degree: np.ndarray,
    error: float,
) -> Series:
    """Without coefficients that are tiny beside all others."""
    size = sum(float(np.abs(c).sum()) for _, c in parts.values())
    if not np.isfinite(size):
        raise TooLargeError("a coefficient is not finite")
    kept: dict[Monomial, tuple[np.ndarray, np.ndarray]] = {}
    dropped = 0.0
    for monomial, (keys, coefficients) in parts.items():
        sizes = np.abs(coefficients)
        large = sizes > _TINY * size
        if not large.all():
            dropped += float(sizes[~large].sum())
            keys, coefficients = keys[large], coefficients[large]
        if len(keys):
            kept[monomial] = (keys, coefficients)
    found = Series(packing, kept, degree, up(error + dropped, 4) if dropped else error)
    if found.count > LARGEST:
        raise TooLargeError(f"a function has {found.count} harmonics")
    if degree.max(initial=0) > packing.most // 2:
        found = Series(packing, kept, found.true_degree(), found.error)
        if found.degree.max(initial=0) > packing.most // 2:
            raise TooLargeError("a function has harmonics of too high a number")
    return found
