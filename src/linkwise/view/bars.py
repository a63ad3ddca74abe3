"""HTML bars and colours for joint torques."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.model.coordinates import Coordinate
from linkwise.model.joint import Joint
from linkwise.report.svg import escape

# From idle to overloaded: blue, sky blue, yellow, orange, vermilion; told apart without red and green, too.
TINTS = np.array([(0, 114, 178), (86, 180, 233), (240, 228, 66), (230, 159, 0), (213, 94, 0)], dtype=float)
_STOPS = np.linspace(0.0, 1.0, len(TINTS))


def tint(part: float) -> tuple[int, int, int]:
    """Colour of a torque, given as a fraction of its scale; vermilion at 1 and above."""
    part = float(np.clip(part, 0.0, 1.0)) if np.isfinite(part) else 1.0
    red, green, blue = (round(float(np.interp(part, _STOPS, TINTS[:, k]))) for k in range(3))
    return red, green, blue


def bars(
    joints: Sequence[Joint | Coordinate], torques: np.ndarray, scale: np.ndarray, caption: str = ""
) -> str:
    """HTML with one row per joint: name, bar left or right of zero, torque, percentage of the effort limit.

    Args:
        joints: joints or velocity coordinates, n of them.
        torques: [N·m or N], shape (n,).
        scale: torque of a full bar, shape (n,).
        caption: line above the bars.
    """
    rows = [f'<div style="{_CAPTION}">{escape(caption)}</div>']
    for joint, torque, full in zip(joints, torques, scale, strict=True):
        part = float(torque / full)
        length = 50.0 * min(abs(part), 1.0)
        left = 50.0 - (length if part < 0 else 0.0)
        unit = "N·m" if joint.revolute else "N"
        limited = bool(np.isfinite(joint.limits.largest_effort))
        share = f"{abs(part):.0%}" if limited else ""
        rows.append(
            f'<div class="lw-bar" data-joint="{escape(joint.name)}" data-torque="{torque:.6g}" style="{_ROW}">'
            f'<div style="{_NAME}" title="{escape(joint.name)}">{escape(joint.name)}</div>'
            f'<div style="{_TRACK}"><div style="{_MIDDLE}"></div>'
            f'<div style="{_FILL};left:{left:.2f}%;width:{length:.2f}%;background:rgb{tint(abs(part))}"></div></div>'
            f'<div style="{_NUMBER}">{_compact(float(torque))} {unit}</div>'
            f'<div style="{_SHARE}" title="of the effort limit">{share}</div></div>'
        )
    return f'<div class="lw-bars" style="padding:0 .5em .3em .5em">{"".join(rows)}</div>'


def _compact(torque: float) -> str:
    """Torque with as many digits as fit into a narrow column; values that round to zero become 0."""
    digits = 0 if abs(torque) >= 1000 else 1 if abs(torque) >= 10 else 2
    text = f"{torque:.{digits}f}"
    return "0" if float(text) == 0 else text.replace("-", "−")


_ROW = "display:flex;align-items:center;gap:.45em;font-size:.78em;line-height:1.55"
_CAPTION = "font-size:.75em;opacity:.85;margin:-.2em 0 .2em 0"
_NAME = "width:7.2em;overflow:hidden;text-overflow:ellipsis;white-space:nowrap"
_TRACK = "position:relative;flex:1;height:.85em;border-radius:.2em;background:rgba(128,138,150,.18)"
_MIDDLE = "position:absolute;left:50%;top:-.12em;bottom:-.12em;border-left:1px solid rgba(128,138,150,.9)"
_FILL = "position:absolute;top:0;bottom:0;border-radius:.15em"
_NUMBER = "width:5.6em;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"
_SHARE = "width:2.5em;text-align:right;opacity:.85;font-variant-numeric:tabular-nums"
