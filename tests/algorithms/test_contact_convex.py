"""Cylinders, ellipsoids and hulls with other solids: gaps beside MuJoCo's, points where faces meet, derivatives, C."""

from __future__ import annotations

import numpy as np
import pytest
from test_contact_pairs import OTHERS, SIZES, geom, met, rotations

import linkwise as lw
from linkwise.algorithms.contact import convex, pairs
from linkwise.algorithms.kinematics import Pose
from linkwise.model.shapes import CANDIDATES, WORLD_ONLY, Shape
from linkwise.spatial import Matrix, Vector

POSES = 60
SECOND = {**OTHERS, "cylinder": (0.12, 0.2), "ellipsoid": (0.2, 0.1, 0.12)}
ROUND = {"cylinder", "ellipsoid"}
NEW = [pair for pair in CANDIDATES if {"hull", *ROUND} & {*pair} and not {*WORLD_ONLY} & {*pair}]


def hull_points() -> np.ndarray:
    points = np.random.default_rng(1).normal(size=(40, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.array(lw.Shape.hull("a", points * [0.12, 0.16, 0.1], most=12).points)


def placed(kind: str, sizes, turns: np.ndarray, places: np.ndarray) -> pairs.Placed:
    shape = Shape("body", kind, sizes, points=hull_points() if kind == "hull" else ())
    rotation = Matrix(*(turns[:, i, k] for i in range(3) for k in range(3)))
    return pairs.Placed(shape, Pose(rotation, Vector(*places.T)))


class Twin:
    """Two geoms in MuJoCo, and their distance."""

    def __init__(self, mujoco, first: str, second: str):
        texts = [
            'type="mesh" mesh="hull"' if kind == "hull" else geom(kind, sizes.get(kind))
            for kind, sizes in ((first, SIZES), (second, SECOND))
        ]
        corners = " ".join(f"{x:.17g}" for x in hull_points().ravel())
        bodies = "".join(f'<body mocap="true"><geom {text}/></body>' for text in texts)
        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_string(
            f'<mujoco><asset><mesh name="hull" vertex="{corners}"/></asset><worldbody>{bodies}</worldbody></mujoco>'
        )
        self.model.opt.ccd_tolerance, self.model.opt.ccd_iterations = 1e-12, 200
        self.data = mujoco.MjData(self.model)

    def distance(self, at, turn, other) -> float:
        self.data.mocap_pos[:], self.data.mocap_quat[:] = [at, np.zeros(3)], [turn, other]
        self.mujoco.mj_kinematics(self.model, self.data)
        return self.mujoco.mj_geomDistance(self.model, self.data, 0, 1, 10.0, np.zeros(6))


def test_gaps_near_contact_are_those_of_mujoco_and_never_too_large():
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(2)
    assert len(NEW) == 15
    for first, second in NEW:
        twin, turns = Twin(mujoco, first, second), rng.normal(size=(2, POSES, 4))
        at = rng.normal(size=(POSES, 3))
        at *= 0.28 * rng.uniform(0.3, 1.0, (POSES, 1)) / np.linalg.norm(at, axis=1, keepdims=True)
        wanted, theirs = rng.uniform(-3e-3, 3e-3, POSES), np.zeros(POSES)
        for k in range(POSES):
            theirs[k] = twin.distance(at[k], turns[0, k], turns[1, k])
            for _ in range(6 if k % 4 else 0):  # one of four stays where it is, deep inside or far away
                at[k] += at[k] / np.linalg.norm(at[k]) * (wanted[k] - theirs[k])
                theirs[k] = twin.distance(at[k], turns[0, k], turns[1, k])
        one = placed(first, SIZES.get(first, ()), rotations(turns[0]), at)
        two = placed(second, SECOND.get(second, ()), rotations(turns[1]), np.zeros((POSES, 3)))
        gaps, normals, points = met(one, two)
        error = gaps.min(axis=1) - theirs
        near, label = np.abs(theirs) < 5e-3, f"{first} {second}"
        assert near.sum() > POSES // 2
        # MuJoCo keeps corners of meshes in single precision
        is_round = {first, second} & ROUND
        assert np.abs(error[near]).max() < (5e-5 if is_round else 2e-8 if second != first else 1e-4), label
        assert np.quantile(np.abs(error[near]), 0.9) < (1e-6 if is_round else 2e-8), label
        assert error.max() < 2e-8, label
        assert np.abs(np.linalg.norm(normals, axis=-1) - 1.0).max() < 1e-9
        assert np.isfinite(points).all()
        assert gaps.shape[1] == CANDIDATES[first, second]
        # a step along the normal of the nearest candidate opens the gap by as much
        nearest = normals[np.arange(POSES), gaps.argmin(axis=1)]
        moved = placed(first, SIZES.get(first, ()), rotations(turns[0]), at + 1e-4 * nearest)
        rate = (met(moved, two)[0].min(axis=1) - gaps.min(axis=1))[near] / 1e-4
        assert np.mean(np.abs(rate - 1.0) < 0.1) > 0.9, label
        swapped = met(two, one)
        np.testing.assert_allclose(swapped[0].min(axis=1)[near], gaps.min(axis=1)[near], atol=1e-4)


def test_hulls_of_the_corners_of_boxes_touch_as_boxes_do():
    rng = np.random.default_rng(4)
    count = 60
    size = np.array([0.12, 0.3, 0.1])
    corners = 0.5 * size * [(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
    yaw = [lw.Transform.from_rpy((0, 0, 0), (0, 0, a)).rotation for a in rng.uniform(-np.pi, np.pi, count)]
    yaw[0] = np.eye(3)
    at = np.column_stack([*rng.uniform(-0.05, 0.05, (2, count)), np.full(count, 0.1 - 1e-5)])
    eyes = np.tile(np.eye(3), (count, 1, 1))
    hull = pairs.Placed(Shape.hull("a", corners), placed("sphere", (0.0,), np.array(yaw), at).pose)
    box = placed("box", (0.2, 0.2, 0.1), eyes, np.zeros((count, 3)))
    own = placed("box", tuple(size), np.array(yaw), at)
    gaps, normals, points = met(hull, box)
    np.testing.assert_allclose(gaps, -1e-5, atol=1e-10)
    np.testing.assert_allclose(normals, np.broadcast_to((0.0, 0.0, 1.0), normals.shape), atol=1e-9)
    _, _, wanted = met(own, box)

    def area(points):
        x, y = points[..., 0], points[..., 1]
        order = np.argsort(np.arctan2(y - y.mean(1, keepdims=True), x - x.mean(1, keepdims=True)), axis=1)
        x, y = np.take_along_axis(x, order, 1), np.take_along_axis(y, order, 1)
        return 0.5 * np.abs((x * np.roll(y, -1, 1) - y * np.roll(x, -1, 1)).sum(axis=1))

    assert (area(points) > 0.6 * area(wanted)).all()
    assert (np.abs(points[..., :2]) <= 0.1 + 1e-6).all()


def test_solids_stand_on_solids_and_derivatives_are_those_of_differences():
    points = 0.5 * np.array([(a, b, c) for a in (-0.1, 0.1) for b in (-0.12, 0.12) for c in (-0.08, 0.08)])
    moments = (1e-3, 1e-3, 1e-3)
    solids = {
        "cylinder": (lw.Body.cylinder(0.05, 0.12, mass=0.5, name="b", friction=0.6), 0.06),
        "hull": (lw.Body("b", Shape.hull("b", points, friction=0.6), mass=0.5, inertia=moments), 0.04),
    }
    table = lw.Body.box((1, 1, 0.2), name="table", friction=0.6)
    puck = lw.Body.cylinder(0.3, 0.2, name="table", friction=0.6)
    for kind, (body, half) in solids.items():
        scene = lw.Scene([body, puck if kind == "hull" else table])
        q, qd, tau = np.array([0.02, 0.01, 0.101 + half, 0.003, 0.001, 0, 1.0]), np.zeros(6), np.zeros(6)
        slope = scene.kernel("contact_gaps").jacobian("q")(q) if kind == "hull" else None
        for k in range(6 if kind == "hull" else 0):
            step = 1e-6 * np.eye(7)[k]
            change = (scene.contact_gaps(q + step) - scene.contact_gaps(q - step)) / 2e-6
            np.testing.assert_allclose(slope[:, k], change, atol=1e-5)
        for _ in range(300):
            q, qd, impulse = scene.contact_step(q, qd, tau)
        assert abs(q[2] - 0.1 - half) < 1e-5, kind
        assert np.abs(qd).max() < 1e-6, kind
        assert impulse[:, 2].sum() / 0.002 == pytest.approx(0.5 * 9.81, rel=1e-6)


def test_solids_of_every_size_touch_alike():
    """The same solids as small as a screw and as large as a house: gaps and points scale, normals stay."""
    rng = np.random.default_rng(9)
    count = 25
    turns = [rotations(rng.normal(size=(count, 4))) for _ in range(2)]
    at = rng.normal(size=(count, 3))
    at *= 0.3 * rng.uniform(0.4, 1.2, (count, 1)) / np.linalg.norm(at, axis=1, keepdims=True)
    for first, second in NEW:
        results = []
        for scale in (2.0**-7, 1.0, 2.0**7):  # exact in floating point
            solids = []
            for kind, sizes, turn, places in (
                (first, SIZES, turns[0], at),
                (second, SECOND, turns[1], np.zeros((count, 3))),
            ):
                points = scale * hull_points() if kind == "hull" else ()
                shape = Shape("body", kind, tuple(scale * np.array(sizes.get(kind, ()))), points=points)
                pose = placed("sphere", (1.0,), turn, scale * places).pose
                solids.append(pairs.Placed(shape, pose))
            gaps, normals, points = met(*solids)
            results.append((gaps / scale, normals, points / scale))
        for other in (results[0], results[2]):
            for part, right in zip(other, results[1], strict=True):
                np.testing.assert_allclose(part, right, atol=1e-8, err_msg=f"{first} {second}")


def test_the_curvature_of_an_ellipsoid_is_that_of_its_support():
    """h(n) = √(Σ sᵢ² nᵢ²), by differences of second order along two directions."""
    rng, step = np.random.default_rng(4), 1e-4
    for _ in range(20):
        sizes, (n, t, u) = rng.uniform(0.05, 0.4, 3), np.linalg.qr(rng.normal(size=(3, 3)))[0]

        def support(a, b, sizes=sizes, n=n, t=t, u=u):
            return np.linalg.norm(sizes * (n + step * (a * t + b * u)))

        expected = (
            (support(1, 0) - 2 * support(0, 0) + support(-1, 0)) / step**2,
            (support(1, 1) - support(1, -1) - support(-1, 1) + support(-1, -1)) / (4 * step**2),
            (support(0, 1) - 2 * support(0, 0) + support(0, -1)) / step**2,
        )
        found = convex._curvature(Shape("body", "ellipsoid", tuple(sizes)), tuple(n), tuple(t), tuple(u))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
