"""Drive ripple: torque that repeats with the joint's position, as teeth of gears and poles of motors cause it.

Every line has a count n of periods per turn, and amplitudes that are polynomials of the speed:

    Σ (a₀ + a₁ w + a₂ w² + a₃ w³) cos n q + (b₀ + b₁ w + b₂ w² + b₃ w³) sin n q,    w = q̇ / √(q̇² + v²).

What a recording shows of ripple has passed the elastic joint and the controller, so its size and phase depend on the
speed and its direction; even powers are the same in both directions, odd ones are not. w is bounded: beyond the speeds
that were fitted the amplitudes level off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.joint_laws.law import Law, Parameter, is_zero
from linkwise.scalar import Scalar, cos, sign, sin, sqrt

LINES, POWERS = 4, 4
"""How many lines a joint may have, and powers of the speed of each amplitude, with 0."""
SPEED = "ripple_speed"


def count(line: int) -> str:
    """The name of a line's periods per turn, lines from 1 on."""
    return f"ripple_{line}_count"


def amplitude(line: int, wave: str, power: int) -> str:
    """The name of an amplitude; ``wave`` is "cos" or "sin"."""
    return f"ripple_{line}_{wave}_{power}"


def _parameters() -> tuple[Parameter, ...]:
    found = [
        Parameter(
            SPEED,
            "speed over which ripple changes",
            ("rad/s", "m/s"),
            coefficient=False,
            negative="refused",
        )
    ]
    for line in range(1, LINES + 1):
        found.append(
            Parameter(
                count(line),
                f"periods of ripple {line}",
                ("per turn", "rad/m"),
                coefficient=False,
                negative="refused",
            )
        )
        found += [
            Parameter(amplitude(line, wave, power), f"ripple {line}, {wave}, power {power}", ("N·m", "N"))
            for wave in ("cos", "sin")
            for power in range(POWERS)
        ]
    return tuple(found)


class Ripple(Law):
    """Up to ``LINES`` lines. ``ripple_1_count`` is the number of periods per turn of the first (of a joint that slides:
    radians of phase per metre), ``ripple_1_cos_0`` and so on are its amplitudes by powers of w."""

    name = "ripple"
    parameters = _parameters()
    dissipates = True
    brakes = False
    uses_position = True
    labelled_singly = True

    def torque(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        w = _speed(holder, qd)
        total: Scalar = 0.0
        for n, a, b in _lines(holder):
            total = total + _value(a, w) * cos(n * q) + _value(b, w) * sin(n * q)
        return total

    def by_q(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        w = _speed(holder, qd)
        total: Scalar = 0.0
        for n, a, b in _lines(holder):
            total = total + n * (_value(b, w) * cos(n * q) - _value(a, w) * sin(n * q))
        return total

    def by_qd(self, holder: Any, q: Scalar, qd: Scalar) -> Scalar:
        w = _speed(holder, qd)
        total: Scalar = 0.0
        for n, a, b in _lines(holder):
            total = total + _value(_slope(a), w) * cos(n * q) + _value(_slope(b), w) * sin(n * q)
        return total * _speed_slope(holder, qd)

    def column(self, name: str, holder: Any, q: Scalar, qd: Scalar, qdd: Scalar) -> Scalar:
        _, line, wave, power = name.split("_")
        phase = holder.terms.get(count(int(line)), 0.0) * q
        found = cos(phase) if wave == "cos" else sin(phase)
        for _ in range(int(power)):
            found = found * _speed(holder, qd)
        return found


def _lines(holder: Any) -> list[tuple[Scalar, list[Scalar], list[Scalar]]]:
    """(n, amplitudes of the cosine, of the sine) of the lines that a joint has."""
    found: list[tuple[Scalar, list[Scalar], list[Scalar]]] = []
    for line in range(1, LINES + 1):
        a, b = (
            [holder.terms.get(amplitude(line, wave, power), 0.0) for power in range(POWERS)]
            for wave in ("cos", "sin")
        )
        if not all(is_zero(each) for each in (*a, *b)):
            found.append((holder.terms.get(count(line), 0.0), a, b))
    return found


def _speed(holder: Any, qd: Scalar) -> Scalar:
    """w."""
    v = holder.terms.get(SPEED, 0.0)
    return sign(qd) if is_zero(v) else qd / sqrt(qd * qd + v * v)


def _speed_slope(holder: Any, qd: Scalar) -> Scalar:
    """The derivative of w by the speed; that of a jump is 0."""
    v = holder.terms.get(SPEED, 0.0)
    if is_zero(v):
        return 0.0
    square = qd * qd + v * v
    return v * v / (square * sqrt(square))


def _value(amplitudes: Sequence[Scalar], w: Scalar) -> Scalar:
    """The polynomial of w, by Horner's rule."""
    total: Scalar = 0.0
    for each in reversed(amplitudes):
        total = total * w + each
    return total


def _slope(amplitudes: Sequence[Scalar]) -> list[Scalar]:
    """The polynomial's derivative by w."""
    return [power * each for power, each in enumerate(amplitudes)][1:]
