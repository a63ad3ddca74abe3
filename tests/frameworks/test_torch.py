"""Robots and kernels inside PyTorch, on the CPU and, where there is one, on a GPU."""

import copy
import os
import subprocess
import sys

import numpy as np
import pytest
from given import every_kernel, held_arm, parts, states

import linkwise as lw
from linkwise.gpu import DeviceError

torch = pytest.importorskip("torch")
func = torch.func

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
BACKEND = "aot_eager"  # everything but the code generator, which takes seconds a graph


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def tensors(arrays, device="cpu", **options):
    return [torch.tensor(a, device=device, **options) for a in arrays]


def array(tensor):
    return tensor.detach().cpu().numpy()


def close(found, wanted, tolerance=1e-12):
    np.testing.assert_allclose(
        array(found), wanted, rtol=0, atol=tolerance * max(np.abs(wanted).max(), 1e-300)
    )


# -- plain tensors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (1000,), (0,)])
def test_tensors_give_the_bits_of_the_numpy_call(panda, device, dtype, shape):
    given = states(*shape, dtype=dtype)
    for method in (panda.inverse_dynamics, panda.forward_dynamics):
        found = method(*tensors(given, device))
        assert isinstance(found, torch.Tensor)
        assert found.device.type == device
        np.testing.assert_array_equal(array(found), method(*given))
        assert array(found).dtype == dtype


@pytest.mark.parametrize("kernel", every_kernel(), ids=lambda kernel: kernel.name)
def test_every_function_as_operator_has_the_bits_of_the_numpy_call(kernel):
    """Through the operators: ``vmap`` leaves no plain tensors."""
    for dtype in ("float64", "float32"):
        rng = np.random.default_rng(1)
        given = [rng.normal(size=(3, size)).astype(dtype) for _, size in kernel.inputs]
        found, wanted = torch.vmap(kernel)(*tensors(given)), kernel(*given)
        for part, want in zip(parts(found), parts(wanted), strict=True):
            np.testing.assert_array_equal(array(part), want)


def test_broadcasting_options_outputs_and_users_kernels(panda, device):
    q, qd, qdd = states(4)
    wrench = states(4, number=1, dof=6)[0]
    options = {"friction": False, "algorithm": "gibbs_appell"}
    given = tensors((q[:, None], qd, qdd[0], wrench), device)
    found = panda.inverse_dynamics(*given[:3], wrench=given[3], **options)
    np.testing.assert_array_equal(
        array(found), panda.inverse_dynamics(q[:, None], qd, qdd[0], wrench=wrench, **options)
    )
    out = torch.empty(4, 7, dtype=torch.float64, device=device)
    assert panda.gravity_torques(*tensors([q], device), out=out) is out
    np.testing.assert_array_equal(array(out), panda.gravity_torques(q))

    @lw.kernel(q=7, w=7)
    def power(q, w):
        return (panda.gravity_torques(q) * w).sum(), q * w

    found = power(*tensors((q, qd), device))
    assert [tuple(part.shape) for part in found] == [(4,), (4, 7)]
    np.testing.assert_array_equal(array(found[0]), power(q, qd)[0])
    payload = np.array([1.0, 0, 0, 0.1, 0.01, 0, 0, 0.01, 0, 0.01])
    loaded = panda.kernel("inverse_dynamics", inputs=("payload",))
    np.testing.assert_array_equal(
        array(loaded(*tensors((q, qd, qdd, payload), device))), loaded(q, qd, qdd, payload)
    )


@pytest.mark.parametrize("short", ["bfloat16", "float16"])
def test_short_precisions_are_computed_in_float32_and_rounded_back(panda, device, short):
    given = [value.to(getattr(torch, short)) for value in tensors(states(6, dtype="float32"), device)]
    found = panda.inverse_dynamics(*given)
    wanted = panda.inverse_dynamics(*(value.float() for value in given))
    assert found.dtype == getattr(torch, short)
    assert torch.equal(found, wanted.to(found.dtype))
    mixed = panda.inverse_dynamics(given[0], given[1].float(), given[2])
    assert mixed.dtype == torch.float32
    given[0].requires_grad_()
    panda.inverse_dynamics(*given).sum().backward()
    assert given[0].grad.dtype == getattr(torch, short)
    assert torch.vmap(panda.inverse_dynamics)(*given).dtype == getattr(torch, short)


