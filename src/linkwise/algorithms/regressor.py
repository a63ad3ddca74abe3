"""The linear regressor: torques = regressor · parameters (Izaguirre 1992, (25), (26)).

Columns follow ``Model.parameter_labels``: ten per link, about the origin and along the axes of the file's link frame,
then rotor inertias, viscous and Coulomb friction. The force that one unit parameter causes is carried inward along
the link's ancestors, each of which feels its entry.
"""

from __future__ import annotations

import numpy as np

from linkwise.algorithms.newton_euler import body_force, motion
from linkwise.model.inertia import LABELS, Inertia
from linkwise.model.mechanism import Mechanism, MovingLink
from linkwise.scalar import Scalar, sign, stage, where
from linkwise.spatial import RigidInertia, Spatial, Symmetric, Vector


def regressor(links: Mechanism, q, qd, qdd, asymmetric: bool = False) -> list[list[Scalar]]:
    """n rows, one column per parameter; ``asymmetric`` gives Coulomb friction a column for each direction."""
    n = len(links)
    with stage("joint turns"):
        turned = links.each(lambda link, q: link.turned(q), q)
    with stage("motion outward"):
        moving = motion(links, turned, qd, qdd)
    rows: list[list[Scalar]] = [[] for _ in range(n)]
    with stage("columns"):
        for k, link in enumerate(links):
            for unit in _unit_bodies(link):
                column = _column(links, turned, link, body_force(unit, moving[k]))
                for i in range(n):
                    rows[i].append(column.get(i, 0.0))
        for values in _joint_columns(qd, qdd, asymmetric):
            for i in range(n):
                rows[i].extend(values[i] if i == j else 0.0 for j in range(n))
    return rows


def _unit_bodies(link: MovingLink) -> list[RigidInertia]:
    """One body per parameter: that parameter is 1 in the file's frame, the others 0; in the prepared frame."""
    units = []
    for k in range(len(LABELS)):
        body = Inertia.from_parameters(np.eye(len(LABELS))[k]).expressed_in(link.parameter_frame)
        values = np.where(np.abs(body.parameters) < 1e-15, 0.0, body.parameters).tolist()
        units.append(RigidInertia(values[0], Vector(*values[1:4]), Symmetric(*values[4:])))
    return units


def _column(links: Mechanism, turned, link: MovingLink, x: Spatial) -> dict[int, Scalar]:
    felt = {link.index: link.along_axis(x)}
    for i in links.ancestors(link.index):
        x = link.placed(turned[link.index]).force_to_parent(x)
        link = links[i]
        felt[i] = link.along_axis(x)
    return felt


def _joint_columns(qd, qdd, asymmetric: bool) -> list[list[Scalar]]:
    if not asymmetric:
        return [list(qdd), list(qd), [sign(v) for v in qd]]
    forward = [where(v > 0.0, 1.0, where(v < 0.0, 0.0, sign(v))) for v in qd]
    backward = [where(v < 0.0, -1.0, where(v > 0.0, 0.0, sign(v))) for v in qd]
    return [list(qdd), list(qd), forward, backward]
