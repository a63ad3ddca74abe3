"""Steps of scenes with free bodies, as C: the same bits as from Python."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import linkwise as lw

sys.path.insert(0, str(Path(__file__).parents[1]))
from c_functions import c_function

MOMENTS = (1e-3, 1e-3, 1e-3)


def scenes() -> dict[str, tuple[lw.Robot, np.ndarray]]:
    corners = 0.5 * np.array([(a, b, c) for a in (-0.1, 0.1) for b in (-0.12, 0.12) for c in (-0.08, 0.08)])
    table = lw.Body.box((1, 1, 0.2), name="table", friction=0.6)
    hull = lw.Body("hull", lw.Shape.hull("hull", corners, friction=0.6), mass=0.5, inertia=MOMENTS)
    one = lw.Body.box((0.1, 0.1, 0.1), mass=0.5, name="one", friction=0.6)
    two = lw.Body.capsule(0.03, 0.1, mass=0.2, name="two", friction=0.5)
    lying = [0.0, np.sin(np.pi / 4), 0.0, np.cos(np.pi / 4)]
    return {
        "hull": (lw.Scene([hull, table]), np.array([0.02, 0.01, 0.14, 0.003, 0.001, 0, 1.0])),
        "bodies": (
            lw.Scene([one, two, lw.Ground(friction=0.7)]),
            np.array([0, 0, 0.05, 0, 0, 0, 1.0, 0, 0, 0.13, *lying]),
        ),
    }


def test_steps_of_scenes_in_c_have_the_bits_of_python(tmp_path):
    rng = np.random.default_rng(0)
    for name, (scene, start) in scenes().items():
        kernel = scene.kernel("contact_step")
        q, qd, tau = start, 0.1 * rng.normal(size=scene.dof), 0.01 * rng.normal(size=scene.dof)
        folder, touched = tmp_path / name, False  # a library that is loaded is not loaded again from its path
        folder.mkdir()
        in_c = c_function(kernel, folder)
        for _ in range(2):
            wanted = kernel(q, qd, tau)
            found = in_c(q, qd, tau)
            for own, other in zip(wanted, found, strict=True):
                assert np.asarray(own).tobytes() == other.tobytes(), name
            touched |= bool(wanted[2].any())
            q, qd = wanted[0], wanted[1]
        assert touched, name