def test_messages(panda, device):
    q, qd, qdd = tensors(states(4), device)
    with pytest.raises(DeviceError, match=r"qd is a numpy.ndarray"):
        panda.inverse_dynamics(q, array(qd), qdd)
    with pytest.raises(lw.ShapeError, match=r"q: expected shape \(..., 7\), got \(4, 6\)"):
        torch.vmap(panda.gravity_torques)(q[:, :6])
    with pytest.raises(lw.ShapeError, match="do not broadcast together"):
        panda.inverse_dynamics(q.requires_grad_(), qd[:3], qdd)
    with pytest.raises(lw.DtypeError, match="q: expected real numbers"):
        torch.vmap(panda.gravity_torques)(q.to(torch.complex64))
    with pytest.raises(DeviceError, match="out: cannot be given"):
        panda.gravity_torques(q, out=torch.empty_like(qd))


# -- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_numerical_derivatives_agree_in_both_modes_and_twice(small, device, function):
    given = tensors(states(2, dof=2), device, requires_grad=True)
    method = getattr(small, function)
    assert torch.autograd.gradcheck(
        method, given, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )
    assert torch.autograd.gradgradcheck(method, given, check_fwd_over_rev=True)
    broadcast = [
        given[0][:, :1].detach().repeat(1, 2).requires_grad_(),
        given[1][0].detach().requires_grad_(),
        given[2],
    ]
    assert torch.autograd.gradcheck(method, broadcast, check_forward_ad=True)


def test_several_outputs_scalars_and_unused_ones(small):
    q, qd, qdd = tensors(states(2, dof=2), requires_grad=True)
    assert torch.autograd.gradcheck(small.inverse_dynamics_derivatives, [q, qd, qdd], check_forward_ad=True)
    assert torch.autograd.gradcheck(small.kinetic_energy, [q, qd], check_forward_ad=True)
    by_q, _, _ = small.inverse_dynamics_derivatives(q, qd, qdd)
    by_q.sum().backward()
    assert q.grad is not None


def test_gradients_only_where_they_are_asked_for(small):
    q, qd, qdd = tensors(states(5, dof=2))
    plain = small.inverse_dynamics(q, qd, qdd)
    assert not plain.requires_grad
    qdd.requires_grad_()
    with torch.no_grad():
        assert not small.inverse_dynamics(q, qd, qdd).requires_grad
    tau = small.inverse_dynamics(q, qd, qdd)
    assert torch.equal(tau, plain)
    tau.sum().backward()
    assert q.grad is None
    close(qdd.grad, small.mass_matrix(array(q)).sum(-1))
    single = torch.tensor(array(q), dtype=torch.float32, requires_grad=True)
    small.inverse_dynamics(single, qd, qdd).sum().backward()
    assert single.grad.dtype == torch.float32


def test_a_loop_has_no_gradient(small):
    q, qd, tau = tensors(states(2, dof=2), requires_grad=True)
    qdd = small.forward_dynamics(q, qd, tau, algorithm="conjugate_gradient")
    with pytest.raises(lw.LinkwiseError, match="loop cannot be differentiated"):
        qdd.sum().backward()


# -- torch.func -------------------------------------------------------------------------------------------------------


def test_vmap_nested_and_along_any_axis(panda, device):
    q, qd, qdd = arrays = states(4)
    there = tensors(arrays, device)
    f = panda.inverse_dynamics
    np.testing.assert_array_equal(array(torch.vmap(f)(*there)), f(*arrays))
    found = torch.vmap(f, in_dims=(1, None, 0))(there[0].T.contiguous(), there[1][0], there[2])
    np.testing.assert_array_equal(array(found), f(q, qd[0], qdd))
    found = torch.vmap(lambda a: torch.vmap(lambda b: f(a, b, there[2]))(there[1]))(there[0])
    np.testing.assert_array_equal(array(found), f(q[:, None, None], qd[None, :, None], qdd))
    found = torch.vmap(lambda a, b: f(a, b, there[2]), out_dims=1)(there[0], there[1])
    np.testing.assert_array_equal(array(found), np.moveaxis(f(q[:, None], qd[:, None], qdd), 0, 1))


