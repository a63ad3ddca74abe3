"""The robot as a whole: centre of mass, centroidal momentum, inertia of a task.

D. Orin, A. Goswami and S.-H. Lee, "Centroidal dynamics of a humanoid robot", 2013: the momentum about the centre of
mass is h = A(q) q̇, and ḣ = A q̈ + Ȧ q̇. All quantities are taken in the axes of the file's base frame, moments before
forces. Only moving links count: what is fixed to the world has no momentum.

O. Khatib, "A unified approach for motion and force control of robot manipulators", 1987: the inertia that a force at
a frame has to move is (J M⁻¹ Jᵀ)⁻¹. J M⁻¹ Jᵀ is the covariance of the smoother's costate (Rodriguez, JPL 86-48,
(9.20)), so no matrix of the joints is formed.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms import kalman
from linkwise.algorithms.coriolis import inertia_in_base
from linkwise.algorithms.kinematics import Pose, axis_in_base, frame_pose, jacobian, link_poses
from linkwise.algorithms.newton_euler import body_force, motion
from linkwise.errors import ModelError
from linkwise.joint_laws import is_zero
from linkwise.model.axes import JointValue
from linkwise.model.mechanism import Mechanism
from linkwise.model.transform import Transform
from linkwise.scalar import Scalar, stage
from linkwise.spatial import ArticulatedInertia, RigidInertia, Spatial, Vector, zero_spatial, zero_vector


def center_of_mass(links: Mechanism, q: Sequence[JointValue]) -> list[Scalar]:
    """Position of the centre of mass of all moving links in the base frame [m]."""
    _check_mass(links)
    poses = link_poses(links, q)
    with stage("centre of mass"):
        return [*_centre(links, poses)]


def com_jacobian(links: Mechanism, q: Sequence[JointValue]) -> list[list[Scalar]]:
    """3×n: velocity of the centre of mass per joint velocity, in base axes."""
    _check_mass(links)
    poses = link_poses(links, q)
    with stage("momenta of the axes"):
        inverse = 1.0 / _mass(links)
        columns = [inverse * momentum.linear for momentum in _axis_momenta(links, poses)]
        return [list(row) for row in zip(*columns, strict=True)]


def centroidal_matrix(links: Mechanism, q: Sequence[JointValue]) -> list[list[Scalar]]:
    """A(q), 6×n: angular momentum about the centre of mass, then linear momentum, per joint velocity."""
    poses = link_poses(links, q)
    with stage("momenta of the axes"):
        centre = _centre(links, poses)
        columns = [_about(centre, momentum) for momentum in _axis_momenta(links, poses)]
        if not columns:
            return [[] for _ in range(6)]
        return [list(row) for row in zip(*([*c.angular, *c.linear] for c in columns), strict=True)]


def centroidal_momentum(links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]) -> list[Scalar]:
    """Angular momentum about the centre of mass [kg·m²/s], then linear momentum [kg·m/s], in base axes."""
    from linkwise.algorithms.boundary_value import spatial_velocities

    turned = links.turned(q)
    poses = link_poses(links, q)
    velocities = spatial_velocities(links, turned, qd)
    with stage("momentum"):
        own = links.each(lambda link, V: link.inertia @ V, velocities)
        return _total(links, poses, own)


def centroidal_bias(links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue]) -> list[Scalar]:
    """Ȧ q̇: the rate of the centroidal momentum at zero joint acceleration, in base axes."""
    turned = links.turned(q)
    poses = link_poses(links, q)
    rest = links.grouped([0.0] * links.dof)
    moving = motion(links, turned, qd, rest, zero_vector())
    with stage("rate of momentum"):
        own = links.each(lambda link, moving: body_force(link.inertia, moving), moving)
        return _total(links, poses, own)


def jacobian_rate(
    links: Mechanism, q: Sequence[JointValue], qd: Sequence[JointValue], body: int, pose: Transform
) -> list[Scalar]:
    """J̇ q̇: angular and linear acceleration of a frame's origin at zero joint acceleration, in base axes."""
    if body < 0:
        return [0.0] * 6
    turned = links.turned(q)
    poses = link_poses(links, q)
    rest = links.grouped([0.0] * links.dof)
    moving = motion(links, turned, qd, rest, zero_vector())[body]
    with stage("rate of the Jacobian"):
        R, at = poses[body].rotation, links[body].file_frame @ pose
        linear = moving.vd + moving.U @ Vector(*at.translation.tolist())
        return [*(R @ moving.wd), *(R @ linear)]


