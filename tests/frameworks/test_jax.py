"""Robots and kernels inside JAX, on the CPU and, where there is one, on a GPU."""

import os
import subprocess
import sys

import numpy as np
import pytest
from given import every_kernel, held_arm, parts, states

import linkwise as lw
from linkwise.gpu import DeviceError

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", 2)
jnp = jax.numpy

DEVICES = [jax.devices("cpu")[0], *(jax.devices() if jax.default_backend() == "gpu" else [])]


@pytest.fixture(params=DEVICES, ids=lambda device: device.platform)
def device(request):
    with jax.default_device(request.param):
        yield request.param


def there(arrays, device):
    return [jax.device_put(a, device) for a in arrays]


def close(found, wanted, tolerance=1e-12):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * max(np.abs(wanted).max(), 1e-300))


# -- bits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (20001,), (0,)])
def test_arrays_give_the_bits_of_the_numpy_call(panda, device, dtype, shape):
    given = states(*shape, dtype=dtype)
    wanted = panda.inverse_dynamics(*given)
    arrays = there(given, device)
    for function in (panda.inverse_dynamics, jax.jit(panda.inverse_dynamics)):
        found = function(*arrays)
        assert isinstance(found, jax.Array)
        assert found.devices() == {device}
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kernel", every_kernel(), ids=lambda kernel: kernel.name)
def test_every_function_has_the_bits_of_the_numpy_call(kernel):
    for dtype in ("float64", "float32"):
        rng = np.random.default_rng(1)
        given = [rng.normal(size=(3, size)).astype(dtype) for _, size in kernel.inputs]
        for part, want in zip(parts(jax.jit(kernel)(*given)), parts(kernel(*given)), strict=True):
            np.testing.assert_array_equal(part, want)


def test_options_broadcasting_users_kernels_and_controllers(panda, device):
    q, qd, qdd = arrays = states(4)
    x = there(arrays, device)
    wrench = states(4, number=1, dof=6)[0]
    found = jax.jit(
        lambda *x: panda.inverse_dynamics(*x, friction=False, algorithm="gibbs_appell", wrench=wrench)
    )(x[0][:, None], x[1], x[2][0])
    wanted = panda.inverse_dynamics(
        q[:, None], qd, qdd[0], friction=False, algorithm="gibbs_appell", wrench=wrench
    )
    np.testing.assert_array_equal(found, wanted)
    link = panda.link_names[3]
    np.testing.assert_array_equal(jax.jit(lambda q: panda.pose(q, link))(x[0]), panda.pose(q, link))
    found = jax.jit(lambda *x: panda.forward_dynamics(*x, algorithm="conjugate_gradient"))(*x)
    np.testing.assert_array_equal(found, panda.forward_dynamics(*arrays, algorithm="conjugate_gradient"))

    @lw.kernel(q=7, w=7)
    def power(q, w):
        return (panda.gravity_torques(q) * w).sum(), q * w

    for part, want in zip(jax.jit(power)(*x[:2]), power(q, qd), strict=True):
        np.testing.assert_array_equal(part, want)
    payload = np.array([1.0, 0, 0, 0.1, 0.01, 0, 0, 0.01, 0, 0.01])
    loaded = panda.kernel("inverse_dynamics", inputs=("payload",))
    np.testing.assert_array_equal(jax.jit(loaded)(*x, payload), loaded(*arrays, payload))
    controller = lw.control.named("gravity_pd", panda, frequency=5.0).kernel(1e-3)
    given = [np.random.default_rng(5).normal(size=(4, size)) for _, size in controller.inputs]
    for part, want in zip(parts(jax.jit(controller)(*given)), parts(controller(*given)), strict=True):
        np.testing.assert_array_equal(part, want)
    both = panda.kernel(["mass_matrix", "bias_torques"])
    for part, want in zip(jax.jit(both)(*x[:2]), both(q, qd), strict=True):
        np.testing.assert_array_equal(part, want)


def test_methods_of_several_kernels(device):
    held = held_arm()
    state = (held.meet_constraints(np.array([0.3, -0.4])), np.zeros(2), np.zeros(2))
    for method in (held.forward_dynamics, held.constraint_forces):
        np.testing.assert_array_equal(jax.jit(method)(*there(state, device)), method(*state))


def test_short_and_mixed_precisions(panda, device):
    for short in (jnp.bfloat16, jnp.float16):
        given = [value.astype(short) for value in there(states(6, dtype="float32"), device)]
        found = jax.jit(panda.inverse_dynamics)(*given)
        assert found.dtype == short
        wanted = panda.inverse_dynamics(*(np.asarray(value.astype("float32")) for value in given))
        np.testing.assert_array_equal(found, jnp.asarray(wanted).astype(short))
        assert (
            jax.jit(panda.inverse_dynamics)(given[0], given[1].astype("float32"), given[2]).dtype == "float32"
        )
    whole = jnp.ones((2, 7), int)
    np.testing.assert_array_equal(
        jax.jit(panda.gravity_torques)(whole), panda.gravity_torques(np.ones((2, 7)))
    )