def test_grad_jacrev_jacfwd_and_jvp(panda, device):
    arrays = states(4)
    there = tensors(arrays, device)
    f = panda.inverse_dynamics
    derivatives = panda.inverse_dynamics_derivatives(*arrays)
    for k, wanted in enumerate(derivatives):
        close(torch.vmap(func.jacrev(f, argnums=k))(*there), wanted)
        close(torch.vmap(func.jacfwd(f, argnums=k))(*there), wanted)
    found = torch.vmap(func.grad(lambda q, qd, qdd: (f(q, qd, qdd) ** 2).sum()))(*there)
    close(found, 2 * np.einsum("bi,bij->bj", f(*arrays), derivatives[0]))
    _, found = func.jvp(lambda q: f(q, *there[1:]), (there[0],), (there[1],))
    close(found, np.einsum("bij,bj->bi", derivatives[0], arrays[1]))


def test_second_derivatives_in_every_order_of_modes(small, device):
    """Each agrees with differences of the first derivatives, so a lost part is noticed."""
    q, qd, qdd = states(dof=2)
    there = tensors((q, qd, qdd), device)

    def size(q):
        return (small.inverse_dynamics(q, *there[1:]) ** 2).sum()

    def gradient(q):
        return 2 * small.inverse_dynamics(q, qd, qdd) @ small.inverse_dynamics_derivatives(q, qd, qdd)[0]

    step = 1e-5
    wanted = np.array([(gradient(q + step * e) - gradient(q - step * e)) / (2 * step) for e in np.eye(2)])
    for outer in (func.jacrev, func.jacfwd):
        for inner in (func.jacrev, func.jacfwd):
            close(outer(inner(size))(there[0]), wanted, 1e-8)
    close(func.hessian(size)(there[0]), wanted, 1e-8)


# -- torch.compile and torch.export -----------------------------------------------------------------------------------


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, **{"fullgraph": True, "backend": BACKEND, **options})


def test_methods_and_kernels_compile_without_graph_breaks(panda, device):
    arrays = states(4)
    there = tensors(arrays, device)
    fresh = lw.load("panda")  # whose methods were never called
    for robot in (fresh, panda):
        found = compiled(robot.forward_dynamics)(*there)
        np.testing.assert_array_equal(array(found), panda.forward_dynamics(*arrays))
    found = compiled(lambda q, *x: panda.inverse_dynamics(torch.sin(q), *x, friction=False) + 1)(*there)
    wanted = panda.inverse_dynamics(array(torch.sin(there[0])), *arrays[1:], friction=False) + 1
    np.testing.assert_array_equal(array(found), wanted)
    link = panda.link_names[3]
    np.testing.assert_array_equal(
        array(compiled(lambda q: panda.pose(q, link))(there[0])), panda.pose(arrays[0], link)
    )
    kernel = panda.kernel(["mass_matrix", "bias_torques"])
    for part, wanted in zip(compiled(kernel)(*there[:2]), kernel(*arrays[:2]), strict=True):
        np.testing.assert_array_equal(array(part), wanted)
    payload = np.array([1.0, 0, 0, 0.1, 0.01, 0, 0, 0.01, 0, 0.01])
    loaded = panda.kernel("inverse_dynamics", inputs=("payload",))
    found = compiled(loaded)(*tensors((*arrays, payload), device))
    np.testing.assert_array_equal(array(found), loaded(*arrays, payload))
    assert compiled(panda.gravity_torques)(there[0].bfloat16()).dtype == torch.bfloat16


def test_optional_inputs_and_methods_of_several_kernels_compile(small):
    arrays = states(4, dof=2)
    there = tensors(arrays)
    wrench = states(4, number=1, dof=6)[0]
    found = compiled(lambda *x: small.inverse_dynamics(*x[:3], wrench=x[3]))(*there, torch.tensor(wrench))
    np.testing.assert_array_equal(array(found), small.inverse_dynamics(*arrays, wrench=wrench))
    found = compiled(lambda *x: small.forward_dynamics(*x, algorithm="conjugate_gradient"))(*there)
    np.testing.assert_array_equal(
        array(found), small.forward_dynamics(*arrays, algorithm="conjugate_gradient")
    )
    held = held_arm()
    q = held.meet_constraints(np.array([0.3, -0.4]))
    state = (q, np.zeros(2), np.zeros(2))
    np.testing.assert_array_equal(
        array(compiled(held.forward_dynamics)(*tensors(state))), held.forward_dynamics(*state)
    )


