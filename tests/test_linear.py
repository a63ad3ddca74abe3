"""Linear algebra of our own against NumPy's, and its bits on other processors."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise
from linkwise.core import products
from linkwise.solve import linear
from other_processors import environments


def matrices():
    """Tall, wide, square, rank-deficient, graded, empty columns, large and small numbers."""
    rng = np.random.default_rng(0)
    for number in range(60):
        rows, columns = int(rng.integers(1, 60)), int(rng.integers(1, 40))
        rank = int(rng.integers(1, columns + 1))
        scale = np.logspace(0, -int(rng.integers(0, 12)), columns)
        A = rng.uniform(-1, 1, (rows, rank)) @ (rng.uniform(-1, 1, (rank, columns)) * scale)
        if number % 5 == 0:
            A = A.T @ A
        if number % 7 == 0:
            A[:, columns // 2 :] = 0.0
        yield A * (1.0, 1e-120, 1e120)[number % 3]
    yield np.zeros((4, 3))
    yield np.tril(np.ones((30, 30)))


def test_factors_against_numpy():
    for A in matrices():
        size = max(float(np.abs(A).max()), 1e-300)
        R = linear.triangle(A) / size
        assert np.allclose(R, np.triu(R), rtol=0, atol=0)
        assert np.allclose(R.T @ R, (A / size).T @ (A / size), rtol=0, atol=1e-12 * len(A))
        expected = np.linalg.svd(A / size, compute_uv=False)
        largest = max(float(expected[0]), 1.0)
        assert np.allclose(linear.singular_values(A) / size, expected, rtol=0, atol=1e-13 * largest)
        s, Vt = linear.svd(A)
        assert np.allclose(Vt @ Vt.T, np.eye(A.shape[1]), rtol=0, atol=1e-12)
        assert np.allclose(((A / size) @ Vt.T) ** 2 @ np.ones(len(s)), (A / size) ** 2 @ np.ones(len(s)))
        assert (np.diff(s) <= 0).all()
        S = (A / size).T @ (A / size) - 0.3 * np.eye(A.shape[1])
        values, vectors = linear.symmetric_eigen(S)
        assert np.allclose(
            values, np.linalg.eigvalsh(S), rtol=0, atol=1e-13 * max(1.0, np.abs(S).max()) * len(S)
        )
        assert np.allclose(
            (vectors * values) @ vectors.T, S, rtol=0, atol=1e-12 * max(1.0, np.abs(S).max()) * len(S)
        )
        assert np.allclose(
            linear.product(A / size, A.T / size), (A / size) @ (A / size).T, rtol=1e-12, atol=1e-12
        )


def test_eigenvalues_at_the_bound_of_their_rows():
    """The smallest eigenvalue is the opposite of the largest sum of a row, once or several times."""
    rng = np.random.default_rng(0)
    for size in range(1, 8):
        for S in (
            -np.ones((size, size)),
            np.diag(np.r_[-3.0, rng.uniform(-2, 2, size - 1)]),
            np.diag(np.r_[rng.uniform(-2, 2, size // 2), np.full(size - size // 2, -3.0)]),
            np.zeros((size, size)),
        ):
            values, vectors = linear.symmetric_eigen(S)
            assert np.allclose(values, np.linalg.eigvalsh(S), rtol=0, atol=1e-12)
            assert np.allclose(vectors.T @ vectors, np.eye(size), rtol=0, atol=1e-12)
            assert np.allclose((vectors * values) @ vectors.T, S, rtol=0, atol=1e-12)


def test_equations_against_numpy():
    rng = np.random.default_rng(1)
    for A in matrices():
        A = A / max(float(np.abs(A).max()), 1e-300)
        b = rng.uniform(-1, 1, (len(A), 2))
        expected = np.linalg.lstsq(A, b, rcond=1e-6)[0]
        found = linear.solve_least_squares(A, b, 1e-6)
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-8 * max(1.0, np.abs(expected).max()))
        assert np.array_equal(linear.solve_least_squares(A, b[:, 0], 1e-6).shape, expected[:, 0].shape)
    A = rng.uniform(-1, 1, (9, 9))
    assert np.allclose(linear.inverse(A) @ A, np.eye(9), atol=1e-12)
    L = linear.cholesky(A @ A.T)
    assert np.allclose(L @ L.T, A @ A.T)
    with pytest.raises(np.linalg.LinAlgError):
        linear.cholesky(-A @ A.T)
    with pytest.raises(np.linalg.LinAlgError):
        linear.solve(np.zeros((3, 3)), np.ones(3))
    with pytest.raises(ValueError, match="product: expected shapes"):
        linear.product(np.ones((2, 3)), np.ones((2, 3)))


def test_functions_against_numpy():
    x = np.exp(np.random.default_rng(2).uniform(-600, 600, 20_000))
    assert (np.abs(linear.logarithm(x) - np.log(x)) <= 4e-16 * np.maximum(np.abs(np.log(x)), 1e-3)).all()
    angles = np.random.default_rng(3).uniform(-50, 50, (40, 5))
    for ours, theirs in zip(linear.sine_and_cosine(angles), (np.sin(angles), np.cos(angles)), strict=True):
        assert ours.shape == angles.shape
        assert np.abs(ours - theirs).max() < 3e-16


def test_numbers_that_are_not_finite_end():
    A = np.ones((5, 4))
    for bad in (np.nan, np.inf):
        A[2, 1] = bad
        assert not np.isfinite(linear.singular_values(A)).all()
        assert not np.isfinite(linear.triangle(A)).all()


def test_products_have_the_shapes_of_numpy():
    rng = np.random.default_rng(4)
    for first, second in (
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (5, 3, 4)),
    ):
        A, B = rng.uniform(-1, 1, first), rng.uniform(-1, 1, second)
        assert np.allclose(products.times(A, B), A @ B)
        assert np.shape(products.times(A, B)) == (A @ B).shape
    assert products.length([3.0, 4.0]) == 5.0


SEARCHES = [
    "excitation/motions",
    "excitation/basis",
    "excitation/criteria",
    "excitation/limits",
    "estimation/quasi_newton",
    "estimation/base",
    "estimation/rank",
    "estimation/solvers",
    "estimation/regression",
    "estimation/estimators",
    "estimation/weights",
    "estimation/coloured",
    "estimation/clustered",
    "estimation/reduction",
    "estimation/significance",
    "judging/screening",
    "estimation/friction",
    "estimation/friction_choice",
    "loop/gauss_newton",
    "estimation/lag",
]  # modules of identify that search, choose or estimate
WALKING = [
    "optimal/gaits",
    *(f"optimal/walking/{name}" for name in ("controller", "feet", "follower", "planner", "stages")),
]
WALKING += [f"control/whole_body/{name}" for name in ("limits", "sample", "sharing")]
"""Modules whose numbers a robot walks by: one that a last bit makes fall on another processor does not walk."""


def _of_transforms(product):
    """Whether the second factor of A @ B is made by ``Transform``, whose products are ours."""
    made = product.right.func if isinstance(product.right, ast.Call) else product.right
    return "Transform" in ast.unparse(made)


def test_searches_use_no_blas():
    """``@``, ``np.dot``, ``np.linalg`` and SciPy's optimisers round differently on every processor."""
    folder = Path(linkwise.__file__).parent
    for name in (*(f"identify/{module}" for module in SEARCHES), *WALKING):
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))):
            where = f"{name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                assert _of_transforms(node), f"{where}: multiplies matrices by @"
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("linalg", "dot", "tensordot", "einsum_path") or (
                    isinstance(node.value, ast.Name) and node.value.id == "linear"
                ), f"{where}: {node.attr}"


