"""The linear regressor: torques = regressor · parameters (Izaguirre 1992, (25), (26)).

Columns follow ``Model.parameter_labels``: ten per link, about the origin and along the axes of the file's link frame,
then the coefficients of the joints (see ``linkwise.joint_laws``). The force that one unit parameter causes is carried
inward along the link's ancestors; its component along each joint's axis is an entry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.algorithms import gravity_compensation, joint_terms
from linkwise.algorithms.newton_euler import body_force, motion
from linkwise.joint_laws import Law
from linkwise.model.axes import JointValue, parts_of
from linkwise.model.inertia import LABELS, Inertia
from linkwise.model.mechanism import Mechanism, MovingLink, Turned
from linkwise.scalar import Scalar, stage
from linkwise.spatial import RigidInertia, Spatial, Symmetric, Vector


def regressor(
    links: Mechanism,
    q: Sequence[JointValue],
    qd: Sequence[JointValue],
    qdd: Sequence[JointValue],
    coefficients: Sequence[tuple[Law, str]],
) -> list[list[Scalar]]:
    """n rows, one column per parameter; ``coefficients`` are those of the joints, see ``joint_laws.coefficients``."""
    n = links.dof
    with stage("joint turns"):
        turned = links.turned(q)
    with stage("motion outward"):
        moving = motion(links, turned, qd, qdd)
    rows: list[list[Scalar]] = [[] for _ in range(n)]
    with stage("columns"):
        for k, link in enumerate(links):
            for unit in _unit_bodies(link):
                column = _column(links, turned, link, body_force(unit, moving[k]))
                for i in range(n):
                    rows[i].append(column.get(i, 0.0))
        coordinates = [k for k, _ in links.coordinates()]
        for law, name in coefficients:
            if law.on_body:
                _add_body_columns(links, turned, rows, name)
                continue
            for i, k in enumerate(coordinates):
                entry = joint_terms.column(law, name, links, i, q, qd, qdd)
                rows[i].extend(entry if k == j else 0.0 for j in range(len(links)))
    return rows


def _add_body_columns(
    links: Mechanism, turned: Sequence[Turned], rows: list[list[Scalar]], name: str
) -> None:
    """One column per link: the carried weight of a unit mass or first moment."""
    for link, weight in zip(links, carried_weights(links, turned, name), strict=True):
        column = _column(links, turned, link, weight)
        for i, row in enumerate(rows):
            row.append(column.get(i, 0.0))


def carried_weights(links: Mechanism, turned: Sequence[Turned], name: str) -> list[Spatial]:
    """For every link the carried weight of a unit mass or first moment, about its origin and in its axes."""
    names = [parameter.name for parameter in gravity_compensation.LAW.parameters]
    gravity = gravity_compensation.gravity_in_links(links, turned)
    m, *h = (1.0 if name == each else 0.0 for each in names)
    units = [gravity_compensation.in_prepared_frame(link, m, Vector(*h)) for link in links]
    return [gravity_compensation.force(g, *unit) for g, unit in zip(gravity, units, strict=True)]


def _unit_bodies(link: MovingLink) -> list[RigidInertia]:
    """One body per parameter: that parameter is 1 in the file's frame, the others 0; in the prepared frame."""
    units: list[RigidInertia] = []
    for k in range(len(LABELS)):
        body = Inertia.from_parameters(np.eye(len(LABELS))[k]).expressed_in(link.parameter_frame)
        values = np.where(np.abs(body.parameters) < 1e-15, 0.0, body.parameters).tolist()
        units.append(RigidInertia(values[0], Vector(*values[1:4]), Symmetric(*values[4:])))
    return units


def _column(links: Mechanism, turned: Sequence[Turned], link: MovingLink, x: Spatial) -> dict[int, Scalar]:
    first = links.first_coordinates()
    felt = dict(enumerate(parts_of(link.felt(x)), start=first[link.index]))
    for i in links.ancestors(link.index):
        x = link.placed(turned[link.index]).force_to_parent(x)
        link = links[i]
        felt |= dict(enumerate(parts_of(link.felt(x)), start=first[i]))
    return felt
