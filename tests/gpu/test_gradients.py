"""Gradients: the kernel that pulls cotangents back, and PyTorch's and JAX's gradients through it, on the CPU."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.gpu import DeviceError

FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
ROBOT = lw.load("two_link")  # small enough for gradcheck


def states(*shape, dtype="float64", number=3, dof=2):
    generator = np.random.default_rng(3)
    return [generator.normal(size=(*shape, dof)).astype(dtype) for _ in range(number)]


# -- the kernel -------------------------------------------------------------------------------------------------------


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


# -- PyTorch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradcheck(function):
    torch = pytest.importorskip("torch")
    given = [torch.tensor(a, requires_grad=True) for a in states(2)]
    assert torch.autograd.gradcheck(getattr(ROBOT, function), given)
    assert torch.autograd.gradgradcheck(getattr(ROBOT, function), given)


def test_broadcast_inputs_get_sums():
    torch = pytest.importorskip("torch")
    q, qd, qdd = states(3, 4)
    given = [torch.tensor(a, requires_grad=True) for a in (q[:, :1], qd[0, 0], qdd)]
    assert torch.autograd.gradcheck(ROBOT.inverse_dynamics, given)
    ROBOT.inverse_dynamics(*given).sum().backward()
    assert [tuple(x.grad.shape) for x in given] == [(3, 1, 2), (2,), (3, 4, 2)]


def test_functions_of_other_shapes():
    torch = pytest.importorskip("torch")
    q, qd = (torch.tensor(a, requires_grad=True) for a in states(2, number=2))
    for function, given in ((ROBOT.mass_matrix, [q]), (ROBOT.kinetic_energy, [q, qd]), (ROBOT.pose, [q])):
        assert torch.autograd.gradcheck(function, given)
    single = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ROBOT.inverse_dynamics_derivatives, [single, single, single])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_only_where_asked_for(dtype):
    torch = pytest.importorskip("torch")
    q, qd, qdd = (torch.tensor(a) for a in states(5, dtype=dtype))
    plain = ROBOT.inverse_dynamics(q, qd, qdd)
    assert not plain.requires_grad
    qdd.requires_grad_()
    with torch.no_grad():
        assert not ROBOT.inverse_dynamics(q, qd, qdd).requires_grad
    tau = ROBOT.inverse_dynamics(q, qd, qdd)
    assert tau.dtype == q.dtype
    assert torch.equal(tau, plain)
    tau.sum().backward()
    assert q.grad is None
    assert qdd.grad.dtype == q.dtype
    torch.testing.assert_close(qdd.grad, torch.tensor(ROBOT.mass_matrix(q.numpy())).sum(-1))
    with pytest.raises(DeviceError, match="out: cannot be given together with gradients"):
        ROBOT.inverse_dynamics(q, qd, qdd, out=torch.empty_like(q))


def test_mixed_precision_and_kinds():
    torch = pytest.importorskip("torch")
    q, qd, qdd = states(5)
    single = torch.tensor(q.astype("float32"), requires_grad=True)
    ROBOT.inverse_dynamics(single, torch.tensor(qd), torch.tensor(qdd)).sum().backward()
    assert single.grad.dtype == torch.float32
    with pytest.raises(DeviceError, match=r"qd is a numpy.ndarray"):
        ROBOT.inverse_dynamics(single, qd, torch.tensor(qdd))


def test_a_loop_has_no_gradient():
    torch = pytest.importorskip("torch")
    q, qd, tau = (torch.tensor(a, requires_grad=True) for a in states(2))
    qdd = ROBOT.forward_dynamics(q, qd, tau, algorithm="conjugate_gradient")
    with pytest.raises(lw.LinkwiseError, match="loop cannot be differentiated"):
        qdd.sum().backward()


# -- JAX --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def jax():
    found = pytest.importorskip("jax")
    with found.enable_x64(True) if hasattr(found, "enable_x64") else found.experimental.enable_x64():
        yield found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_jax_gradients(jax, function):
    q, qd, third = states(6)
    qd = qd[0]
    weights = np.random.default_rng(2).normal(size=(6, 2))
    method = getattr(ROBOT, function)
    got = jax.grad(lambda *x: (method(*x) * weights).sum(), argnums=(0, 1, 2))(
        *map(jax.numpy.asarray, (q, qd, third))
    )
    wanted = ROBOT.kernel(function).vjp()(q, qd, third, weights)
    for a, b in zip(got, (wanted[0], wanted[1].sum(0), wanted[2]), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_jax_jit_is_refused(jax):
    q = jax.numpy.asarray(states(3)[0])
    for inside in (jax.jit(ROBOT.gravity_torques), jax.vmap(ROBOT.gravity_torques)):
        with pytest.raises(DeviceError, match=r"inside jax\.jit"):
            inside(q)
    with pytest.raises(DeviceError, match=r"inside jax\.jit"):
        jax.jit(jax.grad(lambda q: ROBOT.gravity_torques(q).sum()))(q)