def test_messages(panda):
    q, qd, qdd = states(4)
    with pytest.raises(lw.ShapeError, match=r"q: expected shape \(..., 7\), got \(6,\)"):
        jax.vmap(panda.gravity_torques)(jnp.asarray(q[:, :6]))
    with pytest.raises(lw.ShapeError, match="do not broadcast together"):
        jax.jit(panda.inverse_dynamics)(q, qd[:3], qdd)
    with pytest.raises(lw.DtypeError, match="q: expected real numbers"):
        jax.jit(panda.gravity_torques)(q + 1j)
    with pytest.raises(DeviceError, match="out: JAX arrays cannot be written to"):
        panda.gravity_torques(jnp.asarray(q), out=jnp.asarray(q))


def test_the_handler_checks_what_xla_gives_it(panda):
    """Calls of the target that the primitive would not make: shapes, precision and numbers of arrays."""
    from linkwise.frameworks.jax import register

    double, single = register(panda.kernel("gravity_torques"))

    def raw(name, result, *args):
        return jax.jit(lambda *args: jax.ffi.ffi_call(name, result)(*args))(*args)

    q = states(4, number=1)[0]
    result = jax.ShapeDtypeStruct((4, 7), "float64")
    np.testing.assert_array_equal(raw(double, result, q), panda.gravity_torques(q))
    np.testing.assert_array_equal(raw(double, result, q[0]), np.tile(panda.gravity_torques(q[0]), (4, 1)))
    for name, wanted, args, message in (
        (double, result, (q[:, :6],), r"q: expected float64 of shape \(..., 7\)"),
        (double, result, (q[:3],), r"q: expected float64 of shape \(..., 7\)"),
        (double, result, (q.astype("float32"),), "q: expected float64"),
        (single, result, (q.astype("float32"),), "result tau: expected float32"),
        (double, jax.ShapeDtypeStruct((4, 8), "float64"), (q,), "result tau: expected float64"),
        (double, result, (q, q), "expected 1 inputs and 1 results"),
    ):
        with pytest.raises(Exception, match=message):
            raw(name, wanted, *args).block_until_ready()


# -- transformations --------------------------------------------------------------------------------------------------


def test_vmap_nested_and_along_any_axis(panda, device):
    q, qd, qdd = arrays = states(4)
    x = there(arrays, device)
    f = panda.inverse_dynamics
    np.testing.assert_array_equal(jax.vmap(f)(*x), f(*arrays))
    np.testing.assert_array_equal(jax.vmap(f, (1, None, 0))(x[0].T, x[1][0], x[2]), f(q, qd[0], qdd))
    found = jax.vmap(lambda a: jax.vmap(lambda b: f(a, b, x[2]))(x[1]))(x[0])
    np.testing.assert_array_equal(found, f(q[:, None, None], qd[None, :, None], qdd))
    found = jax.jit(jax.vmap(jax.vmap(f, (None, 0, None)), (0, None, None)))(*x[:2], x[2][0])
    np.testing.assert_array_equal(found, f(q[:, None], qd, qdd[0]))


@pytest.mark.parametrize(
    ("name", "function"), [("panda", "inverse_dynamics"), ("two_link", "forward_dynamics")]
)
def test_first_derivatives(device, name, function):
    robot = lw.load(name)
    arrays = states(4, dof=robot.dof)
    x = there(arrays, device)
    f = getattr(robot, function)
    derivatives = getattr(robot, f"{function}_derivatives")(*arrays)
    for k, wanted in enumerate(derivatives):
        close(jax.vmap(jax.jacrev(f, k))(*x), wanted)
        close(jax.jit(jax.vmap(jax.jacfwd(f, k)))(*x), wanted)
    found = jax.grad(lambda q: (f(q, *x[1:]) ** 2).sum())(x[0])
    close(found, 2 * np.einsum("bi,bij->bj", f(*arrays), derivatives[0]))
    _, found = jax.jvp(lambda q: f(q, *x[1:]), (x[0],), (x[1],))
    close(found, np.einsum("bij,bj->bi", derivatives[0], arrays[1]))
    found = jax.grad(lambda one: f(x[0], one, x[2]).sum())(x[1][0])  # one row for all states
    wanted = getattr(robot, f"{function}_derivatives")(arrays[0], arrays[1][0], arrays[2])[1]
    close(found, wanted.sum((0, 1)))


def test_derivatives_of_several_outputs_and_of_higher_order(small):
    from jax.test_util import check_grads

    given = states(2, dof=2)
    check_grads(small.inverse_dynamics, given, order=2, modes=("fwd", "rev"))
    check_grads(small.inverse_dynamics_derivatives, given, order=1, modes=("fwd", "rev"))
    check_grads(lambda q, qd: small.kinetic_energy(q, qd), given[:2], order=3)