def task_mobility(
    links: Mechanism, q: Sequence[JointValue], body: int, pose: Transform
) -> list[list[Scalar]]:
    """J M⁻¹ Jᵀ, 6×6: accelerations of a frame per force on it, in base axes."""
    if body < 0:
        return [[0.0] * 6 for _ in range(6)]
    turned = links.turned(q)
    poses = link_poses(links, q)
    filtered, _ = kalman.filter_inertias(links, turned)
    with stage("costate covariance"):
        own = kalman.costate_covariances(links, turned, filtered)[body][1]
        reach = frame_pose(links, poses, body, pose).position - poses[body].position
        swapped = ArticulatedInertia(own.C, own.B.transposed(), own.A).rotated(poses[body].rotation)
        moved = swapped.shifted(-reach)
        A, B, C = moved.C.matrix(), moved.B.transposed(), moved.A.matrix()
        rows = [[*A.row(k), *B.row(k)] for k in range(3)]
        return rows + [[*B.column(k), *C.row(k)] for k in range(3)]


def task_inertia(links: Mechanism, q: Sequence[JointValue], body: int, pose: Transform) -> list[list[Scalar]]:
    """(J M⁻¹ Jᵀ)⁻¹, 6×6; not a number where the frame cannot be moved in all six directions."""
    from linkwise.algorithms.dense import inverted

    mobility = task_mobility(links, q, body, pose)
    with stage("inversion"):
        return inverted(mobility)


def consistent_inverse(
    links: Mechanism, q: Sequence[JointValue], body: int, pose: Transform
) -> list[list[Scalar]]:
    """Khatib's dynamically consistent inverse of the Jacobian, n×6: M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁻¹."""
    from linkwise.algorithms.dense import product, transposed

    J = jacobian(links, q, body, pose)
    return product(transposed(kalman.times_inverse_mass(links, q, J)), task_inertia(links, q, body, pose))


# -- sums over all links ----------------------------------------------------------------------------------------------


def _mass(links: Mechanism) -> Scalar:
    if not len(links):
        return 0.0
    return sum((link.inertia.mass for link in links[1:]), start=links[0].inertia.mass)


def _check_mass(links: Mechanism) -> None:
    if not len(links):
        raise ModelError(f"no joint of {links.name} moves, so there is nothing to compute")
    if is_zero(_mass(links)):
        raise ModelError(
            f"{links.name}: its moving links have no mass, so there is no centre of mass; give them mass"
        )


def _centre(links: Mechanism, poses: list[Pose]) -> Vector:
    """The centre of mass; without mass the origin: there is no linear momentum, so every point gives the same
    angular momentum."""
    if is_zero(_mass(links)):
        return zero_vector()
    moments = links.each(
        lambda link, p: link.inertia.mass * p.position + p.rotation @ link.inertia.first_moment, poses
    )
    return (1.0 / _mass(links)) * sum(moments[1:], start=moments[0])


def _axis_momenta(links: Mechanism, poses: list[Pose]) -> list[Spatial]:
    """For every coordinate the momentum that its unit rate gives the links beyond it, about the base's origin."""
    composite: list[RigidInertia] = links.each(inertia_in_base, poses)
    for link in reversed(links):
        if link.parent >= 0:
            composite[link.parent] = composite[link.parent] + composite[link.index]
    return [composite[k] @ axis_in_base(axis, poses[k]) for k, axis in links.coordinates()]


def force_in_base(pose: Pose, force: Spatial) -> Spatial:
    """A force about the origin of a frame at ``pose`` and in its axes, about the base's origin and in its axes."""
    linear = pose.rotation @ force.linear
    return Spatial(pose.rotation @ force.angular + pose.position.cross(linear), linear)


def _total(links: Mechanism, poses: list[Pose], own: list[Spatial]) -> list[Scalar]:
    """The sum of momenta (or forces) of the links, each about its origin and in its axes, about the centre of mass."""
    whole = zero_spatial()
    for part in links.each(lambda link, pose, x: force_in_base(pose, x), poses, own):
        whole = whole + part
    total = _about(_centre(links, poses), whole)
    return [*total.angular, *total.linear]


def _about(centre: Vector, x: Spatial) -> Spatial:
    """A momentum about the base's origin, about another point."""
    return Spatial(x.angular - centre.cross(x.linear), x.linear)
