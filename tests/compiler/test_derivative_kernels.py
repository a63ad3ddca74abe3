"""The kernels that gradients in PyTorch and JAX use: cotangents pulled back, directions followed."""

import numpy as np
import pytest

import linkwise as lw

FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
ROBOT = lw.load("two_link")  # small enough for gradcheck


def states(*shape, dtype="float64", number=3, dof=2):
    generator = np.random.default_rng(3)
    return [generator.normal(size=(*shape, dof)).astype(dtype) for _ in range(number)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_vjp_is_the_cotangent_times_the_derivatives(function, dtype):
    robot = lw.load("stanford")
    *given, bar = states(20, dtype=dtype, number=4, dof=robot.dof)
    kernel = robot.kernel(function)
    derivatives = getattr(robot, f"{function}_derivatives")(*(a.astype("float64") for a in given))
    for got, derivative in zip(kernel.vjp()(*given, bar), derivatives, strict=True):
        wanted = np.einsum("bij,bi->bj", derivative, bar)
        assert got.dtype == dtype
        np.testing.assert_allclose(
            got, wanted, rtol=0, atol=(1e-12 if dtype == "float64" else 3e-4) * np.abs(wanted).max()
        )
    assert kernel.vjp() is kernel.vjp(*(name for name, _ in kernel.inputs))


def test_vjp_by_some_inputs_costs_less():
    kernel = ROBOT.kernel("forward_dynamics")
    assert kernel.vjp("tau").operations.total < 0.7 * kernel.vjp().operations.total
    q, qd, tau, bar = states(4, number=4)
    np.testing.assert_array_equal(kernel.vjp("tau")(q, qd, tau, bar).shape, (4, 2))
    with pytest.raises(lw.LinkwiseError, match=r"no input 'torque'; it has q, qd, tau"):
        kernel.vjp("torque")


def test_vjp_of_matrices_scalars_and_several_outputs():
    q, qd = states(5, number=2)
    bar = np.random.default_rng(1).normal(size=(5, 4))
    got = ROBOT.kernel("mass_matrix").vjp()(q, bar)
    by_q = ROBOT.kernel("mass_matrix").jacobian("q")(q)
    np.testing.assert_allclose(got, np.einsum("bijk,bij->bk", by_q, bar.reshape(5, 2, 2)), rtol=1e-12)
    (_, by_qd) = ROBOT.kernel("kinetic_energy").vjp()(q, qd, np.ones((5, 1)))
    np.testing.assert_allclose(by_qd, np.einsum("bij,bj->bi", ROBOT.mass_matrix(q), qd), rtol=1e-12)


def test_vjp_of_its_own_vjp():
    """Names stay apart, and a gradient of a gradient is Hessian times vector."""
    q, qd = states(4, number=2)
    energy = ROBOT.kernel("kinetic_energy")
    one = np.ones((4, 1))
    second = energy.vjp("qd").vjp("qd")
    np.testing.assert_allclose(
        second(q, qd, one, qd), np.einsum("bij,bj->bi", ROBOT.mass_matrix(q), qd), rtol=1e-12
    )
    names = [name for name, _ in (*second.inputs, *second.outputs)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_jvp_is_the_derivatives_times_the_direction(function):
    robot = lw.load("stanford")
    given, directions = states(20, dof=robot.dof), states(20, number=6, dof=robot.dof)[3:]
    kernel = robot.kernel(function)
    derivatives = getattr(robot, f"{function}_derivatives")(*given)
    parts = [np.einsum("bij,bj->bi", *pair) for pair in zip(derivatives, directions, strict=True)]
    np.testing.assert_allclose(
        kernel.jvp()(*given, *directions), sum(parts), rtol=0, atol=1e-12 * np.abs(parts).max()
    )
    np.testing.assert_allclose(
        kernel.jvp("qd")(*given, directions[1]), parts[1], rtol=0, atol=1e-12 * np.abs(parts[1]).max()
    )
    with pytest.raises(lw.LinkwiseError, match=r"jvp: .* has no input 'torque'"):
        kernel.jvp("torque")


def test_names_of_derivatives_of_derivatives_stay_apart():
    for kernel in (
        ROBOT.kernel("inverse_dynamics").jvp().jvp(),
        ROBOT.kernel("inverse_dynamics").vjp().vjp().jvp(),
    ):
        assert len(dict(kernel.inputs)) == len(kernel.inputs)
        assert len(dict(kernel.outputs)) == len(kernel.outputs)
        assert len(kernel.program().inputs) == len(kernel.inputs)


def test_derivatives_by_other_inputs_are_other_entries_of_the_cache():
    """Code on disk is found by the key: which inputs, in which order, and which kind of derivative."""
    kernel = lw.load("two_link").kernel("inverse_dynamics")
    made = [kernel.jacobian(by) for by in ("q", "qd", "qdd")]
    for some in (("q",), ("qd",), ("q", "qd"), ("qd", "q"), ("q", "qdd"), ("q", "qd", "qdd")):
        made += [kernel.vjp(*some), kernel.jvp(*some)]
    keys = [each.key for each in (kernel, *made, kernel.jacobian("q").jacobian("qd"))]
    assert len(set(keys)) == len(keys)
    assert None not in keys