def test_compiled_with_dynamic_shapes_gradients_and_transformations(panda, device):
    arrays = states(5)
    there = tensors(arrays, device)
    f = compiled(panda.inverse_dynamics, dynamic=True)
    for size in (2, 3, 5):
        np.testing.assert_array_equal(
            array(f(*(value[:size] for value in there))), panda.inverse_dynamics(*(a[:size] for a in arrays))
        )
    derivatives = panda.inverse_dynamics_derivatives(*arrays)
    q = there[0].clone().requires_grad_()
    compiled(lambda *x: (panda.inverse_dynamics(*x) ** 2).sum(), dynamic=True)(q, *there[1:]).backward()
    close(q.grad, 2 * np.einsum("bi,bij->bj", panda.inverse_dynamics(*arrays), derivatives[0]))
    for transformation in (func.jacrev, func.jacfwd):
        found = compiled(
            lambda *x, t=transformation: torch.vmap(t(lambda *x: panda.inverse_dynamics(*x)))(*x)
        )(*there)
        close(found, derivatives[0])


@pytest.mark.parametrize("strict", [False, True])
def test_export(panda, device, strict, tmp_path):
    class Torques(torch.nn.Module):
        def forward(self, q, qd, qdd):
            return panda.inverse_dynamics(q, qd, qdd) + 1

    arrays = states(5)
    batch = torch.export.Dim("batch")
    exported = torch.export.export(
        Torques(), tuple(tensors(arrays, device)), strict=strict, dynamic_shapes=({0: batch},) * 3
    )
    torch.export.save(exported, tmp_path / "torques.pt2")
    again = torch.export.load(tmp_path / "torques.pt2").module()
    found = again(*(value[:3] for value in tensors(arrays, device)))
    np.testing.assert_array_equal(array(found), panda.inverse_dynamics(*(a[:3] for a in arrays)) + 1)


def test_opcheck(small, device):
    from linkwise.frameworks.operation import operation
    from linkwise.frameworks.torch import operator_of

    given = states(3, dof=2)
    of = operation(small.kernel("inverse_dynamics"))
    for each, inputs in (
        (of, given),
        (operation(small.kernel("inverse_dynamics_derivatives")), given),
        (of.gradient((0, 2)), [*given, given[0]]),
        (of.tangent((1,)), [*given, given[0]]),
    ):
        for wanted in (False, True):
            torch.library.opcheck(operator_of(each).op, tuple(tensors(inputs, device, requires_grad=wanted)))


def test_a_graph_from_the_cache_finds_its_operators(tmp_path):
    """A second process takes the compiled graph from PyTorch's cache; its backward pass was never traced there."""
    code = """
import torch, linkwise as lw
robot = lw.load("two_link")
q = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
f = torch.compile(lambda q: (robot.gravity_torques(q) ** 2).sum(), fullgraph=True)
found = f(q)
found.backward()
torch.testing.assert_close(found, (robot.gravity_torques(q) ** 2).sum())
print(q.grad[0].tolist())
"""
    environment = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path),
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
    }
    runs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[1].returncode == 0, runs[1].stderr
    assert runs[0].stdout == runs[1].stdout


def test_a_saved_graph_runs_where_its_operators_are_defined(tmp_path, small):
    class Torques(torch.nn.Module):
        def forward(self, q):
            return small.gravity_torques(q)

    q = states(3, dof=2, number=1)[0]
    torch.export.save(torch.export.export(Torques(), tuple(tensors([q]))), tmp_path / "torques.pt2")
    code = f"""
import torch, linkwise as lw
from linkwise.frameworks.torch import define
define(lw.load("two_link").kernel("gravity_torques"))
q = torch.tensor({q.tolist()}, dtype=torch.float64)
print(torch.export.load({str(tmp_path / "torques.pt2")!r}).module()(q).tolist())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(small.gravity_torques(q).tolist())


def test_meta_tensors_and_copies(panda):
    q = torch.empty(4, 7, device="meta")
    assert panda.mass_matrix(q).shape == (4, 7, 7)
    assert copy.deepcopy(panda.kernel("mass_matrix"))(torch.zeros(7)).shape == (7, 7)


@pytest.mark.skipif("cuda" not in DEVICES, reason="no GPU")
def test_cuda_graphs(panda):
    arrays = states(64)
    there = tensors(arrays, "cuda")
    panda.inverse_dynamics(*there)  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = panda.inverse_dynamics(*there)
    for value in there:
        value.mul_(0.5)
    graph.replay()
    torch.cuda.synchronize()
    np.testing.assert_array_equal(array(found), panda.inverse_dynamics(*(0.5 * a for a in arrays)))
