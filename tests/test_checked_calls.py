"""Forward dynamics under constraints and by conjugate gradients: results are checked by the kernel itself."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.functions.table import ITERATED, Setting
from linkwise.robot.kernels import evaluate

CHAIN = lw.general_chain(4)
HELD = CHAIN.with_constraints([lw.Point(CHAIN.default_frame(), [0.3, 0.2, 0.5])])


def given(*batch: int, dtype=np.float64) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    return {name: rng.uniform(0.2, 1.0, (*batch, CHAIN.dof)).astype(dtype) for name in ("q", "qd", "tau")}


@pytest.mark.parametrize(
    ("batch", "dtype", "options"),
    [
        ((), np.float64, {}),
        ((5,), np.float32, {"algorithm": "compound_link"}),
        ((), np.float64, {"stabilization": 5.0}),
    ],
)
def test_constrained_results_have_the_bits_of_the_unchecked_ones(batch, dtype, options):
    state = given(*batch, dtype=dtype)
    stabilization = options.get("stabilization")
    setting = Setting(HELD, stabilization=stabilization)
    wanted, unmet = evaluate("constrained_forward_dynamics", setting, options.get("algorithm"), state)
    assert np.all(unmet < 1e-2)
    for _ in range(3):
        assert HELD.forward_dynamics(*state.values(), **options).tobytes() == wanted.tobytes()
    forces = evaluate("constraint_forces", setting, options.get("algorithm"), state)
    for _ in range(3):
        assert HELD.constraint_forces(*state.values(), **options).tobytes() == forces.tobytes()


@pytest.mark.parametrize(
    ("algorithm", "batch"), [("conjugate_gradient", ()), ("preconditioned_conjugate_gradient", (5,))]
)
def test_iterated_results_have_the_bits_of_the_unchecked_ones(algorithm, batch):
    state = given(*batch)
    wanted, _, _ = evaluate(ITERATED, Setting(CHAIN), algorithm, state)
    out = np.empty_like(wanted)
    for _ in range(3):
        assert CHAIN.forward_dynamics(*state.values(), algorithm=algorithm).tobytes() == wanted.tobytes()
        assert CHAIN.forward_dynamics(*state.values(), algorithm=algorithm, out=out) is out
        assert out.tobytes() == wanted.tobytes()


def test_calls_are_one_kernel_each():
    for robot, name, options in (
        (HELD, "forward_dynamics", {}),
        (CHAIN, "forward_dynamics", {"algorithm": "conjugate_gradient"}),
    ):
        getattr(robot, name)(*given().values(), **options)
        kernel, look = robot.kernel_for(name, getattr(lw.Robot, name).options(options))
        assert look
        assert kernel.known_native("float64", 1) is not None
        again = pickle.loads(pickle.dumps(kernel))
        assert again(*given().values()).tobytes() == kernel(*given().values()).tobytes()


def test_errors_are_found_by_every_call():
    state = given().values()
    for _ in range(3):
        with pytest.raises(lw.ConvergenceError, match="did not reach"):
            CHAIN.forward_dynamics(*state, algorithm="conjugate_gradient", limit=1)
    frame = CHAIN.default_frame()
    impossible = CHAIN.with_constraints([lw.Point(frame, [0.3, 0.2, 0.5]), lw.Point(frame, [0.3, 0.2, 0.9])])
    messages = set()
    for _ in range(3):
        for name in ("forward_dynamics", "constraint_forces"):
            try:
                getattr(impossible, name)(*state, stabilization=10.0)
            except lw.LinkwiseError as error:
                messages.add(str(error))
    assert len(messages) == 1
    assert "cannot be met" in messages.pop()


def test_impact_by_every_kind_of_number():
    q, qd = given()["q"], given()["qd"]
    wanted = HELD.impact(q, qd, restitution=np.array([0.5]))
    assert HELD.impact(q, qd, restitution=0.5).tobytes() == wanted.tobytes()
    assert HELD.impact(q.tolist(), qd.tolist(), restitution=0.5).tobytes() == wanted.tobytes()
    assert HELD.impact(q, qd, restitution=1).shape == (4,)
