"""SVG drawing of a robot: capsules and hubs from its kinematics, in parallel projection.

Seen from far away a capsule is a thick line with round ends, and a cylinder is a band between two ellipses: no mesh is
needed, and a drawing has a few kilobytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.geometry.skeleton import BASE, Hub, body_poses, skeleton
from linkwise.model import Model, Transform
from linkwise.report.svg import FONT, colour, coordinate, escape, path

AZIMUTH, ELEVATION = math.radians(-52.0), math.radians(20.0)
MARGIN = 0.03  # around the robot, as a fraction of the drawing


@dataclass(frozen=True)
class Camera:
    """A parallel projection: unit vectors to the right, up and towards the eye."""

    right: np.ndarray
    up: np.ndarray
    eye: np.ndarray

    @classmethod
    def seeing(cls, up: np.ndarray) -> Camera:
        """View from a corner and slightly above; ``up`` is opposite to gravity."""
        z = up / np.linalg.norm(up)
        x = np.array([1.0, 0, 0]) - z[0] * z
        x = x / np.linalg.norm(x) if np.linalg.norm(x) > 1e-6 else np.array([0.0, 1, 0])
        y = np.cross(z, x)
        out = math.cos(AZIMUTH) * x + math.sin(AZIMUTH) * y
        eye = math.cos(ELEVATION) * out + math.sin(ELEVATION) * z
        right = np.cross(z, eye)
        right /= np.linalg.norm(right)
        return cls(right, np.cross(eye, right), eye)

    def flat(self, points: np.ndarray) -> np.ndarray:
        """(..., 3) to (..., 2): to the right and upward."""
        return np.stack([points @ self.right, points @ self.up], axis=-1)


def robot_picture(
    model: Model,
    q: Sequence[float] | np.ndarray,
    *,
    ghosts: Sequence[np.ndarray] = (),
    trace: np.ndarray | None = None,
    width: float = 420,
    height: float = 420,
) -> str:
    """A drawing of the robot at a position, as SVG.

    Args:
        model: the robot.
        q: its position [rad or m], shape (nq,).
        ghosts: other positions, drawn faintly.
        trace: points of a path [m], shape (points, 3).
        width: [pixels].
        height: [pixels].
    """
    gravity = np.array(model.gravity)
    up = -gravity if np.linalg.norm(gravity) > 0 else np.array([0.0, 0, 1])
    view = _View(model, Camera.seeing(up), [np.asarray(q, dtype=float), *ghosts], trace, width, height)
    parts = [view.shadow(np.asarray(q, dtype=float), up / np.linalg.norm(up))]
    parts += [f'<g opacity=".22">{view.robot(np.asarray(ghost, dtype=float))}</g>' for ghost in ghosts]
    if trace is not None:
        places = view.place(trace)
        parts.append(
            f'<path d="{path(places[:, 0], places[:, 1])}" stroke="{colour(1)}" stroke-width="1.6" fill="none" '
            'opacity=".8"/>'
        )
    parts.append(view.robot(np.asarray(q, dtype=float)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="robot" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'style="{FONT}"><title>{escape(model.name)}</title>{"".join(parts)}</svg>'
    )


class _View:
    """Layout of the drawing."""

    def __init__(
        self,
        model: Model,
        camera: Camera,
        positions: Sequence[np.ndarray],
        trace,
        width: float,
        height: float,
    ):
        self.model, self.camera = model, camera
        self.bones = skeleton(model)
        points = [camera.flat(self._ends(q)) for q in positions]
        if trace is not None and len(trace):
            points.append(camera.flat(np.asarray(trace)))
        everything = np.concatenate(points)
        thick = max((hub.radius for hub in self.bones.hubs), default=0.05 * self.bones.reach)
        low, high = everything.min(axis=0) - thick, everything.max(axis=0) + thick
        self.scale = float(min((1 - 2 * MARGIN) * np.array([width, height]) / np.maximum(high - low, 1e-9)))
        self.middle = (low + high) / 2
        self.centre = np.array([width, height]) / 2

    def _poses(self, q: np.ndarray) -> list[Transform]:
        return [Transform.identity(), *body_poses(self.model, q)]

    def _ends(self, q: np.ndarray) -> np.ndarray:
        poses = self._poses(q)
        ends = [
            poses[rod.body + 1].matrix[:3] @ np.append(p, 1)
            for rod in self.bones.capsules
            for p in (rod.start, rod.end)
        ]
        return np.array([*ends, *(pose.translation for pose in poses)])

    def place(self, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) [m] to coordinates of the drawing, (..., 2)."""
        flat = (self.camera.flat(points) - self.middle) * self.scale
        return self.centre + flat * np.array([1.0, -1.0])

    def robot(self, q: np.ndarray) -> str:
        """All shapes, farthest first."""
        poses = self._poses(q)
        things: list[tuple[float, str]] = []
        for rod in self.bones.capsules:
            pose = poses[rod.body + 1]
            ends = np.array([rod.start, rod.end]) @ pose.rotation.T + pose.translation
            things.append((float(ends.mean(axis=0) @ self.camera.eye), self.rod(ends, rod.radius)))
        for hub in self.bones.hubs:
            pose = poses[hub.joint + 1]
            nearest = float(pose.translation @ self.camera.eye) + 0.3 * hub.radius
            things.append((nearest, self.hub(hub, pose)))
        return self.plate() + "".join(text for _, text in sorted(things, key=lambda thing: thing[0]))

    def rod(self, ends: np.ndarray, radius: float) -> str:
        """Three strokes: outline, body, highlight."""
        (x0, y0), (x1, y1) = self.place(ends)
        line = f"M{coordinate(x0)} {coordinate(y0)}L{coordinate(x1)} {coordinate(y1)}"
        wide = 2 * radius * self.scale
        lit = 0.18 * wide
        light = (
            f"M{coordinate(x0 - lit)} {coordinate(y0 - lit)}L{coordinate(x1 - lit)} {coordinate(y1 - lit)}"
        )
        strokes = ((line, "#8b95a3", wide), (line, "#c9d0d9", wide - 2), (light, "#e6eaef", 0.45 * wide))
        return "".join(
            f'<path d="{d}" stroke="{tint}" stroke-width="{max(size, 0.5):.1f}" stroke-linecap="round"/>'
            for d, tint, size in strokes
        )

    def hub(self, hub: Hub, pose: Transform) -> str:
        """A cylinder about the joint's axis, in the joint's colour."""
        axis = pose.rotation @ hub.axis
        if axis @ self.camera.eye < 0:
            axis = -axis
        back, front = (self.place(pose.translation + side * hub.length / 2 * axis) for side in (-1.0, 1.0))
        radius = hub.radius * self.scale
        squeeze = abs(float(axis @ self.camera.eye))
        along = front - back
        angle = math.degrees(math.atan2(along[1], along[0])) if np.linalg.norm(along) > 1e-9 else 0.0
        tint, length = colour(hub.joint), float(np.linalg.norm(along))
        cap = f'rx="{squeeze * radius:.1f}" ry="{radius:.1f}"'
        return (
            f'<g transform="translate({coordinate(back[0])} {coordinate(back[1])}) rotate({angle:.1f})">'
            f'<ellipse {cap} fill="{tint}"/><rect y="{-radius:.1f}" width="{length:.1f}" height="{2 * radius:.1f}" '
            f'fill="{tint}"/><ellipse cx="{length:.1f}" {cap} fill="{tint}"/>'
            f'<ellipse cx="{length:.1f}" {cap} fill="#fff" opacity=".35"/></g>'
        )

    def plate(self) -> str:
        radius = 0.09 * self.bones.reach * self.scale
        x, y = self.place(np.zeros(3))
        flat = radius * math.sin(ELEVATION)
        return f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{radius:.1f}" ry="{flat:.1f}" fill="#6b7583"/>'

    def shadow(self, q: np.ndarray, up: np.ndarray) -> str:
        """Shadow of the arm on the ground."""
        poses = self._poses(q)
        lines = []
        for rod in self.bones.capsules:
            pose = poses[rod.body + 1]
            ends = np.array([rod.start, rod.end]) @ pose.rotation.T + pose.translation
            ground = ends - np.outer(ends @ up, up)
            (x0, y0), (x1, y1) = self.place(ground)
            wide = 2 * rod.radius * self.scale * (1.0 if rod.body != BASE else 1.2)
            lines.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke-width="{wide:.1f}"/>')
        return f'<g stroke="#8b95a3" stroke-linecap="round" opacity=".16">{"".join(lines)}</g>'
