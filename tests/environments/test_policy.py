"""Networks as control laws: the same bits by every way to compute them, files, C packages."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.interpret import run_nest
from linkwise.compiler.shapes import nest
from linkwise.control.activations import ACTIVATIONS, exp
from linkwise.environments import Policy

SIZES = {"small": (3, 5, 2), "with loops": (40, 64, 64, 6)}


def reference(policy: Policy, seen: np.ndarray) -> np.ndarray:
    """By NumPy in double precision."""
    w, n = policy.weights.astype(float), policy.sizes[0]
    functions = {
        "relu": lambda x: np.maximum(x, 0.0),
        "elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0.0)), x),
        "tanh": np.tanh,
        "swish": lambda x: x / (1.0 + np.exp(-x)),
    }
    values, at = (seen - w[:n]) * w[n : 2 * n], 2 * n
    for k, (own, out) in enumerate(zip(policy.sizes, policy.sizes[1:], strict=False)):
        values = (
            values @ w[at : at + own * out].reshape(out, own).T + w[at + own * out : at + (own + 1) * out]
        )
        at += (own + 1) * out
        if k < len(policy.sizes) - 2:
            values = functions[policy.activation](values)
    return np.tanh(values) if policy.squash == "tanh" else values


def test_actions_are_those_of_the_network():
    rng = np.random.default_rng(0)
    for activation in ACTIVATIONS:
        for squash in ("none", "tanh"):
            policy = Policy.random((6, 9, 7, 3), seed=1, activation=activation, squash=squash)
            seen = rng.normal(size=(50, 6))
            np.testing.assert_allclose(policy(seen), reference(policy, seen), atol=2e-6)


def test_exponential():
    x = np.linspace(-19.9, 19.9, 4001)
    found = lw.kernel(x=1)(lambda x: exp(x[0]))(x[:, None])
    np.testing.assert_allclose(found, np.exp(x), rtol=3e-7)
    assert np.isnan(lw.kernel(x=1)(lambda x: exp(x[0]))(np.array([np.nan])))


@pytest.mark.parametrize("kind", SIZES)
def test_one_many_and_the_interpreter_have_the_same_bits(kind):
    policy = Policy.random(SIZES[kind], seed=2)
    kernel = policy.kernel("float32")
    seen = np.random.default_rng(1).normal(size=(33, policy.sizes[0])).astype(np.float32)
    many = kernel(seen, policy.weights)
    for k in (0, 32):
        assert kernel(seen[k], policy.weights).tobytes() == many[k].tobytes()
    program = nest(kernel.program("float32"))
    arrays = {"observation": seen[4].copy(), "weights": policy.weights.copy()}
    for array in program.arrays:
        if array.name not in arrays:
            arrays[array.name] = np.zeros(
                array.columns * (array.rows if isinstance(array.rows, int) else 1), np.float32
            )
    if kind == "small":
        run_nest(program, arrays)
        assert arrays["action"].astype(np.float32).tobytes() == many[4].tobytes()


def test_a_package_has_the_same_bits(tmp_path):
    policy = Policy.random(SIZES["with loops"], seed=3)
    policy.save(tmp_path / "policy.npz")
    command = [
        str(Path(sys.executable).parent / "linkwise"),
        "generate",
        "panda",
        "policy",
        "--dtype",
        "float32",
    ]
    more = ["--weights", str(tmp_path / "policy.npz"), "--out", str(tmp_path / "package"), "--states", "8"]
    ran = subprocess.run([*command, *more], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    ran = subprocess.run(["make", "-C", str(tmp_path / "package"), "check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert "all bits equal" in ran.stdout
    assert f"WEIGHTS[{policy.weight_count}]" in "".join(
        path.read_text(encoding="utf-8") for path in (tmp_path / "package" / "include").glob("*.h")
    ).upper().replace(" ", "")
    without = subprocess.run([*command, "--out", str(tmp_path / "other")], capture_output=True, text=True)
    assert without.returncode == 2
    assert "--weights FILE" in without.stderr


def test_files_and_wrong_weights(tmp_path):
    policy = Policy.random((4, 8, 2), seed=5, activation="tanh", squash="tanh")
    policy.save(tmp_path / "policy.npz")
    again = Policy.load(tmp_path / "policy.npz")
    assert (again.sizes, again.activation, again.squash) == ((4, 8, 2), "tanh", "tanh")
    assert again.weights.tobytes() == policy.weights.tobytes()
    (tmp_path / "other.npz").write_bytes(b"nothing")
    with pytest.raises(lw.ArgumentError, match="expected a policy file"):
        Policy.load(tmp_path / "other.npz")
    with pytest.raises(lw.ShapeError, match="weights: expected"):
        Policy((4, 8, 2), policy.weights[:-1])
    with pytest.raises(lw.ArgumentError, match="finite"):
        Policy((4, 8, 2), np.where(np.arange(len(policy.weights)) == 7, np.nan, policy.weights))
    with pytest.raises(lw.ArgumentError, match="activation"):
        Policy((4, 8, 2), policy.weights, "gelu")
    layers = [(np.ones((2, 3)), np.array([1.0, 2.0]))]
    made = Policy.of_layers(layers, mean=(1, 1, 1), deviation=(2, 2, 2))
    np.testing.assert_array_equal(made([3.0, 1.0, 1.0]), [2.0, 3.0])
