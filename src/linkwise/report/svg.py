"""Text for SVG: escaped words, short numbers, round tick marks, and the colours that all figures share.

Figures take their ink from CSS variables with a default, so that one figure is right on a light page, on a dark page
and as a file of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linkwise.core import foreign

# Palette for colour-blind readers (Okabe and Ito), ordered so that neighbours differ most.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6bb3", "#8c8c8c")
INK = "var(--ink,#1c2430)"
FAINT = "var(--faint,#8a94a3)"
GRID = "var(--grid,#e3e7ec)"
PAPER = "var(--paper,#ffffff)"
FONT = "font-family:system-ui,-apple-system,Segoe UI,Roboto,sans-serif"


def colour(k: int) -> str:
    """The colour of the k-th line."""
    return COLOURS[k % len(COLOURS)]


def escape(text: object) -> str:
    """Escape text for HTML or SVG, attributes included."""
    return foreign.html_text(text)


def short(value: float, digits: int = 4) -> str:
    """Short decimal text of a number, with a typographic minus sign."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}g}"
    mantissa, _, exponent = text.partition("e")
    if exponent:
        return f"{mantissa}·10{_raised(int(exponent))}".replace("-", "−")
    return "0" if float(text) == 0 else text.replace("-", "−")


def coordinate(value: float) -> str:
    """Coordinate rounded to a tenth of a unit."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """About ``about`` round tick values between ``low`` and ``high``."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    raw = (high - low) / max(about, 1)
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def span(arrays: Sequence[np.ndarray], *, zero: bool = False, margin: float = 0.06) -> tuple[float, float]:
    """Range of all finite numbers, slightly widened; (−1, 1) if there are none."""
    finite = [a[np.isfinite(a)] for a in map(np.asarray, arrays)]
    finite = [a for a in finite if a.size]
    if not finite:
        return -1.0, 1.0
    low, high = min(float(a.min()) for a in finite), max(float(a.max()) for a in finite)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        half = abs(high) * 0.5 or 1.0
        return low - half, high + half
    return low - margin * (high - low), high + margin * (high - low)


def thinned(x: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Thin a line to about ``most`` points; keeps the minimum and maximum of every interval."""
    if len(x) <= most:
        return x, y
    keep = {0, len(x) - 1}
    for block in np.array_split(np.arange(len(x)), max(most // 2, 1)):
        values = np.where(np.isfinite(y[block]), y[block], 0.0)
        keep |= {int(block[np.argmin(values)]), int(block[np.argmax(values)])}
    index = np.array(sorted(keep))
    return x[index], y[index]


def path(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> str:
    """SVG path data through points, with gaps at points that are not finite."""
    pieces, pen = [], "M"
    for a, b in zip(x, y, strict=True):
        if not (math.isfinite(a) and math.isfinite(b)):
            pen = "M"
            continue
        pieces.append(f"{pen}{coordinate(a)} {coordinate(b)}")
        pen = "L"
    return "".join(pieces)


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _raised(exponent: int) -> str:
    return str(exponent).translate(_SUPERSCRIPT)
