"""The space that a motion needs: all postures seen from above, from the side and from the front, as SVG.

Every capsule of every posture is a thick line with round ends; drawn in one colour they add up to the outline of the
swept space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwise.geometry.skeleton import Capsule, body_poses
from linkwise.model import Model, Transform
from linkwise.report.svg import FAINT, FONT, GRID, INK, colour, coordinate, escape, path, short, ticks

POSTURES = 200  # that are drawn
PANEL, GAP, EDGE = 300.0, 26.0, 34.0  # [pixels]: a view, between views, for numbers
BEYOND = 0.15  # of the size of the motion: space around it

Corners = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class Surroundings:
    """What is drawn around a robot: the height of the floor [m], boxes as lower and upper corners in base axes [m]."""

    floor: float | None = None
    inside: Corners | None = None
    forbidden: Sequence[Corners] = field(default=())


def swept_picture(
    model: Model,
    capsules: Sequence[Capsule],
    q: np.ndarray,
    around: Surroundings,
    trace: np.ndarray | None = None,
) -> str:
    """Three views of all postures of a motion.

    Args:
        model: the robot.
        capsules: in frames of its bodies.
        q: positions [rad or m], shape (points, nq).
        around: floor and boxes.
        trace: path of the end effector [m], shape (points, 3).
    """
    ends = _placed(model, capsules, q[:: max(1, len(q) // POSTURES)])
    radii = np.array([capsule.radius for capsule in capsules])
    axes = _axes(model)
    x, y = ("x", "y") if np.allclose(axes, np.eye(3)) else ("across", "across")
    views = (
        (f"from above ({x}, {y})", 0, 1),
        (f"from the side ({x}, height)", 0, 2),
        (f"from the front ({y}, height)", 1, 2),
    )
    local = ends @ axes.T
    low, high = local.min(axis=(0, 1, 2)) - radii.max(), local.max(axis=(0, 1, 2)) + radii.max()
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    if around.floor is not None:
        low[2], high[2] = min(low[2], around.floor), max(high[2], around.floor)
    spare = BEYOND * float((high - low).max()) / 2
    low, high = low - spare, high + spare
    size = float((high - low).max())
    parts: list[str] = []
    for k, (title, right, up) in enumerate(views):
        panel = _Panel(np.array([right, up]), (low + high) / 2, size, EDGE + k * (PANEL + GAP))
        parts.append(panel.drawn(title, local, radii, around, axes, trace))
    width, height = 2 * EDGE + 3 * PANEL + 2 * GAP, PANEL + 2 * EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="swept" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'style="{FONT}"><title>Space that {escape(model.name)} needs</title>{"".join(parts)}</svg>'
    )


@dataclass(frozen=True)
class _Panel:
    """One view: which two axes it shows, the centre and the size of what it shows [m], its left edge [pixels]."""

    shown: np.ndarray
    centre: np.ndarray
    size: float
    left: float

    def place(self, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) in axes of the views to pixels (..., 2)."""
        flat = (points[..., self.shown] - self.centre[self.shown]) / self.size * PANEL
        return np.array([self.left + PANEL / 2, EDGE + PANEL / 2]) + flat * np.array([1.0, -1.0])

    def drawn(self, title, local, radii, around: Surroundings, axes: np.ndarray, trace) -> str:
        clip = f"view{self.shown[0]}{self.shown[1]}"
        frame = f'<rect x="{self.left:g}" y="{EDGE:g}" width="{PANEL:g}" height="{PANEL:g}"'
        inner = [
            self._ground(around.floor),
            f'<g opacity=".35">{self._strokes(local, radii, colour(5))}</g>',
            f'<g opacity=".8">{self._strokes(local[:1], radii, FAINT)}</g>',
            *(self._box(box, axes, colour(1), 'fill-opacity=".25"') for box in around.forbidden),
        ]
        if around.inside is not None:
            inner.append(self._box(around.inside, axes, colour(2), 'fill-opacity="0" stroke-dasharray="6 4"'))
        if trace is not None:
            places = self.place(trace @ axes.T)
            line = path(places[:, 0], places[:, 1])
            inner.append(f'<path d="{line}" stroke="{colour(1)}" stroke-width="1.2" fill="none"/>')
        return (
            f'<clipPath id="{clip}">{frame}/></clipPath>{self._grid()}<g clip-path="url(#{clip})">{"".join(inner)}</g>'
            f'{frame} fill="none" stroke="{FAINT}"/><text x="{self.left:g}" y="{EDGE - 10:g}" font-size="13" '
            f'fill="{INK}">{escape(title)}</text>'
        )

    def _grid(self) -> str:
        lines: list[str] = []
        low, high = self.centre - self.size / 2, self.centre + self.size / 2
        for side, axis in enumerate(self.shown):
            for value in ticks(float(low[axis]), float(high[axis]), 4):
                point = self.centre.copy()
                point[axis] = value
                x, y = self.place(point)
                way = (
                    f"M{x:.1f} {EDGE:g}V{EDGE + PANEL:g}"
                    if side == 0
                    else f"M{self.left:g} {y:.1f}h{PANEL:g}"
                )
                lines.append(f'<path d="{way}" stroke="{GRID}"/>')
                at = (x, EDGE + PANEL + 14) if side == 0 else (self.left - 4, y + 4)
                anchor = "middle" if side == 0 else "end"
                unit = (
                    " m" if side == 0 and value == ticks(float(low[axis]), float(high[axis]), 4)[-1] else ""
                )
                lines.append(
                    f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" font-size="11" text-anchor="{anchor}" '
                    f'fill="{FAINT}">{short(value, 3)}{unit}</text>'
                )
        return "".join(lines)

    def _strokes(self, local: np.ndarray, radii: np.ndarray, tint: str) -> str:
        """All capsules (postures, capsules, 2, 3): one path for each capsule."""
        places = self.place(local)
        strokes: list[str] = []
        for k, radius in enumerate(radii):
            lines = "".join(
                f"M{coordinate(a[0])} {coordinate(a[1])}L{coordinate(b[0])} {coordinate(b[1])}"
                for a, b in places[:, k]
            )
            wide = 2 * radius / self.size * PANEL
            strokes.append(
                f'<path d="{lines}" stroke="{tint}" stroke-width="{wide:.1f}" stroke-linecap="round" fill="none"/>'
            )
        return "".join(strokes)

    def _ground(self, floor: float | None) -> str:
        if floor is None or self.shown[1] != 2:
            return ""
        y = float(self.place(np.array([0.0, 0.0, floor]))[1])
        return (
            f'<rect x="{self.left:g}" y="{y:.1f}" width="{PANEL:g}" height="{max(EDGE + PANEL - y, 0.0):.1f}" '
            f'fill="{FAINT}" fill-opacity=".35"/><path d="M{self.left:g} {y:.1f}h{PANEL:g}" stroke="{INK}"/>'
        )

    def _box(self, corners: Corners, axes: np.ndarray, tint: str, look: str) -> str:
        wide = np.clip(np.array(corners, dtype=float), -1e3, 1e3)
        grid = np.array(np.meshgrid(*wide.T, indexing="ij")).reshape(3, -1).T
        places = self.place(grid @ axes.T)
        (x, y), (right, bottom) = places.min(axis=0), places.max(axis=0)
        return (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{right - x:.1f}" height="{bottom - y:.1f}" fill="{tint}" '
            f'stroke="{tint}" {look}/>'
        )


def _placed(model: Model, capsules: Sequence[Capsule], q: np.ndarray) -> np.ndarray:
    """Ends of all capsules in all postures, (postures, capsules, 2, 3)."""
    ends = np.zeros((len(q), len(capsules), 2, 3))
    for row, position in enumerate(q):
        poses = [Transform.identity(), *body_poses(model, position)]
        for k, capsule in enumerate(capsules):
            pose = poses[capsule.body + 1]
            ends[row, k] = np.array([capsule.start, capsule.end]) @ pose.rotation.T + pose.translation
    return ends


def _axes(model: Model) -> np.ndarray:
    """Rows: to the right from above, the other way across, and up, opposite to gravity."""
    gravity = np.array(model.gravity)
    up = -gravity / np.linalg.norm(gravity) if np.linalg.norm(gravity) > 0 else np.array([0.0, 0.0, 1.0])
    first = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
    first = first - (first @ up) * up
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(up, first), up])