SCRIPT = """
import hashlib, json
import numpy as np
import linkwise as lw
from linkwise.solve import linear
from linkwise.identify import Noise, excite, identify, simulated_log

def digest(*arrays):
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array, dtype=float).tobytes())
    return found.hexdigest()

found = {}
rng = np.random.default_rng(0)
parts = []
for rows, columns in ((3, 5), (40, 12), (200, 70), (9, 9)):
    A = rng.uniform(-1, 1, (rows, columns))
    A[:, -1] = A[:, 0]
    b = rng.uniform(-1, 1, rows)
    parts += [linear.product(A, A.T), linear.triangle(A), *linear.svd(A), linear.solve_least_squares(A, b, 1e-9)]
    parts += linear.symmetric_eigen(linear.product(A.T, A))
parts += [linear.logarithm(np.linspace(1e-3, 9, 500)), *linear.sine_and_cosine(np.linspace(-20, 20, 500))]
found["linear algebra"] = digest(*parts)
poses = lw.Transform.identity()
for _ in range(50):
    poses = poses @ lw.Transform.from_rpy(rng.uniform(-1, 1, 3), rng.uniform(-3, 3, 3))
arm = lw.load("puma560")
states = [rng.uniform(-1, 1, (7, arm.dof)) for _ in range(3)]
found["robots"] = digest(poses.rotation, poses.translation, arm.regressor(*states))
robot = lw.load("two_link")
options = {"order": 3, "duration": 6.0, "starts": 1, "iterations": 24}
excited = [excite(robot, family=family, **options) for family in ("fourier", "spline")]
found["exciting motions"] = digest(
    *(x for each in excited for x in (each.samples.q, each.samples.qdd, each.condition, each.log_det))
)
log = Noise().added(simulated_log(robot, excited[0].trajectory, 6.0, rate=200.0), np.random.default_rng(5))
identified = identify(robot, log)
estimate = identified.estimate
found["estimates"] = (estimate.x / estimate.deviations).tolist()
found["parameters of the robot"] = identified.robot.parameters.tolist()
print(json.dumps(found))
"""
ESTIMATES = 1e-9  # standard deviations: SciPy's filters and splines use BLAS
LINKS = 1e-6  # of the largest parameter: possible links are found by a conic solver that uses BLAS


@pytest.mark.processor
def test_motions_and_robots_are_the_same_on_every_processor(tmp_path):
    """Exciting motions to the last bit, estimates and identified robots within their tolerances."""
    kinds = environments()
    if len(kinds) < 2:
        pytest.skip("needs an x86 processor: OpenBLAS has kernels for several there")
    results = {}
    for kind in [name for name in ("SkylakeX", "Haswell", "Nehalem") if name in kinds]:
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, **kinds[kind]},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        results[kind] = json.loads(ran.stdout)
    first, *others = results.values()
    for other in others:
        for name, tolerance in (("estimates", ESTIMATES), ("parameters of the robot", LINKS)):
            ours, theirs = np.array(first[name]), np.array(other.pop(name))
            size = 1.0 if name == "estimates" else np.abs(ours).max()
            assert np.abs(theirs - ours).max() < tolerance * size, name
        assert other == {name: first[name] for name in other}