def test_second_derivatives_in_every_order_of_modes(small, device):
    q, qd, qdd = states(dof=2)
    x = there((q, qd, qdd), device)

    def size(q):
        return (small.inverse_dynamics(q, *x[1:]) ** 2).sum()

    def gradient(q):
        return 2 * small.inverse_dynamics(q, qd, qdd) @ small.inverse_dynamics_derivatives(q, qd, qdd)[0]

    step = 1e-5
    wanted = np.array([(gradient(q + step * e) - gradient(q - step * e)) / (2 * step) for e in np.eye(2)])
    for outer in (jax.jacrev, jax.jacfwd):
        for inner in (jax.jacrev, jax.jacfwd):
            close(jax.jit(outer(inner(size)))(x[0]), wanted, 1e-8)
    close(jax.hessian(size)(x[0]), wanted, 1e-8)


def test_scan_and_its_gradient(small, device):
    q, qd = there(states(dof=2, number=2), device)
    h = 1e-3

    def end(q, qd):
        def step(state, _):
            q, qd = state
            qd = qd + h * small.forward_dynamics(q, qd, jnp.zeros(2))
            return (q + h * qd, qd), None

        return jax.lax.scan(step, (q, qd), None, length=20)[0][0]

    a, b = np.asarray(q), np.asarray(qd)
    for _ in range(20):
        b = b + h * small.forward_dynamics(a, b, np.zeros(2))
        a = a + h * b
    close(jax.jit(end)(q, qd), a)
    found = jax.jit(jax.grad(lambda q: end(q, qd).sum()))(q)
    step = 1e-6
    wanted = [float((end(q + step * e, qd) - end(q - step * e, qd)).sum()) / (2 * step) for e in jnp.eye(2)]
    close(found, np.array(wanted), 1e-7)


def test_shard_map_and_gradients_by_what_all_devices_share(small):
    """On two devices: the gradient by an array that is not split is the sum over both."""
    mesh = jax.make_mesh(
        (2,), ("rows",), devices=jax.devices("cpu")[:2], axis_types=(jax.sharding.AxisType.Auto,)
    )
    P = jax.sharding.PartitionSpec
    q, qd, qdd = arrays = states(6, dof=2)

    def split(one, qd, qdd):
        return jax.shard_map(
            small.inverse_dynamics, mesh=mesh, in_specs=(P(), P("rows"), P("rows")), out_specs=P("rows")
        )(one, qd, qdd)

    with jax.default_device(jax.devices("cpu")[0]):
        np.testing.assert_array_equal(jax.jit(split)(q[0], qd, qdd), small.inverse_dynamics(q[0], qd, qdd))
        found = jax.jit(jax.grad(lambda one: (split(one, qd, qdd) ** 2).sum()))(jnp.asarray(q[0]))
    tau = small.inverse_dynamics(q[0], *arrays[1:])
    by_q = small.inverse_dynamics_derivatives(q[0], *arrays[1:])[0]
    close(found, 2 * np.einsum("bi,bij->j", tau, by_q))


# -- executables ------------------------------------------------------------------------------------------------------


def test_compiled_ahead_of_time(panda, device):
    given = states(4)
    with jax.default_device(device):
        executable = jax.jit(panda.inverse_dynamics).lower(*given).compile()
    np.testing.assert_array_equal(executable(*given), panda.inverse_dynamics(*given))
    again = lw.load("panda")  # another robot of the same content: the same targets
    text = jax.jit(panda.inverse_dynamics).lower(*given).as_text()
    assert jax.jit(again.inverse_dynamics).lower(*given).as_text() == text


def test_export_with_the_listed_check(panda):
    import jax.export

    from linkwise.frameworks.jax import export_checks

    given = states(4)
    function = jax.jit(panda.inverse_dynamics)
    with pytest.raises(ValueError, match="custom call"):
        jax.export.export(function)(*given)
    checks = export_checks(function, *given)
    assert len(checks) == 1
    batch = jax.export.symbolic_shape("batch")[0]
    exported = jax.export.export(function, disabled_checks=checks)(
        *[jax.ShapeDtypeStruct((batch, 7), "float64")] * 3
    )
    for size in (1, 4):
        rows = [a[:size] for a in given]
        np.testing.assert_array_equal(exported.call(*rows), panda.inverse_dynamics(*rows))


def test_an_executable_from_the_persistent_cache_finds_its_target(tmp_path):
    """The second process compiles nothing; it loads the executable of the first."""
    code = """
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import linkwise as lw
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
robot = lw.load("two_link")
found = jax.jit(robot.inverse_dynamics)(*np.ones((3, 4, 2)))
assert np.array_equal(found, robot.inverse_dynamics(*np.ones((3, 4, 2))))
print(len(hits))
"""
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[1].returncode == 0, runs[1].stderr
    assert int(runs[1].stdout) > int(runs[0].stdout) == 0
